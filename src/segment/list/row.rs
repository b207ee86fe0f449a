//! Rows of the list.

use pgrx::pg_sys::{self, Datum};

use super::SegmentEntry;
use crate::pg::bytea;
use crate::pg::visibility::is_same_to_all;

/// Attribute numbers of the list's columns.
pub(super) mod column {
    pub const RELATION: usize = 1;
    pub const STORAGE_ID: usize = 2;
    pub const RUN_ID: usize = 3;
    pub const FIRST_BLOCK: usize = 4;
    pub const PAGE_COUNT: usize = 5;
    pub const PUBLISHED: usize = 6;
    pub const BULK: usize = 7;
    pub const SEQUENCE_LOW: usize = 8;
    pub const SEQUENCE_HIGH: usize = 9;
    pub const ROW_COUNT: usize = 10;
    pub const TOMBSTONE_COUNT: usize = 11;
    pub const MIN_KEY: usize = 12;
    pub const MAX_KEY: usize = 13;
    pub const COUNT: usize = 13;
}

/// A row of the list where a scan found it.
pub struct ListRow {
    values: [Datum; column::COUNT],
    tuple: pg_sys::HeapTuple,
}

impl ListRow {
    /// # Safety
    /// `tuple` is a row of the list, whose memory outlives the value made of it.
    pub(super) unsafe fn of(heap: pg_sys::Relation, tuple: pg_sys::HeapTuple) -> ListRow {
        let mut values = [Datum::from(0_usize); column::COUNT];
        let mut nulls = [false; column::COUNT];
        // SAFETY: promised by the caller; there is room for all columns, none of which can be null.
        unsafe { pg_sys::heap_deform_tuple(tuple, (*heap).rd_att, values.as_mut_ptr(), nulls.as_mut_ptr()) }
        ListRow { values, tuple }
    }

    fn number(&self, attribute: usize) -> u64 {
        self.values[attribute - 1].value() as u64
    }

    fn bytes(&self, attribute: usize) -> Vec<u8> {
        // SAFETY: a bytea of a row that is still there; a detoasted copy is freed after it was read.
        unsafe {
            let datum = self.values[attribute - 1];
            let stored = datum.cast_mut_ptr::<pg_sys::varlena>();
            let plain = pg_sys::pg_detoast_datum_packed(stored);
            let bytes = bytea::bytes_of(Datum::from(plain)).to_vec();
            if plain != stored {
                pg_sys::pfree(plain.cast());
            }
            bytes
        }
    }

    pub fn table(&self) -> pg_sys::Oid {
        pg_sys::Oid::from(self.number(column::RELATION) as u32)
    }

    pub fn storage_id(&self) -> u64 {
        self.number(column::STORAGE_ID)
    }

    pub(super) fn run_id(&self) -> u64 {
        self.number(column::RUN_ID)
    }

    /// First block and number of blocks that the row keeps.
    pub fn blocks(&self) -> (u32, u32) {
        (self.number(column::FIRST_BLOCK) as u32, self.number(column::PAGE_COUNT) as u32)
    }

    pub fn tid(&self) -> pg_sys::ItemPointerData {
        // SAFETY: the tuple is still there.
        unsafe { (*self.tuple).t_self }
    }

    pub(super) fn xmin(&self) -> pg_sys::TransactionId {
        // SAFETY: the tuple is still there and has a header.
        unsafe { pg_sys::htup::HeapTupleHeaderGetXmin((*self.tuple).t_data) }
    }

    /// The transaction that wrote the row and froze it, so that all snapshots see it.
    pub(super) fn frozen_by(&self) -> Option<pg_sys::TransactionId> {
        // SAFETY: the tuple is still there and has a header. Freezing leaves the id in it.
        unsafe {
            let header = (*self.tuple).t_data;
            let frozen = u32::from((*header).t_infomask) & pg_sys::HEAP_XMIN_FROZEN == pg_sys::HEAP_XMIN_FROZEN;
            frozen.then(|| (*header).t_choice.t_heap.t_xmin)
        }
    }

    /// Whether its writer, or one who deletes it, is at work; this transaction counts as one.
    pub(super) fn is_changing(&self) -> bool {
        // SAFETY: the tuple is still there and has a header, which is read without a lock, as hint bits are. A row that is only
        // locked is not changing, but nobody locks rows of the list, so that there is no need to tell.
        unsafe {
            let header = (*self.tuple).t_data;
            let xmax = (*header).t_choice.t_heap.t_xmax;
            let deleted = u32::from((*header).t_infomask) & pg_sys::HEAP_XMAX_INVALID == 0;
            let by_several = u32::from((*header).t_infomask) & pg_sys::HEAP_XMAX_IS_MULTI != 0;
            pg_sys::TransactionIdIsInProgress(self.xmin())
                || (deleted && (by_several || pg_sys::TransactionIdIsInProgress(xmax)))
        }
    }

    /// Whether it is the same to every snapshot. The caller keeps those who change the table's segments out.
    pub fn is_same_to_all(&self, horizon: pg_sys::TransactionId) -> bool {
        // SAFETY: the tuple is still there and has a header.
        unsafe { is_same_to_all((*self.tuple).t_data, horizon) }
    }

    /// The segment, or `None` for a run that is only reserved.
    pub fn segment(&self) -> Option<SegmentEntry> {
        if self.values[column::PUBLISHED - 1].value() & 1 == 0 {
            return None;
        }
        let (first_block, page_count) = self.blocks();
        Some(SegmentEntry {
            storage_id: self.storage_id(),
            run_id: self.run_id(),
            first_block,
            page_count,
            sequence_low: self.number(column::SEQUENCE_LOW),
            sequence_high: self.number(column::SEQUENCE_HIGH),
            bulk: self.values[column::BULK - 1].value() & 1 != 0,
            row_count: self.number(column::ROW_COUNT),
            tombstone_count: self.number(column::TOMBSTONE_COUNT),
            min_key: self.bytes(column::MIN_KEY),
            max_key: self.bytes(column::MAX_KEY),
        })
    }
}
