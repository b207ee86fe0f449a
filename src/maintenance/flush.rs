//! Flush: moves the rows of the delta that everybody sees into a new segment.
//!
//! One transaction publishes the segment and deletes the rows it holds from the delta, so that every snapshot sees a row on
//! exactly one side. The deletions come last and wait for nobody: a row that somebody uses stays in the delta, where it
//! takes precedence over its copy. The snapshot that the rows were copied under is held until they are deleted, so that no row can
//! be pruned and its place be taken by another before.

use std::rc::Rc;

use cass_storage::merge::Cursor;
use cass_storage::row::{RowKind, RowView};
use cass_storage::StorageError;
use pgrx::pg_sys;

use super::stored::{self, Tombstone};
use crate::delta::{Delta, DeltaCursor};
use crate::pg::injection::point;
use crate::pg::versions::vacuum;
use crate::read::segments::with_latest_snapshot;
use crate::read::TableState;
use crate::segment::list::{self, SegmentEntry};
use crate::segment::run::{write_segment, NewSegment};

/// What a flush did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flushed {
    /// Rows and tombstones in the new segment.
    pub rows: u64,
    /// Rows, tombstones and anchors taken out of the delta.
    pub removed: u64,
    /// Rows left because they are in use or not visible to everybody yet.
    pub left: u64,
}

/// Flushes the delta of a table in this transaction. The caller holds ShareUpdateExclusiveLock or a stronger lock.
pub fn flush(state: &TableState) -> Flushed {
    let Some(delta) = Delta::open(state.rel, state.storage_id, pg_sys::RowExclusiveLock) else {
        return Flushed::default();
    };
    let flushed = with_latest_snapshot(|snapshot| {
        // Taken after the snapshot: what is older is visible to everyone now and for ever.
        // SAFETY: the delta is an open heap.
        let horizon = unsafe { pg_sys::GetOldestNonRemovableTransactionId(delta.heap) };
        let mut cursor = DeltaCursor::open_all(&delta, snapshot).unwrap_or_else(|error| state.raise(&error));
        if cursor.key().is_none() {
            cursor.close();
            return Flushed::default();
        }
        let older = list::visible(state.rel, snapshot);
        let mut flush = Flush { older, horizon, moved: Vec::new(), left: 0 };
        let new = NewSegment { sequence: None, bulk: false, columns: stored::columns(state) };
        let segment = write_segment(state.rel, new, |writer| {
            while let Some(key) = cursor.key() {
                // SAFETY: no lock or pin is held here that others wait for longer than for a page.
                unsafe { vacuum::delay_point() };
                if flush.takes(&cursor, key) {
                    let partition_len = stored::partition_len(state, key);
                    match cursor.header() {
                        moved if moved.kind == RowKind::Moved => {
                            writer.push(key, partition_len, &Tombstone::in_place_of(moved))?;
                        }
                        _ => writer.push(key, partition_len, &cursor)?,
                    }
                }
                cursor.advance()?;
            }
            Ok::<(), StorageError>(())
        });
        cursor.close();
        let moved = flush.moved.len() as u64;
        let in_use = delete_rows(&delta, flush.moved);
        point("flush-deleted");
        Flushed {
            rows: segment.map_or(0, |segment| segment.row_count),
            removed: moved - in_use,
            left: flush.left + in_use,
        }
    });
    delta.close();
    flushed
}

struct Flush {
    /// Segments that a tombstone may have to hide rows of.
    older: Rc<[SegmentEntry]>,
    horizon: pg_sys::TransactionId,
    /// Delta rows to be deleted.
    moved: Vec<pg_sys::ItemPointerData>,
    left: u64,
}

impl Flush {
    /// Whether the cursor's row goes into the segment; notes it if it goes from the delta.
    fn takes(&mut self, cursor: &DeltaCursor, key: &[u8]) -> bool {
        let (Some(tid), Some(header)) = (cursor.tid(), cursor.tuple_header()) else {
            return false;
        };
        // SAFETY: the cursor pins the row's page.
        if !unsafe { is_settled(header, self.horizon) } {
            self.left += 1;
            return false;
        }
        self.moved.push(tid);
        match cursor.header().kind {
            RowKind::Anchor => false,
            RowKind::RowTombstone | RowKind::Moved => self.hides_something(key),
            _ => true,
        }
    }

    /// Whether a segment can hold a row of this key.
    fn hides_something(&self, key: &[u8]) -> bool {
        let covers = |entry: &SegmentEntry| entry.min_key.as_slice() <= key && key <= entry.max_key.as_slice();
        self.older.iter().any(covers)
    }
}

/// Whether a row was written before `horizon` and nobody is deleting, replacing or locking it.
///
/// # Safety
/// `header` is the header of a row on a pinned page, which the running snapshot sees.
unsafe fn is_settled(header: pg_sys::HeapTupleHeader, horizon: pg_sys::TransactionId) -> bool {
    // SAFETY: promised by the caller. Writer and flags are read without a lock, as hint bits are; what changes meanwhile is found
    // when the row is deleted.
    unsafe {
        let xmin = pg_sys::htup::HeapTupleHeaderGetXmin(header);
        if !pg_sys::TransactionIdPrecedes(xmin, horizon) {
            return false;
        }
        let flags = u32::from((*header).t_infomask);
        let xmax = (*header).t_choice.t_heap.t_xmax;
        if flags & pg_sys::HEAP_XMAX_INVALID != 0 || xmax == pg_sys::InvalidTransactionId {
            return true;
        }
        let only_locked = flags & (pg_sys::HEAP_XMAX_LOCK_ONLY) != 0;
        if flags & pg_sys::HEAP_XMAX_IS_MULTI != 0 {
            return only_locked && !pg_sys::MultiXactIdIsRunning(xmax, true);
        }
        !pg_sys::TransactionIdIsInProgress(xmax) && (only_locked || !pg_sys::TransactionIdDidCommit(xmax))
    }
}

/// Deletes rows of the delta without waiting for anyone. Returns how many are in use and stay.
pub(super) fn delete_rows(delta: &Delta, mut rows: Vec<pg_sys::ItemPointerData>) -> u64 {
    rows.sort_unstable_by_key(|tid| (tid.ip_blkid.bi_hi, tid.ip_blkid.bi_lo, tid.ip_posid));
    let mut in_use = 0;
    for mut tid in rows {
        // SAFETY: the delta is open with RowExclusiveLock, and a snapshot that sees the row keeps its place.
        unsafe {
            pgrx::check_for_interrupts!();
            let mut failure = pg_sys::TM_FailureData::default();
            let result = pg_sys::heap_delete(
                delta.heap,
                &raw mut tid,
                pg_sys::GetCurrentCommandId(true),
                std::ptr::null_mut(),
                false,
                &raw mut failure,
                false,
            );
            in_use += u64::from(result != pg_sys::TM_Result::TM_Ok);
        }
    }
    // SAFETY: what was deleted is gone for this transaction's further commands.
    unsafe { pg_sys::CommandCounterIncrement() };
    in_use
}
