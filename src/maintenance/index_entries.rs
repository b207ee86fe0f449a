//! Entries of user indexes whose row is gone.
//!
//! A row id is never given twice, so an entry whose id is in no segment that anybody may still read, nor in the delta, names
//! nothing. VACUUM notes the ids of all segments in a bitmap and asks the delta for those that are not there, which also
//! finds rows written since.

use std::collections::HashMap;

use pgrx::pg_guard;
use pgrx::pg_sys;
use std::ffi::c_void;

use crate::catalog;
use crate::delta::Delta;
use crate::pg::scratch::in_scratch;
use crate::pg::tid;
use crate::pg::versions::tables::index_vacuum_info;
use crate::pg::versions::vacuum;
use crate::read::TableState;
use crate::segment::list::{List, SegmentEntry};
use crate::segment::source;

/// Row ids in one block of the bitmap.
const BLOCK_BITS: u64 = 1 << 15;

/// A set of row ids, which mostly come in long runs.
#[derive(Default)]
struct RowIds {
    blocks: HashMap<u64, Box<[u64; (BLOCK_BITS / 64) as usize]>>,
}

impl RowIds {
    /// Adds `count` ids from `first` on.
    fn insert(&mut self, first: u64, count: u64) {
        let end = first.saturating_add(count);
        let mut next = first;
        while next < end {
            let block_end = end.min((next / BLOCK_BITS + 1) * BLOCK_BITS);
            let block =
                self.blocks.entry(next / BLOCK_BITS).or_insert_with(|| Box::new([0; (BLOCK_BITS / 64) as usize]));
            for row_id in next..block_end {
                block[(row_id % BLOCK_BITS / 64) as usize] |= 1 << (row_id % 64);
            }
            next = block_end;
        }
    }

    fn contains(&self, row_id: u64) -> bool {
        let block = self.blocks.get(&(row_id / BLOCK_BITS));
        block.is_some_and(|block| block[(row_id % BLOCK_BITS / 64) as usize] & 1 << (row_id % 64) != 0)
    }
}

/// What an index is asked to judge its entries by.
struct Judge {
    in_segments: RowIds,
    delta: Option<Delta>,
}

impl Judge {
    fn is_dead(&self, tid: pg_sys::ItemPointerData) -> bool {
        let Some(row_id) = tid::to_row_id(tid) else {
            return true;
        };
        if self.in_segments.contains(row_id) {
            return false;
        }
        let in_delta = |delta: &Delta| in_scratch(|| delta.key_of_row_id(row_id).is_some());
        !self.delta.as_ref().is_some_and(in_delta)
    }
}

/// Removes dead entries from the indexes of a table. Returns how many. The caller holds ShareUpdateExclusiveLock, which keeps
/// flushes and merges out.
///
/// # Safety
/// `strategy` is a valid buffer access strategy.
pub unsafe fn remove_dead(state: &TableState, strategy: pg_sys::BufferAccessStrategy) -> u64 {
    let mut removed = 0.0;
    // SAFETY: the table is open and locked; vac_open_indexes gives `count` open indexes in palloc'ed memory.
    unsafe {
        let lock = pg_sys::RowExclusiveLock as pg_sys::LOCKMODE;
        let mut indexes = std::ptr::null_mut();
        let mut count = 0;
        pg_sys::vac_open_indexes(state.rel, lock, &raw mut count, &raw mut indexes);
        let open = if count > 0 { std::slice::from_raw_parts(indexes, count as usize) } else { &[] };
        let others: Vec<_> = open.iter().copied().filter(|index| !catalog::is_cass_key_oid((**index).rd_id)).collect();
        if !others.is_empty() {
            let mut judge = Judge {
                in_segments: segment_row_ids(state),
                delta: Delta::open(state.rel, state.storage_id, pg_sys::AccessShareLock),
            };
            for index in others {
                removed += vacuum_index(state, index, &mut judge, strategy);
            }
            if let Some(delta) = judge.delta {
                delta.close();
            }
        }
        pg_sys::vac_close_indexes(count, indexes, pg_sys::NoLock as pg_sys::LOCKMODE);
    }
    removed as u64
}

/// # Safety
/// `index` is an open index of the table.
unsafe fn vacuum_index(
    state: &TableState,
    index: pg_sys::Relation,
    judge: &mut Judge,
    strategy: pg_sys::BufferAccessStrategy,
) -> f64 {
    // SAFETY: both are open, so the table's pg_class row is there.
    let mut info = unsafe {
        let rows = f64::from((*(*state.rel).rd_rel).reltuples).max(0.0);
        index_vacuum_info(index, state.rel, rows, strategy)
    };
    // SAFETY: the judge outlives both calls, which hand it to the callback and to nobody else.
    unsafe {
        let argument = (&raw mut *judge).cast::<c_void>();
        let deleted = pg_sys::index_bulk_delete(&raw mut info, std::ptr::null_mut(), Some(is_dead), argument);
        let result = pg_sys::index_vacuum_cleanup(&raw mut info, deleted);
        if result.is_null() {
            return 0.0;
        }
        if !(*result).estimated_count {
            let no_ids = (pg_sys::InvalidTransactionId, pg_sys::MultiXactId::from(0));
            vacuum::update_statistics(index, (*result).num_pages, (*result).num_index_tuples, false, no_ids);
        }
        (*result).tuples_removed
    }
}

/// `IndexBulkDeleteCallback`
#[pg_guard]
unsafe extern "C-unwind" fn is_dead(tid: pg_sys::ItemPointer, judge: *mut c_void) -> bool {
    // SAFETY: an index passes on a valid TID and what `vacuum_index` gave it.
    unsafe { (*judge.cast::<Judge>()).is_dead(*tid) }
}

/// Ids of the rows in all runs that a list row names, dead list rows included: a snapshot that sees one of them may be held.
fn segment_row_ids(state: &TableState) -> RowIds {
    let mut runs: HashMap<u64, SegmentEntry> = HashMap::new();
    let list = List::open(pg_sys::AccessShareLock);
    list.scan_physical(state.storage_id, |row| {
        if let Some(entry) = row.segment() {
            runs.insert(entry.run_id, entry);
        }
    });
    list.close(pg_sys::AccessShareLock);
    let mut row_ids = RowIds::default();
    for entry in runs.values() {
        let result = source::open_segment(state.rel, entry).row_id_runs(|first, count| row_ids.insert(first, count));
        if let Err(error) = result {
            state.raise(&error);
        }
    }
    row_ids
}
