//! Scans as PostgreSQL begins, repeats and ends them, and the sequential one: the whole table in token order.

use super::bitmap::Position;
use super::sample::Sample;
use crate::error::Report;
use crate::pg::statistics;
use crate::read::{MergedScan, ScanSpec};
use cass_storage::merge::Direction;
use pgrx::pg_sys;
use pgrx::prelude::*;
use pgrx::PgMemoryContexts;

/// A scan as PostgreSQL holds it: its own descriptor first, then ours.
#[repr(C)]
pub struct Scan {
    pub base: pg_sys::TableScanDescData,
    /// Dropped with the memory the scan is in, so that an error leaks nothing; null until the first row is asked for.
    pub merged: *mut Option<MergedScan>,
    /// The snapshot to read with: MVCC, also where the caller brought another kind.
    pub snapshot: pg_sys::Snapshot,
    /// Whether `snapshot` was registered by the scan.
    pub own_snapshot: bool,
    /// Whether the scan has ended in a parallel worker that does not take part.
    pub done: bool,
    /// Whether this process has won the reading of a parallel scan; won anew after each rescan.
    takes_part: bool,
    /// ANALYZE shows every so many rows; 0 until it has begun.
    pub stride: u64,
    /// Where a sampling scan is.
    pub sample: Sample,
    /// Where a bitmap scan is.
    pub bitmap: Position,
}

/// `scan_begin`
#[pg_guard]
pub unsafe extern "C-unwind" fn begin(
    rel: pg_sys::Relation,
    snapshot: pg_sys::Snapshot,
    key_count: i32,
    _keys: *mut pg_sys::ScanKeyData,
    parallel: pg_sys::ParallelTableScanDesc,
    flags: u32,
) -> pg_sys::TableScanDesc {
    if key_count != 0 {
        Report::new("0A000", "scan keys are not supported on cass tables").raise();
    }
    // SAFETY: the relation stays open while the scan lives; palloc0 gives zeroed memory of the struct's size.
    unsafe {
        pg_sys::RelationIncrementReferenceCount(rel);
        let scan = pg_sys::palloc0(std::mem::size_of::<Scan>()).cast::<Scan>();
        (*scan).base.rs_rd = rel;
        (*scan).base.rs_snapshot = snapshot;
        (*scan).base.rs_nkeys = 0;
        (*scan).base.rs_flags = flags;
        (*scan).base.rs_parallel = parallel;
        if flags & pg_sys::ScanOptions::SO_TYPE_SEQSCAN != 0 {
            statistics::count_full_scan(rel);
        }
        (*scan).own_snapshot = snapshot.is_null() || (*snapshot).snapshot_type != pg_sys::SnapshotType::SNAPSHOT_MVCC;
        (*scan).snapshot =
            if (*scan).own_snapshot { pg_sys::RegisterSnapshot(pg_sys::GetLatestSnapshot()) } else { snapshot };
        scan.cast()
    }
}

/// `scan_end`
#[pg_guard]
pub unsafe extern "C-unwind" fn end(scan: pg_sys::TableScanDesc) {
    let scan = scan.cast::<Scan>();
    // SAFETY: the scan was made by `begin` and is ended once.
    unsafe {
        if let Some(merged) = (*scan).merged.as_mut().and_then(Option::take) {
            merged.end();
        }
        if (*scan).own_snapshot {
            pg_sys::UnregisterSnapshot((*scan).snapshot);
        }
        pg_sys::RelationDecrementReferenceCount((*scan).base.rs_rd);
        if (*scan).base.rs_flags & pg_sys::ScanOptions::SO_TEMP_SNAPSHOT != 0 {
            pg_sys::UnregisterSnapshot((*scan).base.rs_snapshot);
        }
        pg_sys::pfree(scan.cast());
    }
}

