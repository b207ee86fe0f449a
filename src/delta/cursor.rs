//! Reading the delta in key order under a snapshot.
//!
//! Of several rows of a key that the snapshot sees, the one written by the reading transaction wins: a row that a flush
//! moved after the snapshot was taken is still seen beside the transaction's own newer one. Anchors say nothing about the
//! row and are passed over, unless they are asked for.

use super::relation::{column, RawRow};
use super::Delta;
use crate::pg::versions::scans;
use cass_storage::error::Result;
use cass_storage::merge::{Cursor, Direction};
use cass_storage::row::{Cell, CellTimes, EncodedRow, RowHeader, RowKind, RowView};
use pgrx::pg_sys;
use std::ops::Bound;

/// `byteaeq`, `bytealt`, `byteale`, `byteagt`, `byteage` of pg_proc.dat.
pub(super) mod proc {
    pub const INT8EQ: u32 = 467;
    pub const BYTEAEQ: u32 = 1948;
    pub const BYTEALT: u32 = 1949;
    pub const BYTEALE: u32 = 1950;
    pub const BYTEAGT: u32 = 1951;
    pub const BYTEAGE: u32 = 1952;
}

/// Which rows of the delta a scan reads.
pub enum KeyCondition<'a> {
    /// The rows of one key.
    Equal(&'a [u8]),
    /// The rows whose key lies between two bounds.
    Between(Bound<&'a [u8]>, Bound<&'a [u8]>),
}

/// Starts a scan of the key index. Its keys are allocated in the current memory context and copied by the btree.
pub(super) fn begin_key_scan(
    delta: &Delta,
    snapshot: pg_sys::Snapshot,
    condition: &KeyCondition<'_>,
) -> pg_sys::IndexScanDesc {
    use crate::pg::bytea::from_bytes;
    let mut keys = [pg_sys::ScanKeyData::default(); 3];
    let mut count = 1;
    let mut add = |strategy: u32, procedure: u32, bytes: &[u8]| {
        // SAFETY: at most two calls follow the first key, so `count` stays within the array.
        unsafe {
            pg_sys::ScanKeyInit(
                &mut keys[count],
                column::KEY,
                strategy as pg_sys::StrategyNumber,
                pg_sys::Oid::from(procedure),
                from_bytes(bytes),
            );
        }
        count += 1;
    };
    match condition {
        KeyCondition::Equal(key) => add(pg_sys::BTEqualStrategyNumber, proc::BYTEAEQ, key),
        KeyCondition::Between(lower, upper) => {
            match lower {
                Bound::Included(key) => add(pg_sys::BTGreaterEqualStrategyNumber, proc::BYTEAGE, key),
                Bound::Excluded(key) => add(pg_sys::BTGreaterStrategyNumber, proc::BYTEAGT, key),
                Bound::Unbounded => {}
            }
            match upper {
                Bound::Included(key) => add(pg_sys::BTLessEqualStrategyNumber, proc::BYTEALE, key),
                Bound::Excluded(key) => add(pg_sys::BTLessStrategyNumber, proc::BYTEALT, key),
                Bound::Unbounded => {}
            }
        }
    }
    // SAFETY: the relations are open; index_rescan copies the keys.
    unsafe {
        pg_sys::ScanKeyInit(
            &mut keys[0],
            column::STORAGE_ID,
            pg_sys::BTEqualStrategyNumber as pg_sys::StrategyNumber,
            pg_sys::Oid::from(proc::INT8EQ),
            pg_sys::Datum::from(delta.storage_id as i64),
        );
        let scan = scans::begin(delta.heap, delta.key_index, snapshot, count);
        pg_sys::index_rescan(scan, keys.as_mut_ptr(), count as i32, std::ptr::null_mut(), 0);
        scan
    }
}

/// A delta row held by the slot it was read into.
struct Held {
    slot: usize,
    raw: RawRow<'static>,
    encoded: EncodedRow<'static>,
    own: bool,
}

/// A position in the delta. Without `Drop`, as [`Delta`]: see [`DeltaCursor::close`].
pub struct DeltaCursor {
    scan: pg_sys::IndexScanDesc,
    slots: [*mut pg_sys::TupleTableSlot; 3],
    direction: pg_sys::ScanDirection::Type,
    with_anchors: bool,
    current: Option<Held>,
    ahead: Option<Held>,
    rows: u64,
}

