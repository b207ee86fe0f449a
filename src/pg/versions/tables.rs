//! Heaps and indexes.

use pgrx::pg_sys;

/// How `tuple_update` says which indexes need an entry of the new version.
#[cfg(feature = "pg15")]
pub type UpdateIndexes = bool;
#[cfg(not(feature = "pg15"))]
pub type UpdateIndexes = pg_sys::TU_UpdateIndexes::Type;

/// Every index needs an entry.
#[cfg(feature = "pg15")]
pub const ALL_INDEXES: UpdateIndexes = true;
#[cfg(not(feature = "pg15"))]
pub const ALL_INDEXES: UpdateIndexes = pg_sys::TU_UpdateIndexes::TU_All;

/// `heap_update`, for callers who give each index its entry in any case. It waits for nobody who does not hold the row.
///
/// # Safety
/// As for `heap_update` of PostgreSQL's heapam.c.
pub unsafe fn heap_update(
    heap: pg_sys::Relation,
    tid: &mut pg_sys::ItemPointerData,
    tuple: pg_sys::HeapTuple,
    command: pg_sys::CommandId,
    failure: &mut pg_sys::TM_FailureData,
    mode: &mut pg_sys::LockTupleMode::Type,
) -> pg_sys::TM_Result::Type {
    let no_snapshot = std::ptr::null_mut();
    // SAFETY: promised by the caller.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::heap_update(heap, tid, tuple, command, no_snapshot, true, failure, mode);
        #[cfg(not(feature = "pg15"))]
        {
            let mut indexes = pg_sys::TU_UpdateIndexes::TU_None;
            pg_sys::heap_update(heap, tid, tuple, command, no_snapshot, true, failure, mode, &mut indexes)
        }
    }
}

/// The description of a plain btree index over so many columns.
pub fn btree_info(columns: usize, unique: bool) -> *mut pg_sys::IndexInfo {
    let (columns, none) = (columns as i32, std::ptr::null_mut());
    // SAFETY: allocates in the current memory context. The last arguments: NULLS NOT DISTINCT, ready, concurrent, summarizing.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::makeIndexInfo(columns, columns, pg_sys::BTREE_AM_OID, none, none, unique, false, true, false);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::makeIndexInfo(
            columns,
            columns,
            pg_sys::BTREE_AM_OID,
            none,
            none,
            unique,
            false,
            true,
            false,
            false,
        );
    }
}

/// What VACUUM tells an index of a table, apart from the number of its rows.
///
/// # Safety
/// Both relations are open.
pub unsafe fn index_vacuum_info(
    index: pg_sys::Relation,
    _table: pg_sys::Relation,
    rows: f64,
    strategy: pg_sys::BufferAccessStrategy,
) -> pg_sys::IndexVacuumInfo {
    pg_sys::IndexVacuumInfo {
        index,
        #[cfg(not(feature = "pg15"))]
        heaprel: _table,
        analyze_only: false,
        report_progress: false,
        estimated_count: true,
        message_level: pg_sys::DEBUG2 as i32,
        num_heap_tuples: rows,
        strategy,
    }
}

/// The next value of a sort, which stays the sort's; false at the end.
///
/// # Safety
/// `sort` is a finished sort of values.
pub unsafe fn next_datum(sort: *mut pg_sys::Tuplesortstate, value: &mut pg_sys::Datum, null: &mut bool) -> bool {
    let abbreviated = std::ptr::null_mut();
    // SAFETY: promised by the caller.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::tuplesort_getdatum(sort, true, value, null, abbreviated);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::tuplesort_getdatum(sort, true, false, value, null, abbreviated);
    }
}
