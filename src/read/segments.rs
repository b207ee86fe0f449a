//! One key in the segments.

use super::TableState;
use crate::delta::write::Segments;
use crate::segment::list::{self, SegmentEntry};
use cass_storage::merge::Cursor;
use cass_storage::row::{RowKind, RowView};
use pgrx::pg_sys;
use std::ops::Bound;
use std::rc::Rc;

/// Calls `work` with the row of `key` in the newest of `entries` that has it.
pub fn with_newest<R>(
    state: &TableState,
    entries: &[SegmentEntry],
    key: &[u8],
    work: impl FnOnce(&dyn RowView) -> R,
) -> Option<R> {
    for entry in entries.iter().filter(|entry| covers(entry, key)) {
        let reader = crate::segment::open_segment(state.rel, entry);
        let found = (|| {
            if let Some(partition) = state.partition_of(key) {
                if !reader.may_contain(partition)? {
                    return Ok(None);
                }
            }
            let cursor =
                reader.cursor(Bound::Included(key), Bound::Included(key), cass_storage::merge::Direction::Forward)?;
            Ok((cursor.key() == Some(key)).then_some(cursor))
        })();
        match found {
            Ok(Some(cursor)) => return Some(work(&cursor)),
            Ok(None) => {}
            Err(error) => state.raise(&error),
        }
    }
    None
}

/// Whether `key` lies between the first and the last key of a segment.
fn covers(entry: &SegmentEntry, key: &[u8]) -> bool {
    entry.min_key.as_slice() <= key && key <= entry.max_key.as_slice()
}

/// The segments of a table as a writer asks for them: by a snapshot taken at the moment of asking.
pub struct LatestSegments<'a> {
    state: &'a TableState,
}

impl<'a> LatestSegments<'a> {
    pub fn of(state: &'a TableState) -> Self {
        LatestSegments { state }
    }

    /// Calls `work` with the newest version of `key` in the segments.
    pub fn with_newest(&self, key: &[u8], work: impl FnOnce(&dyn RowView)) {
        let entries = with_latest_snapshot(|snapshot| self.entries(snapshot));
        with_newest(self.state, &entries, key, work);
    }

    fn entries(&self, snapshot: pg_sys::Snapshot) -> Rc<[SegmentEntry]> {
        list::visible(self.state.rel, snapshot)
    }
}

/// Runs `work` with a registered snapshot of this moment; in a parallel query, which may take none, with the query's own.
pub fn with_latest_snapshot<R>(work: impl FnOnce(pg_sys::Snapshot) -> R) -> R {
    // SAFETY: registering keeps the snapshot until it is unregistered below; on an error the resource owner does that.
    unsafe {
        let snapshot = if pg_sys::IsInParallelMode() {
            pg_sys::RegisterSnapshot(pg_sys::GetActiveSnapshot())
        } else {
            pg_sys::RegisterSnapshot(pg_sys::GetLatestSnapshot())
        };
        let result = work(snapshot);
        pg_sys::UnregisterSnapshot(snapshot);
        result
    }
}

impl Segments for LatestSegments<'_> {
    fn newest(&self, key: &[u8]) -> Option<(u64, RowKind)> {
        let entries = with_latest_snapshot(|snapshot| self.entries(snapshot));
        with_newest(self.state, &entries, key, |row| (row.header().row_id, row.header().kind))
    }

    fn loaded_after(&self, snapshot: pg_sys::Snapshot, key: &[u8]) -> bool {
        if snapshot.is_null() {
            return false;
        }
        let now = with_latest_snapshot(|latest| self.entries(latest));
        let mut loads = now.iter().filter(|entry| entry.bulk && covers(entry, key)).peekable();
        if loads.peek().is_none() {
            return false;
        }
        let seen = self.entries(snapshot);
        loads.any(|load| !seen.iter().any(|entry| entry.run_id == load.run_id))
    }
}
