//! The visibility map: which segments there are and whether the delta is empty, as all recent snapshots see it.
//!
//! Of a read of one partition, opening list and delta would be the larger part: two tables with their indexes, which in a
//! new backend are yet to be found in the catalogs. The map spares that to every snapshot that is newer than the last change.
//! It is one page, in the fork where a heap has its free space map, which cass has no use for: index-only scans would take what
//! is in the fork of a heap's visibility map for bits of one. Backups, replicas, pg_upgrade and CREATE DATABASE carry the fork,
//! and whatever empties it does no harm, as without a map the list and the delta are asked.
//!
//! Why a snapshot that uses the map sees just what list and delta would show it:
//! - Whoever writes to the list, or begins to write to the delta, first or at least before committing takes back what the map
//!   says of it, which gives the map a new version. So what a snapshot sees as committed was taken back before the snapshot
//!   was taken, and what the map says afterwards was found out after it.
//! - What the map says is found out while nobody is changing it, by a snapshot taken after that was seen, and not noted if the
//!   map has another version by then. All transactions that made it so have ended before the snapshot's `xmax`.
//! - A snapshot goes by the map if all transactions before that `xmax` have ended for it too.
//!
//! SERIALIZABLE reads ask list and delta, where they leave their predicate locks. Temporary tables have no map.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use pgrx::pg_sys;

use super::entry::SegmentEntry;
use super::{cache, metapage, relation};
use crate::pg::injection::point;
use crate::pg::random::random_u64;
use crate::pg::snapshot::{begins_after, is_serializable};
use crate::pg::versions::files;

mod page;

use page::{KnownSegments, Map, Page, PAGE_SIZE};

const FORK: pg_sys::ForkNumber::Type = pg_sys::ForkNumber::FSM_FORKNUM;
const BLOCK: pg_sys::BlockNumber = 0;

/// A map as a backend keeps it, with the files and the version it was read from.
type Kept = (relation::FileNode, u64, Rc<Map>);

thread_local! {
    static MAPS: RefCell<HashMap<pg_sys::Oid, Kept>> = RefCell::new(HashMap::new());
}

/// Forgets the map of a table, or all of them.
pub(super) fn forget(relation: Option<pg_sys::Oid>) {
    MAPS.with_borrow_mut(|maps| match relation {
        Some(oid) => drop(maps.remove(&oid)),
        None => maps.clear(),
    });
}

/// The segments of an open, locked table that `snapshot` sees, if the map tells.
pub fn segments(rel: pg_sys::Relation, snapshot: pg_sys::Snapshot) -> Option<Rc<[SegmentEntry]>> {
    let map = map_for_reading(rel)?;
    let known = map.segments.as_ref()?;
    is_for(snapshot, known.since).then(|| Rc::clone(&known.entries))
}

/// Whether the map tells that `snapshot` sees no row in the delta of an open, locked table.
pub fn delta_is_empty(rel: pg_sys::Relation, snapshot: pg_sys::Snapshot) -> bool {
    let map = map_for_reading(rel);
    map.and_then(|map| map.delta_empty_since).is_some_and(|since| is_for(snapshot, since))
}

fn is_for(snapshot: pg_sys::Snapshot, since: u32) -> bool {
    // SAFETY: whoever reads holds a valid snapshot.
    unsafe { begins_after(snapshot, pg_sys::TransactionId::from(since)) }
}

/// The map's version, to be given to [`note_segments`]; 0 where there is no map.
pub fn version(rel: pg_sys::Relation) -> u64 {
    with_page(rel, page::version).unwrap_or(0)
}

/// Whether what is in the place of the map is none, though it is not empty either.
pub fn is_damaged(rel: pg_sys::Relation) -> bool {
    with_page(rel, page::is_damaged).unwrap_or(false)
}

/// Whether the map tells the segments that new snapshots see.
pub fn knows_segments(rel: pg_sys::Relation) -> bool {
    map(rel).is_some_and(|map| map.segments.is_some())
}

