//! The relation's files, sizes and TOAST table.

use crate::error::Report;
use crate::maintenance;
use crate::pg::injection::point;
use crate::pg::versions::descriptors;
use crate::pg::versions::files;
use crate::read::TableState;
use crate::segment::{list, metapage, relation};
use pgrx::pg_sys;
use pgrx::prelude::*;

/// `relation_set_new_filenode`: a new life of the table. Segments hold no transaction ids, so there is none to freeze.
#[pg_guard]
pub unsafe extern "C-unwind" fn set_new_filenode(
    rel: pg_sys::Relation,
    new_node: *const files::FileLocator,
    persistence: std::ffi::c_char,
    freeze_xid: *mut pg_sys::TransactionId,
    min_multi: *mut pg_sys::MultiXactId,
) {
    if persistence == pg_sys::RELPERSISTENCE_UNLOGGED as std::ffi::c_char {
        Report::new("0A000", format!("unlogged cass tables are not supported: \"{}\"", crate::read::state::name(rel)))
            .hint("Leave UNLOGGED out; or use TEMP for data that need not last.")
            .raise();
    }
    // SAFETY: PostgreSQL hands over the new file's identity and room for both answers.
    unsafe {
        metapage::create(&*new_node, persistence);
        point("files-created");
        *freeze_xid = pg_sys::InvalidTransactionId;
        *min_multi = pg_sys::InvalidTransactionId;
    }
}

/// `relation_nontransactional_truncate`: the file was made in this transaction, so it is emptied in place.
#[pg_guard]
pub unsafe extern "C-unwind" fn nontransactional_truncate(rel: pg_sys::Relation) {
    metapage::reset(rel);
}

/// `relation_vacuum`
#[pg_guard]
pub unsafe extern "C-unwind" fn vacuum(
    rel: pg_sys::Relation,
    params: *mut pg_sys::VacuumParams,
    strategy: pg_sys::BufferAccessStrategy,
) {
    // SAFETY: PostgreSQL hands over a relation locked with ShareUpdateExclusiveLock, and valid parameters.
    unsafe { maintenance::vacuum(rel, params, strategy) }
}

/// `relation_size`
#[pg_guard]
pub unsafe extern "C-unwind" fn relation_size(rel: pg_sys::Relation, fork: pg_sys::ForkNumber::Type) -> u64 {
    // SAFETY: an open relation's storage manager may be asked for the size of its forks.
    unsafe {
        let smgr = pg_sys::RelationGetSmgr(rel);
        let forks = if fork == pg_sys::ForkNumber::InvalidForkNumber {
            pg_sys::ForkNumber::MAIN_FORKNUM..pg_sys::ForkNumber::INIT_FORKNUM + 1
        } else {
            fork..fork + 1
        };
        forks
            .filter(|fork| pg_sys::smgrexists(smgr, *fork))
            .map(|fork| u64::from(pg_sys::smgrnblocks(smgr, fork)) * u64::from(pg_sys::BLCKSZ))
            .sum()
    }
}

/// `relation_needs_toast_table`: as heap, where a column can grow beyond what fits into a row.
#[pg_guard]
pub unsafe extern "C-unwind" fn needs_toast_table(rel: pg_sys::Relation) -> bool {
    // SAFETY: the descriptor of an open relation has `natts` attributes.
    unsafe {
        descriptors::attributes((*rel).rd_att).iter().any(|attribute| {
            !attribute.attisdropped
                && attribute.attlen == -1
                && attribute.attstorage != pg_sys::TYPSTORAGE_PLAIN as std::ffi::c_char
        })
    }
}

/// `relation_toast_am`
#[pg_guard]
pub unsafe extern "C-unwind" fn toast_am(_rel: pg_sys::Relation) -> pg_sys::Oid {
    pg_sys::HEAP_TABLE_AM_OID
}

/// `relation_fetch_toast_slice`: TOAST tables are heaps, so this is asked of heap; it is filled in for completeness' sake.
#[pg_guard]
pub unsafe extern "C-unwind" fn fetch_toast_slice(
    toast: pg_sys::Relation,
    value: pg_sys::Oid,
    size: i32,
    offset: i32,
    length: i32,
    result: *mut pg_sys::varlena,
) {
    // SAFETY: arguments are passed on unchanged; heap's routine has every callback.
    unsafe {
        if let Some(fetch) = (*pg_sys::GetHeapamTableAmRoutine()).relation_fetch_toast_slice {
            fetch(toast, value, size, offset, length, result);
        }
    }
}

/// Bytes a row is thought to take where nothing is known yet.
const ROWS_PER_PAGE: f64 = 80.0;

/// `relation_estimate_size`
#[pg_guard]
pub unsafe extern "C-unwind" fn estimate_size(
    rel: pg_sys::Relation,
    _widths: *mut i32,
    pages: *mut pg_sys::BlockNumber,
    tuples: *mut f64,
    all_visible: *mut f64,
) {
    // SAFETY: PostgreSQL hands over room for the three answers.
    unsafe {
        let blocks = relation::main_fork_blocks(rel);
        let known = f64::from((*(*rel).rd_rel).reltuples);
        *pages = blocks;
        *all_visible = 0.0;
        *tuples = if known > 0.0 { known } else { count_estimate(rel, blocks) };
    }
}

/// Rows of the listed segments, plus a guess for a delta that no ANALYZE has seen.
fn count_estimate(rel: pg_sys::Relation, blocks: u32) -> f64 {
    let state = TableState::of(rel);
    let listed = crate::read::segments::with_latest_snapshot(|snapshot| list::visible(state.rel, snapshot));
    let in_segments: u64 = listed.iter().map(|entry| entry.row_count).sum();
    if in_segments > 0 {
        return in_segments as f64;
    }
    ROWS_PER_PAGE * f64::from(blocks.max(10))
}
