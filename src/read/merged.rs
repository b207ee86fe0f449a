//! The scan in key order: delta and segments merged, the newest version of each key as a snapshot sees it.

use super::looked_at::LookedAt;
use super::{point, row, TableState};
use crate::delta::{Delta, DeltaCursor};
use crate::pg::injection;
use crate::segment::list::{self, SegmentEntry};
use crate::segment::RunSource;
use cass_storage::error::Result;
use cass_storage::merge::{Cursor, Direction, Merge};
use cass_storage::row::{Cell, CellTimes, RowHeader, RowKind, RowView};
use cass_storage::segment::SegmentCursor;
use pgrx::pg_sys;
use std::ops::Bound;
use std::rc::Rc;

pub use super::row::ColumnSet;

/// A contiguous run of keys.
#[derive(Clone, Debug)]
pub struct KeyRange {
    pub lower: Bound<Vec<u8>>,
    pub upper: Bound<Vec<u8>>,
    /// The whole partition's part of the keys, where the range lies in one partition: segments without the partition are
    /// then passed over by their filter.
    pub partition: Option<Vec<u8>>,
}

impl KeyRange {
    /// Every key there is.
    pub fn everything() -> Self {
        KeyRange { lower: Bound::Unbounded, upper: Bound::Unbounded, partition: None }
    }

    fn overlaps(&self, entry: &SegmentEntry) -> bool {
        let starts_behind = match &self.lower {
            Bound::Included(key) => key > &entry.max_key,
            Bound::Excluded(key) => key >= &entry.max_key,
            Bound::Unbounded => false,
        };
        let ends_before = match &self.upper {
            Bound::Included(key) => key < &entry.min_key,
            Bound::Excluded(key) => key <= &entry.min_key,
            Bound::Unbounded => false,
        };
        !starts_behind && !ends_before
    }
}

/// What a scan reads, and in which order.
#[derive(Clone, Debug)]
pub struct ScanSpec {
    /// Disjoint ranges, in the order the scan is to return them.
    pub ranges: Vec<KeyRange>,
    pub direction: Direction,
    pub columns: ColumnSet,
}

impl ScanSpec {
    /// The whole table in token order.
    pub fn everything() -> Self {
        ScanSpec { ranges: vec![KeyRange::everything()], direction: Direction::Forward, columns: ColumnSet::All }
    }
}

/// What a scan has read so far.
#[derive(Clone, Debug, Default)]
pub struct ScanCounters {
    /// Segments read from, and those passed over.
    pub segments: LookedAt,
    /// Rows and tombstones read from the delta.
    pub delta_rows: u64,
    /// Rows returned.
    pub rows: u64,
    /// Pages of segments looked at.
    pub pages: u64,
}

enum Source {
    Delta(DeltaCursor),
    Segment(SegmentCursor<RunSource>),
}

impl Source {
    fn as_view(&self) -> &dyn RowView {
        match self {
            Source::Delta(cursor) => cursor,
            Source::Segment(cursor) => cursor,
        }
    }
}

impl RowView for Source {
    fn header(&self) -> &RowHeader {
        self.as_view().header()
    }

    fn cell(&self, attnum: u16) -> Result<Cell<'_>> {
        self.as_view().cell(attnum)
    }

    fn cell_times(&self, attnum: u16) -> Result<Option<CellTimes>> {
        self.as_view().cell_times(attnum)
    }

    fn range_end(&self) -> Option<&[u8]> {
        self.as_view().range_end()
    }
}

impl Cursor for Source {
    fn key(&self) -> Option<&[u8]> {
        match self {
            Source::Delta(cursor) => cursor.key(),
            Source::Segment(cursor) => cursor.key(),
        }
    }

    fn advance(&mut self) -> Result<()> {
        match self {
            Source::Delta(cursor) => cursor.advance(),
            Source::Segment(cursor) => cursor.advance(),
        }
    }
}