/// `scan_rescan`
#[pg_guard]
pub unsafe extern "C-unwind" fn rescan(
    scan: pg_sys::TableScanDesc,
    _keys: *mut pg_sys::ScanKeyData,
    _set_params: bool,
    _allow_strategy: bool,
    _allow_sync: bool,
    _allow_page_mode: bool,
) {
    // SAFETY: the scan was made by `begin`.
    unsafe {
        let scan = scan.cast::<Scan>();
        (*scan).done = false;
        (*scan).takes_part = false;
        (*scan).sample = Sample::default();
        (*scan).bitmap.set(None);
        if (*scan).base.rs_flags & pg_sys::ScanOptions::SO_TYPE_SEQSCAN != 0 {
            statistics::count_full_scan((*scan).base.rs_rd);
        }
        if let Some(merged) = (*scan).merged.as_mut().and_then(Option::as_mut) {
            merged.rewind();
        }
    }
}

/// The running merge of a scan, started at its first row.
///
/// # Safety
/// `scan` was made by `begin` and is not ended.
pub unsafe fn merged<'a>(scan: *mut Scan) -> &'a mut MergedScan {
    // SAFETY: promised by the caller; the merge's own memory hangs below the context the scan was made in.
    unsafe {
        if (*scan).merged.is_null() {
            let memory = pg_sys::GetMemoryChunkContext(scan.cast());
            (*scan).merged = PgMemoryContexts::For(memory).leak_and_drop_on_delete(None);
        }
        (*(*scan).merged).get_or_insert_with(|| {
            let outer = pg_sys::MemoryContextSwitchTo(pg_sys::GetMemoryChunkContext(scan.cast()));
            let started = MergedScan::begin((*scan).base.rs_rd, (*scan).snapshot, ScanSpec::everything());
            pg_sys::MemoryContextSwitchTo(outer);
            started
        })
    }
}

/// `scan_getnextslot`
#[pg_guard]
pub unsafe extern "C-unwind" fn next_slot(
    scan: pg_sys::TableScanDesc,
    direction: pg_sys::ScanDirection::Type,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    let scan = scan.cast::<Scan>();
    // SAFETY: the scan was made by `begin`; the slot is of the table's type.
    unsafe {
        if (*scan).done || !take_part(scan) {
            (*scan).done = true;
            pg_sys::ExecClearTuple(slot);
            return false;
        }
        let merged = merged(scan);
        let wanted = if direction == pg_sys::ScanDirection::BackwardScanDirection {
            Direction::Backward
        } else {
            Direction::Forward
        };
        if wanted != merged.direction() {
            merged.turn(wanted);
        }
        let found = merged.next(slot);
        if found && (*scan).base.rs_flags & pg_sys::ScanOptions::SO_TYPE_SEQSCAN != 0 {
            statistics::count_scanned_row((*scan).base.rs_rd);
        }
        found
    }
}

/// `parallelscan_estimate`
#[pg_guard]
pub unsafe extern "C-unwind" fn parallel_estimate(_rel: pg_sys::Relation) -> pg_sys::Size {
    std::mem::size_of::<pg_sys::ParallelBlockTableScanDescData>()
}

/// `parallelscan_initialize`
#[pg_guard]
pub unsafe extern "C-unwind" fn parallel_initialize(
    rel: pg_sys::Relation,
    parallel: pg_sys::ParallelTableScanDesc,
) -> pg_sys::Size {
    // SAFETY: PostgreSQL gives as much memory as `parallel_estimate` asked for.
    unsafe { pg_sys::table_block_parallelscan_initialize(rel, parallel) }
}

/// `parallelscan_reinitialize`
#[pg_guard]
pub unsafe extern "C-unwind" fn parallel_reinitialize(rel: pg_sys::Relation, parallel: pg_sys::ParallelTableScanDesc) {
    // SAFETY: as above.
    unsafe { pg_sys::table_block_parallelscan_reinitialize(rel, parallel) }
}

/// Whether this backend reads: of the participants of a parallel scan the first to come reads everything.
unsafe fn take_part(scan: *mut Scan) -> bool {
    // SAFETY: the shared structure lives as long as the scan; its counter is atomic.
    unsafe {
        if (*scan).base.rs_parallel.is_null() || (*scan).takes_part {
            return true;
        }
        let shared = (*scan).base.rs_parallel.cast::<pg_sys::ParallelBlockTableScanDescData>();
        let counter = (&raw mut (*shared).phs_nallocated.value).cast::<std::sync::atomic::AtomicU64>();
        (*scan).takes_part = (*counter).fetch_add(1, std::sync::atomic::Ordering::AcqRel) == 0;
        (*scan).takes_part
    }
}
