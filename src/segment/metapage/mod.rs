//! The metapage: block 0 of a cass table's main fork.
//!
//! It names one life of the table by a random storage id and holds the counters from which row ids, run ids and the order
//! of segments come. A standard page, changed through the buffer manager and logged by generic WAL records, so that crash
//! recovery and replicas need nothing from this extension.

use std::cell::RefCell;
use std::collections::HashMap;

use pgrx::pg_sys;

use super::{cache, relation};
use crate::error::Report;
use crate::pg::tid::MAX_ROW_ID;

mod content;

pub use content::{Fault, Metapage, FORMAT};
use content::{CONTENT_END, PAGE_SIZE};

const BLOCK: pg_sys::BlockNumber = 0;

/// Number of blocks of a main fork in which there has never been a run.
pub const BLOCKS: u32 = 1;

/// A new page with PostgreSQL's header and this content.
fn new_page(metapage: &Metapage) -> Box<[u8; PAGE_SIZE]> {
    let mut page = Box::new([0_u8; PAGE_SIZE]);
    init_page(&mut page);
    metapage.encode(&mut page);
    page
}

/// Gives a page an empty standard header whose free space starts behind the metapage's content.
fn init_page(page: &mut [u8; PAGE_SIZE]) {
    // SAFETY: the page is writable and PAGE_SIZE long; PageInit zeroes it and PageHeaderData lies at its start. Alignment
    // of the header is 4 at most, written unaligned here.
    unsafe {
        pg_sys::PageInit(page.as_mut_ptr().cast(), PAGE_SIZE, 0);
        let header = page.as_mut_ptr().cast::<pg_sys::PageHeaderData>();
        (&raw mut (*header).pd_lower).write_unaligned(CONTENT_END as u16);
    }
}

/// Makes the files of a table and writes its first metapage; for `relation_set_new_filenode`.
///
/// # Errors
/// 0A000 for an unlogged table: after a crash its main fork is emptied while the list of segments, which is logged, would
/// still name runs in it.
pub fn create(node: &crate::pg::versions::files::Locator, persistence: std::ffi::c_char) {
    if persistence as u8 == pg_sys::RELPERSISTENCE_UNLOGGED {
        Report::new("0A000", "access method \"cass\" does not support unlogged tables")
            .hint("Create the table as LOGGED or TEMPORARY.")
            .raise();
    }
    let mut page = new_page(&Metapage::new());
    let permanent = persistence as u8 == pg_sys::RELPERSISTENCE_PERMANENT;
    let main = pg_sys::ForkNumber::MAIN_FORKNUM;
    // SAFETY: `node` is the new, still empty file node that core passes; the page is a whole one with a valid header. No
    // buffer of a new file node exists, so writing beside the buffer manager cannot meet an older copy of the block.
    unsafe {
        let storage = pg_sys::RelationCreateStorage(*node, persistence, true);
        if permanent && relation::wal_is_needed() {
            pg_sys::log_newpage((&raw const *node).cast_mut(), main, BLOCK, page.as_mut_ptr().cast(), true);
        }
        pg_sys::PageSetChecksumInplace(page.as_mut_ptr().cast(), BLOCK);
        pg_sys::smgrextend(storage, main, BLOCK, page.as_mut_ptr().cast(), !permanent);
        if permanent {
            // A checkpoint may have moved the redo pointer past the record above, so the block itself must be safe.
            pg_sys::smgrimmedsync(storage, main);
        }
        pg_sys::smgrclose(storage);
    }
}

/// What of a metapage stays the same for one file node, but for `set_layout` and `reset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub storage_id: u64,
    pub layout: u64,
}

thread_local! {
    /// Identities by relation OID, each with the file node it was read from.
    static IDENTITIES: RefCell<HashMap<pg_sys::Oid, (relation::FileNode, Identity)>> = RefCell::new(HashMap::new());
}

/// Forgets the identity of a relation, or of all.
pub(super) fn forget(relation: Option<pg_sys::Oid>) {
    IDENTITIES.with_borrow_mut(|identities| match relation {
        Some(oid) => {
            identities.remove(&oid);
        }
        None => identities.clear(),
    });
}

/// Storage id and layout of an open, locked table, kept by this backend while the table keeps its files.
pub fn identity(rel: pg_sys::Relation) -> Identity {
    let node = relation::file_node(rel);
    let oid = relation::oid(rel);
    let known = IDENTITIES.with_borrow(|identities| identities.get(&oid).copied());
    if let Some((known_node, identity)) = known {
        if known_node == node {
            return identity;
        }
    }
    let metapage = read(rel);
    let identity = Identity { storage_id: metapage.storage_id, layout: metapage.layout };
    cache::watch_relations();
    IDENTITIES.with_borrow_mut(|identities| identities.insert(oid, (node, identity)));
    identity
}

/// Reads the metapage of an open, locked table.
///
/// # Errors
/// XX001 where it is damaged, 0A000 where a later version of the extension wrote it.
pub fn read(rel: pg_sys::Relation) -> Metapage {
    try_read(rel).unwrap_or_else(|fault| raise(rel, fault))
}

/// As [`read`], with what is wrong as a result.
pub fn try_read(rel: pg_sys::Relation) -> Result<Metapage, Fault> {
    let mut copy = Box::new([0_u8; PAGE_SIZE]);
    // SAFETY: `rel` is an open relation with storage; the page is read while its buffer is pinned and share-locked.
    unsafe {
        let buffer = read_block(rel);
        pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_SHARE as i32);
        let page = pg_sys::BufferGetPage(buffer).cast::<u8>();
        std::ptr::copy_nonoverlapping(page, copy.as_mut_ptr(), CONTENT_END);
        pg_sys::UnlockReleaseBuffer(buffer);
    }
    Metapage::decode(&copy)
}