impl DeltaCursor {
    /// Opens a cursor on the rows `snapshot` sees, standing on the first one.
    ///
    /// # Errors
    /// `Damaged` where a row's bytes make no sense.
    pub fn open(
        delta: &Delta,
        snapshot: pg_sys::Snapshot,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<DeltaCursor> {
        Self::start(delta, snapshot, &KeyCondition::Between(lower, upper), direction, false)
    }

    /// Opens a cursor on the rows of one key.
    ///
    /// # Errors
    /// As [`DeltaCursor::open`].
    pub fn open_key(delta: &Delta, snapshot: pg_sys::Snapshot, key: &[u8]) -> Result<DeltaCursor> {
        Self::start(delta, snapshot, &KeyCondition::Equal(key), Direction::Forward, false)
    }

    /// Opens a cursor on all rows, anchors too, as a flush needs them.
    ///
    /// # Errors
    /// As [`DeltaCursor::open`].
    pub fn open_all(delta: &Delta, snapshot: pg_sys::Snapshot) -> Result<DeltaCursor> {
        let everything = KeyCondition::Between(Bound::Unbounded, Bound::Unbounded);
        Self::start(delta, snapshot, &everything, Direction::Forward, true)
    }

    fn start(
        delta: &Delta,
        snapshot: pg_sys::Snapshot,
        condition: &KeyCondition<'_>,
        direction: Direction,
        with_anchors: bool,
    ) -> Result<DeltaCursor> {
        // SAFETY: the heap is open and stays so until `close`; the slots belong to the cursor.
        let slot = || unsafe { pg_sys::table_slot_create(delta.heap, std::ptr::null_mut()) };
        let mut cursor = DeltaCursor {
            scan: begin_key_scan(delta, snapshot, condition),
            slots: [slot(), slot(), slot()],
            direction: match direction {
                Direction::Forward => pg_sys::ScanDirection::ForwardScanDirection,
                Direction::Backward => pg_sys::ScanDirection::BackwardScanDirection,
            },
            with_anchors,
            current: None,
            ahead: None,
            rows: 0,
        };
        cursor.ahead = cursor.fetch()?;
        cursor.advance()?;
        Ok(cursor)
    }

    /// Number of rows read so far.
    pub fn rows_read(&self) -> u64 {
        self.rows
    }

    /// The current row's TID in the delta's heap.
    pub fn tid(&self) -> Option<pg_sys::ItemPointerData> {
        // SAFETY: the slot of the current row holds that row until the cursor moves.
        self.current.as_ref().map(|held| unsafe { (*self.slots[held.slot]).tts_tid })
    }

    /// The current row's header in the delta's heap; what it says of a deleter or locker may change at any time.
    pub fn tuple_header(&self) -> Option<pg_sys::HeapTupleHeader> {
        // SAFETY: the slot of the current row pins the row's page until the cursor moves.
        self.current
            .as_ref()
            .map(|held| unsafe { (*(*self.slots[held.slot].cast::<pg_sys::HeapTupleTableSlot>()).tuple).t_data })
    }

    /// Ends the scan.
    pub fn close(mut self) {
        self.current = None;
        self.ahead = None;
        // SAFETY: slots and scan were made by `start` and are given back once, since `self` is consumed.
        unsafe {
            for slot in self.slots {
                pg_sys::ExecDropSingleTupleTableSlot(slot);
            }
            pg_sys::index_endscan(self.scan);
        }
    }

    /// The slot that holds neither the current row nor the one ahead.
    fn free_slot(&self) -> usize {
        let used = |slot: usize| {
            [&self.current, &self.ahead].iter().any(|held| held.as_ref().is_some_and(|held| held.slot == slot))
        };
        (0..self.slots.len()).find(|slot| !used(*slot)).unwrap_or(0)
    }

    /// Reads the next visible row into a free slot.
    fn fetch(&mut self) -> Result<Option<Held>> {
        let slot = self.free_slot();
        loop {
            // SAFETY: scan and slot are alive. The row's bytes stay in the page that the slot pins until the slot is
            // written again, which `free_slot` rules out while a `Held` names it; the 'static never leaves the cursor.
            let raw: RawRow<'static> = unsafe {
                if !pg_sys::index_getnext_slot(self.scan, self.direction, self.slots[slot]) {
                    return Ok(None);
                }
                pg_sys::slot_getallattrs(self.slots[slot]);
                RawRow::of_values(std::slice::from_raw_parts((*self.slots[slot]).tts_values, column::COUNT))
            };
            self.rows += 1;
            if raw.kind == RowKind::Anchor && !self.with_anchors {
                continue;
            }
            let encoded = EncodedRow::parse(raw.row)?;
            return Ok(Some(Held { slot, raw, encoded, own: self.is_own(slot) }));
        }
    }

    /// Whether the row in `slot` was written by the reading transaction.
    fn is_own(&self, slot: usize) -> bool {
        // SAFETY: the slot holds a buffer heap tuple, which has a header.
        unsafe {
            let tuple = (*self.slots[slot].cast::<pg_sys::HeapTupleTableSlot>()).tuple;
            pg_sys::TransactionIdIsCurrentTransactionId(pg_sys::htup::HeapTupleHeaderGetXmin((*tuple).t_data))
        }
    }
}

impl Cursor for DeltaCursor {
    fn key(&self) -> Option<&[u8]> {
        self.current.as_ref().map(|held| held.raw.key)
    }

    fn advance(&mut self) -> Result<()> {
        self.current = self.ahead.take();
        while self.current.is_some() {
            let Some(next) = self.fetch()? else { break };
            let same_key = self.current.as_ref().is_some_and(|current| current.raw.key == next.raw.key);
            if self.with_anchors || !same_key {
                self.ahead = Some(next);
                break;
            }
            if next.own {
                self.current = Some(next);
            }
        }
        Ok(())
    }
}

impl RowView for DeltaCursor {
    fn header(&self) -> &RowHeader {
        static NONE: RowHeader =
            RowHeader { kind: RowKind::Anchor, row_id: 0, write_time: 0, marker: false, expiry: None, natts: 0 };
        self.current.as_ref().map_or(&NONE, |held| held.encoded.header())
    }

    fn cell(&self, attnum: u16) -> Result<Cell<'_>> {
        self.current.as_ref().map_or(Ok(Cell::Absent), |held| held.encoded.cell(attnum))
    }

    fn cell_times(&self, attnum: u16) -> Result<Option<CellTimes>> {
        self.current.as_ref().map_or(Ok(None), |held| held.encoded.cell_times(attnum))
    }

    fn range_end(&self) -> Option<&[u8]> {
        self.current.as_ref().and_then(|held| held.encoded.range_end())
    }
}
