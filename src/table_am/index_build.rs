//! Building indexes on other columns.

use crate::pg::index_values::Evaluation;
use crate::read::segments::with_latest_snapshot;
use crate::read::{MergedScan, ScanSpec};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::collections::HashSet;

/// Keeps snapshots that are older than this transaction from using an index that is being rebuilt. PostgreSQL does so by
/// itself for a new index, but of an old one that is valid it only leaves `indcheckxmin` as it is.
fn hide_from_older_snapshots(index: pg_sys::Oid) {
    // SAFETY: the tuple is a copy of the index's row of pg_index, whose fixed part is a FormData_pg_index.
    unsafe {
        let none = pg_sys::Datum::from(0_usize);
        let cache = pg_sys::SysCacheIdentifier::INDEXRELID as i32;
        let tuple = pg_sys::SearchSysCacheCopy(cache, index.into(), none, none, none);
        if tuple.is_null() {
            return;
        }
        (*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_index>()).indcheckxmin = true;
        // Written even if it is set: what is compared with a snapshot is the row's own transaction.
        let catalog =
            pgrx::PgRelation::with_lock(pg_sys::IndexRelationId, pg_sys::RowExclusiveLock as pg_sys::LOCKMODE);
        pg_sys::CatalogTupleUpdate(catalog.as_ptr(), &raw mut (*tuple).t_self, tuple);
        pg_sys::heap_freetuple(tuple);
        pg_sys::CommandCounterIncrement();
    }
}

/// `index_build_range_scan`. Only the newest versions get entries, so the index is not to be used by snapshots that may
/// see older ones: that is what a broken HOT chain tells PostgreSQL (`indcheckxmin`).
#[pg_guard]
pub unsafe extern "C-unwind" fn build_range_scan(
    rel: pg_sys::Relation,
    index: pg_sys::Relation,
    info: *mut pg_sys::IndexInfo,
    _allow_sync: bool,
    _any_visible: bool,
    _progress: bool,
    _start: pg_sys::BlockNumber,
    _count: pg_sys::BlockNumber,
    callback: pg_sys::IndexBuildCallback,
    callback_state: *mut std::ffi::c_void,
    scan: pg_sys::TableScanDesc,
) -> f64 {
    // SAFETY: PostgreSQL hands over an open table and index, a valid description, callback and state.
    unsafe {
        if !scan.is_null() {
            pg_sys::table_endscan(scan);
        }
        let evaluation = Evaluation::begin(rel, info);
        let mut values = [pg_sys::Datum::from(0); pg_sys::INDEX_MAX_KEYS as usize];
        let mut nulls = [false; pg_sys::INDEX_MAX_KEYS as usize];
        let rows = with_latest_snapshot(|snapshot| {
            let mut scan = MergedScan::begin(rel, snapshot, ScanSpec::everything());
            while scan.next(evaluation.slot) {
                if evaluation.values(info, &mut values, &mut nulls) {
                    let mut tid = (*evaluation.slot).tts_tid;
                    if let Some(callback) = callback {
                        callback(index, &mut tid, values.as_mut_ptr(), nulls.as_mut_ptr(), true, callback_state);
                    }
                }
            }
            scan.end().rows
        });
        evaluation.end(info);
        (*info).ii_BrokenHotChain = rows > 0;
        // REINDEX CONCURRENTLY builds a new index, and waits for older snapshots to end.
        if rows > 0 && !(*info).ii_Concurrent && pg_sys::ReindexIsProcessingIndex((*index).rd_id) {
            hide_from_older_snapshots((*index).rd_id);
        }
        rows as f64
    }
}

/// `index_validate_scan`: the second pass of CREATE INDEX CONCURRENTLY adds the rows the first one did not see.
#[pg_guard]
pub unsafe extern "C-unwind" fn validate_scan(
    rel: pg_sys::Relation,
    index: pg_sys::Relation,
    info: *mut pg_sys::IndexInfo,
    snapshot: pg_sys::Snapshot,
    state: *mut pg_sys::ValidateIndexState,
) {
    // SAFETY: PostgreSQL hands over an open table and index, a registered snapshot, and the sorted TIDs of the index.
    unsafe {
        let mut indexed = HashSet::new();
        let (mut encoded, mut null) = (pg_sys::Datum::from(0), false);
        while crate::pg::versions::index::next_sorted((*state).tuplesort, &mut encoded, &mut null) {
            indexed.insert(encoded.value() as i64);
        }
        let evaluation = Evaluation::begin(rel, info);
        let mut values = [pg_sys::Datum::from(0); pg_sys::INDEX_MAX_KEYS as usize];
        let mut nulls = [false; pg_sys::INDEX_MAX_KEYS as usize];
        let mut scan = MergedScan::begin(rel, snapshot, ScanSpec::everything());
        while scan.next(evaluation.slot) {
            let mut tid = (*evaluation.slot).tts_tid;
            if indexed.contains(&encode_tid(tid)) || !evaluation.values(info, &mut values, &mut nulls) {
                continue;
            }
            let check = if (*info).ii_Unique {
                pg_sys::IndexUniqueCheck::UNIQUE_CHECK_YES
            } else {
                pg_sys::IndexUniqueCheck::UNIQUE_CHECK_NO
            };
            pg_sys::index_insert(index, values.as_mut_ptr(), nulls.as_mut_ptr(), &mut tid, rel, check, false, info);
            (*state).tups_inserted += 1.0;
        }
        (*state).htups = scan.end().rows as f64;
        evaluation.end(info);
    }
}

/// A TID as CREATE INDEX CONCURRENTLY sorts it (`itemptr_encode` of PostgreSQL's index.c).
fn encode_tid(tid: pg_sys::ItemPointerData) -> i64 {
    let block = (i64::from(tid.ip_blkid.bi_hi) << 16) | i64::from(tid.ip_blkid.bi_lo);
    (block << 16) | i64::from(tid.ip_posid)
}