/// A running scan. It has no `Drop`: what it holds of PostgreSQL is given back by [`MergedScan::end`], or by the resource
/// owner after an error.
pub struct MergedScan {
    state: TableState,
    snapshot: pg_sys::Snapshot,
    spec: ScanSpec,
    entries: Rc<[SegmentEntry]>,
    delta: Option<Delta>,
    next_range: usize,
    merge: Option<Merge<Source>>,
    counters: ScanCounters,
    /// Key of the row returned last.
    last_key: Vec<u8>,
    at_end: bool,
    /// Memory of the scan's cursors, and of the row it returned last.
    cursor_context: pg_sys::MemoryContext,
    row_context: pg_sys::MemoryContext,
}

impl MergedScan {
    /// Starts a scan of an open, locked table. `snapshot` is an MVCC snapshot that outlives the scan.
    pub fn begin(rel: pg_sys::Relation, snapshot: pg_sys::Snapshot, spec: ScanSpec) -> MergedScan {
        Self::begin_as(TableState::of(rel), snapshot, spec)
    }

    /// Starts a scan of a table whose state is known.
    pub fn begin_as(state: TableState, snapshot: pg_sys::Snapshot, spec: ScanSpec) -> MergedScan {
        let entries = list::visible(state.rel, snapshot);
        injection::point("segments-listed");
        let delta = state.open_delta_for(snapshot);
        MergedScan {
            snapshot,
            spec,
            entries,
            delta,
            next_range: 0,
            merge: None,
            counters: ScanCounters::default(),
            last_key: Vec::new(),
            at_end: false,
            cursor_context: new_context(c"cass cursors"),
            row_context: new_context(c"cass row"),
            state,
        }
    }

    /// Starts over with other ranges, under the same snapshot.
    pub fn restart(&mut self, spec: ScanSpec) {
        self.spec = spec;
        self.rewind();
    }

    /// Starts over with the same ranges.
    pub fn rewind(&mut self) {
        self.close_range();
        self.next_range = 0;
        self.at_end = false;
    }

    /// Goes on in the other direction from the row returned last, as a scrolling cursor over the whole table does.
    pub fn turn(&mut self, direction: Direction) {
        let key = self.last_key.clone();
        let start = if self.at_end { Bound::Included(key) } else { Bound::Excluded(key) };
        let (lower, upper) = match direction {
            _ if self.counters.rows == 0 => (Bound::Unbounded, Bound::Unbounded),
            Direction::Forward => (start, Bound::Unbounded),
            Direction::Backward => (Bound::Unbounded, start),
        };
        let ranges = vec![KeyRange { lower, upper, partition: None }];
        self.restart(ScanSpec { ranges, direction, columns: self.spec.columns.clone() });
    }

    /// The direction the scan reads in.
    pub fn direction(&self) -> Direction {
        self.spec.direction
    }

    /// What was read so far.
    pub fn counters(&self) -> ScanCounters {
        let mut counters = self.counters.clone();
        for source in self.merge.iter().flat_map(Merge::cursors) {
            if let Source::Delta(cursor) = source {
                counters.delta_rows += cursor.rows_read();
            }
        }
        counters
    }

    /// Stores the next row in `slot`. False, with the slot empty, at the end.
    ///
    /// # Safety
    /// `slot` is a virtual slot with the table's descriptor. Its values live until the next call.
    pub unsafe fn next(&mut self, slot: *mut pg_sys::TupleTableSlot) -> bool {
        // Other scans of the backend read pages between the calls.
        let pages_before = crate::segment::pages_read();
        // SAFETY: passed on.
        let found = unsafe { self.store_next(slot) };
        self.counters.pages += crate::segment::pages_read() - pages_before;
        found
    }

