//! Merge: several segments into one.
//!
//! Only segments that follow each other in the order of all committed segments are merged, and a bulk segment only once
//! everybody sees it. Of each key the newest version stays; a tombstone stays while an older segment outside the merge can
//! hold a row of its key. The old list rows are deleted by the transaction that publishes the new one.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use cass_storage::compaction::{self, SegmentInfo};
use cass_storage::merge::{Cursor, Direction, Merge};
use cass_storage::row::{CellTimes, RowHeader, RowView};
use cass_storage::segment::{Column, SegmentCursor};
use cass_storage::{row, Result};
use pgrx::pg_sys;
use std::ops::Bound;

use super::{stored, toast};
use crate::pg::injection::point;
use crate::pg::versions::vacuum;
use crate::read::segments::with_latest_snapshot;
use crate::read::TableState;
use crate::segment::list::{self, List, ListedSegment, SegmentEntry};
use crate::segment::run::{write_segment, NewSegment};
use crate::segment::source::{self, RunSource};
use crate::settings;

/// What merges did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Segments that went into others.
    pub inputs: u64,
    /// Segments they went into.
    pub outputs: u64,
    /// Versions and tombstones read and not written again.
    pub dropped: u64,
}

/// Merges segments of a table in this transaction as the policy says, or for `all` as many as may be merged; then rewrites those
/// that hold much that nobody needs. The caller holds ShareUpdateExclusiveLock or a stronger lock.
pub fn merge(state: &TableState, all: bool) -> Merged {
    let mut merged = Merged::default();
    let mut rewritten = Vec::new();
    loop {
        let segments = with_latest_snapshot(|snapshot| list::listed(state.storage_id, snapshot));
        let infos = infos(&segments);
        let window = if all {
            compaction::choose_all(&infos).into_iter().next()
        } else {
            compaction::choose(&infos, settings::eager_merge_size())
        };
        let window = window.or_else(|| with_tombstones(&segments, &infos));
        let window = window.or_else(|| half_expired(state, &segments, &infos, &rewritten).map(|index| vec![index]));
        let Some(window) = window else { return merged };
        let drop_tombstones = compaction::may_drop_tombstones(&infos, &window);
        let inputs: Vec<&ListedSegment> = window.iter().rev().filter_map(|index| segments.get(*index)).collect();
        rewritten.extend(merge_window(state, &inputs, drop_tombstones, &mut merged));
    }
}

/// Segments to be merged because more than a quarter of what is in them are tombstones, which can go with what they hide.
fn with_tombstones(segments: &[ListedSegment], infos: &[SegmentInfo]) -> Option<Vec<usize>> {
    let together = compaction::choose_all(infos).into_iter();
    let alone = (0..segments.len()).filter(|index| is_settled(&infos[*index])).map(|index| vec![index]);
    together.chain(alone).find(|window| {
        let sum =
            |count: fn(&SegmentEntry) -> u64| window.iter().map(|index| count(&segments[*index].entry)).sum::<u64>();
        let tombstones = sum(|entry| entry.tombstone_count);
        tombstones.saturating_mul(4) > sum(|entry| entry.row_count) && compaction::may_drop_tombstones(infos, window)
    })
}

/// A segment to be rewritten because about half of what can expire in it has expired. After that its oldest expiry lies ahead,
/// so that this happens a logarithmic number of times in its life. What this VACUUM has written is left alone.
fn half_expired(
    state: &TableState,
    segments: &[ListedSegment],
    infos: &[SegmentInfo],
    written: &[u64],
) -> Option<usize> {
    let now = seconds_since_epoch();
    segments.iter().zip(infos).enumerate().find_map(|(index, (segment, info))| {
        if !is_settled(info) || written.contains(&segment.entry.run_id) {
            return None;
        }
        let reader = source::open_segment(state.rel, &segment.entry);
        let (first, last) = (reader.summary().min_expiry?, reader.summary().max_expiry?);
        let half = first <= now && first / 2 + last / 2 <= now;
        (half && compaction::may_drop_tombstones(infos, &[index])).then_some(index)
    })
}

/// Whether a segment may be merged: some snapshots may not see the rows of a bulk load yet.
fn is_settled(info: &SegmentInfo) -> bool {
    !info.bulk || info.visible_to_all
}

fn seconds_since_epoch() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs() as i64)
}

/// What the policy asks of each segment.
fn infos(segments: &[ListedSegment]) -> Vec<SegmentInfo> {
    let list = List::open(pg_sys::AccessShareLock);
    // SAFETY: the list is an open heap.
    let horizon = unsafe { pg_sys::GetOldestNonRemovableTransactionId(list.heap) };
    list.close(pg_sys::AccessShareLock);
    let info = |segment: &ListedSegment| SegmentInfo {
        sequence_low: segment.entry.sequence_low,
        sequence_high: segment.entry.sequence_high,
        bytes: segment.entry.bytes(),
        bulk: segment.entry.bulk,
        // SAFETY: compares two transaction ids.
        visible_to_all: unsafe { pg_sys::TransactionIdPrecedes(segment.xmin, horizon) },
        min_key: segment.entry.min_key.clone(),
        max_key: segment.entry.max_key.clone(),
    };
    segments.iter().map(info).collect()
}

