//! A segment as the list describes it.

use pgrx::pg_sys;
use serde::{Deserialize, Serialize};

/// A published segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentEntry {
    pub storage_id: u64,
    pub run_id: u64,
    /// First block of the run in the table's main fork.
    pub first_block: u32,
    pub page_count: u32,
    /// Places in the order of segments that this one stands for, both inclusive; a merged segment has the union of its inputs'.
    pub sequence_low: u64,
    pub sequence_high: u64,
    /// Written by a bulk load: some snapshots may not see its rows yet.
    pub bulk: bool,
    /// Versions in it, tombstones included.
    pub row_count: u64,
    pub tombstone_count: u64,
    pub min_key: Vec<u8>,
    pub max_key: Vec<u8>,
}

impl SegmentEntry {
    /// Size on disk in bytes.
    pub fn bytes(&self) -> u64 {
        u64::from(self.page_count) * u64::from(pg_sys::BLCKSZ)
    }
}

/// A segment with what maintenance needs to know of its list row.
pub struct ListedSegment {
    pub entry: SegmentEntry,
    /// The transaction that wrote the list row.
    pub xmin: pg_sys::TransactionId,
    /// Place of the list row.
    pub tid: pg_sys::ItemPointerData,
}