/// Takes back what the map tells of the segments: called after a row of the list was written or deleted, before that is
/// committed. Makes a map where there is none, as its version must change.
pub fn segments_changed(rel: pg_sys::Relation) {
    update(rel, None, |map| map.segments = None);
}

/// Notes the segments that snapshots see whose `xmin` is not before `since`, unless the map's version is not `version` any more.
pub fn note_segments(rel: pg_sys::Relation, version: u64, since: pg_sys::TransactionId, entries: Rc<[SegmentEntry]>) {
    update(rel, Some(version), |map| map.segments = Some(KnownSegments { since: since.into(), entries }));
}

/// Takes back that the delta is empty, here and in the metapage: called before a row is written to it. Writes nothing where
/// that was done before. Of a delta that does not last if this transaction is rolled back, the metapage is not told: it would
/// say afterwards that rows are lost.
pub fn delta_changed(rel: pg_sys::Relation, lasting: bool) {
    if metapage::read(rel).delta_dirty {
        return;
    }
    // First, so that no crash leaves a flag in the metapage that keeps the next writer from doing this.
    if knows_delta_empty(rel) {
        update(rel, None, |map| map.delta_empty_since = None);
    }
    point("delta-map-taken-back");
    if lasting {
        metapage::set_delta_dirty(rel, true);
    }
}

/// Whether the map tells that the delta holds no row that new snapshots see.
pub fn knows_delta_empty(rel: pg_sys::Relation) -> bool {
    map(rel).is_some_and(|map| map.delta_empty_since.is_some())
}

/// Notes, here and in the metapage, that the delta holds no row for a snapshot whose `xmin` is not before `since`. The caller has
/// kept writers out since it saw the delta empty.
pub fn note_delta_empty(rel: pg_sys::Relation, since: pg_sys::TransactionId) {
    metapage::set_delta_dirty(rel, false);
    point("delta-flag-cleared");
    update(rel, None, |map| map.delta_empty_since = Some(since.into()));
}

fn map_for_reading(rel: pg_sys::Relation) -> Option<Rc<Map>> {
    if is_serializable() {
        None
    } else {
        map(rel)
    }
}

/// The map of an open, locked table, if it has one.
fn map(rel: pg_sys::Relation) -> Option<Rc<Map>> {
    let (oid, node) = (relation::oid(rel), relation::file_node(rel));
    let known = MAPS.with_borrow(|maps| maps.get(&oid).filter(|kept| kept.0 == node).cloned());
    let (kept, mut copy) = with_page(rel, |page| match known {
        Some((_, version, map)) if page::version(page) == version => (Some(map), None),
        _ => (None, Some(Box::new(*page))),
    })?;
    let map = kept.or_else(|| {
        let page = copy.take()?;
        let map = Rc::new(page::decode(&page)?);
        cache::watch_relations();
        MAPS.with_borrow_mut(|maps| maps.insert(oid, (node, page::version(&page), Rc::clone(&map))));
        Some(map)
    });
    map.filter(|map| map.storage_id == metapage::identity(rel).storage_id)
}

/// Calls `look` with the page while its buffer is share-locked, if there is a page; it must not raise an error.
///
/// The relation's statistics do not count this: they are about its rows.
fn with_page<R>(rel: pg_sys::Relation, look: impl FnOnce(&Page) -> R) -> Option<R> {
    if relation::is_temporary(rel) {
        return None;
    }
    // SAFETY: `rel` is an open, permanent relation with storage; the page is PAGE_SIZE long and looked at while its buffer is
    // pinned and share-locked. A page that cannot be read comes as zeros.
    unsafe {
        if !has_page(rel) {
            return None;
        }
        let mode = pg_sys::ReadBufferMode::RBM_ZERO_ON_ERROR;
        let buffer =
            pg_sys::ReadBufferWithoutRelcache(files::locator(rel), FORK, BLOCK, mode, std::ptr::null_mut(), true);
        pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_SHARE as i32);
        let result = look(&*pg_sys::BufferGetPage(buffer).cast::<Page>());
        pg_sys::UnlockReleaseBuffer(buffer);
        Some(result)
    }
}