/// Pins the metapage's buffer.
///
/// # Safety
/// `rel` is an open relation with storage; the caller releases the buffer.
unsafe fn read_block(rel: pg_sys::Relation) -> pg_sys::Buffer {
    // SAFETY: promised by the caller; a null strategy is the default one.
    unsafe {
        pg_sys::ReadBufferExtended(
            rel,
            pg_sys::ForkNumber::MAIN_FORKNUM,
            BLOCK,
            pg_sys::ReadBufferMode::RBM_NORMAL,
            std::ptr::null_mut(),
        )
    }
}

fn raise(rel: pg_sys::Relation, fault: Fault) -> ! {
    let table = relation::name(rel);
    match fault {
        Fault::Damaged(what) => {
            Report::new("XX001", format!("metapage of table \"{table}\" (block {BLOCK}) is damaged"))
                .detail(format!("On reading block {BLOCK}, {what}."))
                .hint("Restore the table from a backup.")
                .raise()
        }
        Fault::Format(format) => Report::new(
            "0A000",
            format!("table \"{table}\" has storage format {format}, which this version of cass cannot read"),
        )
        .detail(format!("It reads format {FORMAT}."))
        .hint("Install the version of cass that wrote the table.")
        .raise(),
    }
}

/// Changes the metapage under an exclusive lock, logged where the relation is. `change` must not raise an error.
fn update<R>(rel: pg_sys::Relation, change: impl FnOnce(&mut Metapage) -> R) -> R {
    // SAFETY: `rel` is an open relation with storage. The image that generic WAL hands out is a private copy of the page,
    // PAGE_SIZE long, which GenericXLogFinish puts into the buffer; the buffer is exclusively locked meanwhile. Where an error is
    // raised between, transaction abort releases lock and pin and the copy is never applied.
    unsafe {
        let buffer = read_block(rel);
        pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_EXCLUSIVE as i32);
        let state = pg_sys::GenericXLogStart(rel);
        let image = pg_sys::GenericXLogRegisterBuffer(state, buffer, 0);
        let page = &mut *image.cast::<[u8; PAGE_SIZE]>();
        let mut metapage = Metapage::decode(page).unwrap_or_else(|fault| raise(rel, fault));
        let result = change(&mut metapage);
        metapage.encode(page);
        pg_sys::GenericXLogFinish(state);
        pg_sys::UnlockReleaseBuffer(buffer);
        result
    }
}

/// Takes `count` consecutive row ids, never to be given again, and returns the first.
///
/// # Errors
/// 54000 where the table has used up its row ids.
pub fn reserve_row_ids(rel: pg_sys::Relation, count: u64) -> u64 {
    let first = update(rel, |metapage| {
        let first = metapage.next_row_id;
        let next = first.checked_add(count).filter(|next| *next <= MAX_ROW_ID)?;
        metapage.next_row_id = next;
        Some(first)
    });
    first.unwrap_or_else(|| {
        Report::new("54000", format!("table \"{}\" has used up its row ids", relation::name(rel)))
            .detail(format!("A table can have {MAX_ROW_ID} row versions in one life."))
            .hint("VACUUM FULL gives the rows new ids.")
            .raise()
    })
}

/// Takes a run id and a place in the order of segments, which is after all that were given before.
///
/// Concurrent callers are kept apart by the lock that a publisher holds on the table; the order is the order of the calls.
pub fn next_run(rel: pg_sys::Relation) -> (u64, u64) {
    update(rel, |metapage| {
        let run = (metapage.next_run_id, metapage.next_sequence);
        metapage.next_run_id += 1;
        metapage.next_sequence += 1;
        run
    })
}

/// Sets the fingerprint of the key that the rows are stored by. The caller holds a lock that keeps readers out.
pub fn set_layout(rel: pg_sys::Relation, layout: u64) {
    update(rel, |metapage| metapage.layout = layout);
    cache::forget(Some(relation::oid(rel)));
}

/// Forgets what this backend knows of the files of a table, which have got the content of others.
pub fn files_filled(rel: pg_sys::Relation) {
    cache::forget(Some(relation::oid(rel)));
}

/// Says whether the delta may hold rows; writes nothing where the metapage says so already. For the visibility map, which
/// is to be changed with it.
pub(super) fn set_delta_dirty(rel: pg_sys::Relation, dirty: bool) {
    if read(rel).delta_dirty != dirty {
        update(rel, |metapage| metapage.delta_dirty = dirty);
    }
}

/// Begins a new life in the same files, for TRUNCATE in the (sub)transaction that made them: a new storage id, so that
/// neither list rows nor delta rows of the old life count, and no runs. Run ids go on, as do row ids, so that no index
/// entry is mistaken. The caller holds AccessExclusiveLock.
pub fn reset(rel: pg_sys::Relation) {
    update(rel, |metapage| {
        let old = metapage.clone();
        *metapage = Metapage {
            layout: old.layout,
            next_row_id: old.next_row_id,
            next_run_id: old.next_run_id,
            ..Metapage::new()
        };
    });
    // Before the files shrink: no map may be left whose length was seen earlier.
    cache::forget(Some(relation::oid(rel)));
    if relation::main_fork_blocks(rel) > 1 {
        // SAFETY: `rel` is open and exclusively locked; nothing of the new life lies behind the metapage yet.
        unsafe { pg_sys::RelationTruncate(rel, 1) }
    }
}