/// Merges `inputs`, the one of highest precedence first. Gives the run id of the result, if a row is left.
fn merge_window(
    state: &TableState,
    inputs: &[&ListedSegment],
    drop_tombstones: bool,
    merged: &mut Merged,
) -> Option<u64> {
    let columns = stored::columns(state);
    // SAFETY: the table is open, so its pg_class row is there.
    let toast_table = unsafe { (*(*state.rel).rd_rel).reltoastrelid };
    let moved_out = Rc::new(MovedOut {
        columns: if toast_table == pg_sys::InvalidOid { Vec::new() } else { columns.clone() },
        ..MovedOut::default()
    });
    let sequence = inputs.iter().fold((u64::MAX, 0), |(low, high), input| {
        (low.min(input.entry.sequence_low), high.max(input.entry.sequence_high))
    });
    let read: u64 = inputs.iter().map(|input| input.entry.row_count).sum();
    let now = seconds_since_epoch();
    let new = NewSegment { sequence: Some(sequence), bulk: false, columns: columns.clone() };
    let output = write_segment(state.rel, new, |writer| {
        let cursors = inputs.iter().map(|input| Input::open(state, input, &moved_out)).collect::<Result<Vec<_>>>()?;
        let mut merge = Merge::new(cursors, Direction::Forward);
        while let Some(winner) = merge.next()? {
            // SAFETY: no lock or pin is held here that others wait for.
            unsafe { vacuum::delay_point() };
            let Some(key) = winner.key() else { break };
            let partition_len = stored::partition_len(state, key);
            let header = winner.header();
            let expired = stored::is_expired(winner, &columns, now)?;
            moved_out.judge((!expired).then_some(header.row_id));
            if drop_tombstones && (expired || header.kind.is_tombstone()) {
                continue;
            }
            if expired {
                writer.push(key, partition_len, &stored::Tombstone::in_place_of(header))?;
            } else {
                writer.push(key, partition_len, winner)?;
            }
        }
        Ok(())
    });
    List::change(state.rel, |list| inputs.iter().for_each(|input| list.remove(input.tid)));
    point("merge-removed");
    toast::delete(toast_table, &moved_out.dropped());
    // SAFETY: further steps of this transaction are to see what was done.
    unsafe { pg_sys::CommandCounterIncrement() };
    merged.inputs += inputs.len() as u64;
    let run_id = output.as_ref().map(|output| output.run_id);
    merged.outputs += u64::from(run_id.is_some());
    merged.dropped += read.saturating_sub(output.map_or(0, |output| output.row_count));
    run_id
}

/// The values moved out of rows that a merge reads; shared by its inputs. An input notes those of every row it moves on from,
/// and whether the row was dropped shows when the winner of its key is known.
#[derive(Default)]
struct MovedOut {
    /// Columns to look for such values in; none where the table has no TOAST table.
    columns: Vec<Column>,
    /// Row id of the version written last.
    kept: Cell<Option<u64>>,
    /// Values of rows passed since, with their row ids.
    passed: RefCell<Vec<(u64, toast::Pointer)>>,
    dropped: RefCell<Vec<toast::Pointer>>,
}

impl MovedOut {
    /// Notes the values of a row that an input moves on from, unless it is the one that was written.
    fn pass(&self, row: &dyn RowView) -> Result<()> {
        let row_id = row.header().row_id;
        if self.columns.is_empty() || self.kept.get() == Some(row_id) {
            return Ok(());
        }
        let mut values = Vec::new();
        toast::collect(row, &self.columns, &mut values)?;
        self.passed.borrow_mut().extend(values.into_iter().map(|value| (row_id, value)));
        Ok(())
    }

    /// Settles what was passed: it is dropped, but for other copies of the version that is kept now.
    fn judge(&self, kept: Option<u64>) {
        self.kept.set(kept);
        let mut passed = self.passed.borrow_mut();
        let dropped = passed.drain(..).filter(|(row_id, _)| Some(*row_id) != kept);
        self.dropped.borrow_mut().extend(dropped.map(|(_, value)| value));
    }

    /// All values of dropped rows.
    fn dropped(&self) -> Vec<toast::Pointer> {
        self.judge(None);
        self.dropped.take()
    }
}

/// A segment being merged.
struct Input {
    cursor: SegmentCursor<RunSource>,
    moved_out: Rc<MovedOut>,
}

impl Input {
    fn open(state: &TableState, segment: &ListedSegment, moved_out: &Rc<MovedOut>) -> Result<Input> {
        let reader = source::open_segment(state.rel, &segment.entry);
        let cursor = reader.cursor(Bound::Unbounded, Bound::Unbounded, Direction::Forward)?;
        Ok(Input { cursor, moved_out: Rc::clone(moved_out) })
    }
}

impl RowView for Input {
    fn header(&self) -> &RowHeader {
        self.cursor.header()
    }

    fn cell(&self, attnum: u16) -> Result<row::Cell<'_>> {
        self.cursor.cell(attnum)
    }

    fn cell_times(&self, attnum: u16) -> Result<Option<CellTimes>> {
        self.cursor.cell_times(attnum)
    }

    fn range_end(&self) -> Option<&[u8]> {
        self.cursor.range_end()
    }
}

impl Cursor for Input {
    fn key(&self) -> Option<&[u8]> {
        self.cursor.key()
    }

    fn advance(&mut self) -> Result<()> {
        self.moved_out.pass(&self.cursor)?;
        self.cursor.advance()
    }
}