/// Whether the fork has its page, as far as this backend knows: who makes it tells the others by an invalidation message.
///
/// # Safety
/// `rel` is an open relation with storage.
unsafe fn has_page(rel: pg_sys::Relation) -> bool {
    // SAFETY: promised by the caller. The storage manager keeps sizes of this fork until it is told that they changed.
    unsafe {
        let smgr = pg_sys::RelationGetSmgr(rel);
        let cached = FORK as usize;
        if (*smgr).smgr_cached_nblocks[cached] == pg_sys::InvalidBlockNumber {
            let blocks = if pg_sys::smgrexists(smgr, FORK) { pg_sys::smgrnblocks(smgr, FORK) } else { 0 };
            (*smgr).smgr_cached_nblocks[cached] = blocks;
        }
        (*smgr).smgr_cached_nblocks[cached] > 0
    }
}

/// Makes fork and page where they are missing (as `fsm_extend` of PostgreSQL's freespace.c does).
///
/// # Safety
/// `rel` is an open relation with storage.
unsafe fn make_page(rel: pg_sys::Relation) {
    // SAFETY: promised by the caller; only the holder of the extension lock makes or extends the fork.
    unsafe {
        let lock = pg_sys::ExclusiveLock as pg_sys::LOCKMODE;
        pg_sys::LockRelationForExtension(rel, lock);
        let smgr = pg_sys::RelationGetSmgr(rel);
        if !pg_sys::smgrexists(smgr, FORK) {
            pg_sys::smgrcreate(smgr, FORK, false);
        }
        (*smgr).smgr_cached_nblocks[FORK as usize] = pg_sys::InvalidBlockNumber;
        if pg_sys::smgrnblocks(smgr, FORK) == 0 {
            let mut page = Box::new([0_u8; PAGE_SIZE]);
            pg_sys::PageInit(page.as_mut_ptr().cast(), PAGE_SIZE, 0);
            pg_sys::PageSetChecksumInplace(page.as_mut_ptr().cast(), BLOCK);
            pg_sys::smgrextend(smgr, FORK, BLOCK, page.as_mut_ptr().cast(), false);
        }
        pg_sys::UnlockRelationForExtension(rel, lock);
        files::invalidate_sizes(smgr);
    }
}

/// Changes the map under an exclusive lock, logged where the relation is, and gives it a new version; made where it is missing.
/// Does nothing where the map has another version than `expected` (0 for none), if one is.
fn update(rel: pg_sys::Relation, expected: Option<u64>, change: impl FnOnce(&mut Map)) {
    if relation::is_temporary(rel) {
        return;
    }
    let storage_id = metapage::identity(rel).storage_id;
    let new_version = random_u64() | 1;
    // SAFETY: `rel` is an open relation with storage. The image that generic WAL hands out is a private copy of the page,
    // PAGE_SIZE long, which GenericXLogFinish puts into the buffer; the buffer is exclusively locked meanwhile, and nothing here
    // raises an error before it is released.
    unsafe {
        if !has_page(rel) {
            make_page(rel);
        }
        let mode = pg_sys::ReadBufferMode::RBM_ZERO_ON_ERROR;
        let buffer = pg_sys::ReadBufferExtended(rel, FORK, BLOCK, mode, std::ptr::null_mut());
        pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_EXCLUSIVE as i32);
        let state = pg_sys::GenericXLogStart(rel);
        let image = pg_sys::GenericXLogRegisterBuffer(state, buffer, pg_sys::GENERIC_XLOG_FULL_IMAGE as i32);
        let page = &mut *image.cast::<Page>();
        if pg_sys::PageIsNew(image) {
            pg_sys::PageInit(image, PAGE_SIZE, 0);
        }
        if expected.is_none_or(|expected| page::version(page) == expected) {
            let known = page::decode(page).filter(|map| map.storage_id == storage_id);
            let mut map = known.unwrap_or(Map { storage_id, delta_empty_since: None, segments: None });
            change(&mut map);
            page::encode(&map, new_version, page);
            pg_sys::GenericXLogFinish(state);
        } else {
            pg_sys::GenericXLogAbort(state);
        }
        pg_sys::UnlockReleaseBuffer(buffer);
    }
}