    /// As [`MergedScan::next`], which counts the pages.
    unsafe fn store_next(&mut self, slot: *mut pg_sys::TupleTableSlot) -> bool {
        loop {
            pgrx::check_for_interrupts!();
            if self.merge.is_none() && !self.open_range() {
                // SAFETY: the slot is valid, as the caller promises.
                unsafe { pg_sys::ExecClearTuple(slot) };
                self.at_end = true;
                return false;
            }
            let Some(merge) = &mut self.merge else {
                continue;
            };
            // SAFETY: the context lives as long as the scan.
            let outer = unsafe { pg_sys::MemoryContextSwitchTo(self.cursor_context) };
            let winner = merge.next();
            // SAFETY: back to the caller's context.
            unsafe { pg_sys::MemoryContextSwitchTo(outer) };
            let source = match winner {
                Ok(Some(source)) => source,
                Ok(None) => {
                    self.close_range();
                    continue;
                }
                Err(error) => self.state.raise(&error),
            };
            if source.header().kind != RowKind::Row {
                continue;
            }
            let Some(key) = source.key() else { continue };
            // SAFETY: the slot is valid, as the caller promises; the row's memory lives until the next row is read.
            unsafe {
                pg_sys::MemoryContextReset(self.row_context);
                let outer = pg_sys::MemoryContextSwitchTo(self.row_context);
                row::store(&self.state, key, source, &self.spec.columns, slot);
                pg_sys::MemoryContextSwitchTo(outer);
            }
            point::remember(self.state.storage_id, source.header().row_id, key);
            self.last_key.clear();
            self.last_key.extend_from_slice(key);
            self.counters.rows += 1;
            return true;
        }
    }

    /// Opens the cursors of the next range. False where there is none.
    fn open_range(&mut self) -> bool {
        let Some(range) = self.spec.ranges.get(self.next_range) else {
            return false;
        };
        self.next_range += 1;
        // SAFETY: the context lives as long as the scan; it is switched back below.
        let outer = unsafe { pg_sys::MemoryContextSwitchTo(self.cursor_context) };
        let opened = open_sources(
            &self.state,
            self.snapshot,
            range,
            self.spec.direction,
            self.delta.as_ref(),
            &self.entries,
            &mut self.counters,
        );
        // SAFETY: as above.
        unsafe { pg_sys::MemoryContextSwitchTo(outer) };
        match opened {
            Ok(sources) => self.merge = Some(Merge::new(sources, self.spec.direction)),
            Err(error) => self.state.raise(&error),
        }
        true
    }

    fn close_range(&mut self) {
        for source in self.merge.take().map(Merge::into_cursors).into_iter().flatten() {
            if let Source::Delta(cursor) = source {
                self.counters.delta_rows += cursor.rows_read();
                cursor.close();
            }
        }
        // SAFETY: nothing allocated in it is used any more: its cursors are closed.
        unsafe { pg_sys::MemoryContextReset(self.cursor_context) };
    }

    /// Ends the scan and returns what it read.
    pub fn end(mut self) -> ScanCounters {
        self.close_range();
        let counters = self.counters();
        if let Some(delta) = self.delta.take() {
            delta.close();
        }
        // SAFETY: made by `begin`, deleted once, since `self` is consumed.
        unsafe {
            pg_sys::MemoryContextDelete(self.row_context);
            pg_sys::MemoryContextDelete(self.cursor_context);
        }
        counters
    }
}

fn new_context(name: &'static std::ffi::CStr) -> pg_sys::MemoryContext {
    // SAFETY: the name is static, as PostgreSQL asks for; the parent is the caller's live context.
    unsafe {
        pg_sys::AllocSetContextCreateInternal(
            pg_sys::CurrentMemoryContext,
            name.as_ptr(),
            0,
            pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
            pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
        )
    }
}

/// Opens the delta first, then the segments that can hold a key of the range, newest first.
fn open_sources(
    state: &TableState,
    snapshot: pg_sys::Snapshot,
    range: &KeyRange,
    direction: Direction,
    delta: Option<&Delta>,
    entries: &[SegmentEntry],
    counters: &mut ScanCounters,
) -> Result<Vec<Source>> {
    let lower = range.lower.as_ref().map(Vec::as_slice);
    let upper = range.upper.as_ref().map(Vec::as_slice);
    let mut sources = Vec::with_capacity(entries.len() + 1);
    if let Some(delta) = delta {
        sources.push(Source::Delta(DeltaCursor::open(delta, snapshot, lower, upper, direction)?));
    }
    for (place, entry) in entries.iter().enumerate() {
        if !range.overlaps(entry) {
            counters.segments.pass(place);
            continue;
        }
        let reader = crate::segment::open_segment(state.rel, entry);
        if let Some(partition) = &range.partition {
            if !reader.may_contain(partition)? {
                counters.segments.pass(place);
                continue;
            }
        }
        counters.segments.read(place);
        sources.push(Source::Segment(reader.cursor(lower, upper, direction)?));
    }
    Ok(sources)
}
