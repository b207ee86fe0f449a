//! Descriptions of indexes, and what their vacuum is told.

use pgrx::pg_sys;

/// Describes a btree that is built at once, without expressions or predicate (`makeIndexInfo` of makefuncs.c).
pub fn describe_btree(columns: usize, unique: bool) -> *mut pg_sys::IndexInfo {
    let (columns, none) = (columns as i32, std::ptr::null_mut());
    // SAFETY: makes a node in the current memory context.
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

/// What the vacuum of an index of `table`, with about `rows` rows, is told.
pub fn vacuum_info(
    table: pg_sys::Relation,
    index: pg_sys::Relation,
    rows: f64,
    strategy: pg_sys::BufferAccessStrategy,
) -> pg_sys::IndexVacuumInfo {
    // PostgreSQL 15 does not tell the table.
    #[cfg(feature = "pg15")]
    let _ = table;
    pg_sys::IndexVacuumInfo {
        index,
        #[cfg(not(feature = "pg15"))]
        heaprel: table,
        analyze_only: false,
        report_progress: false,
        estimated_count: true,
        message_level: pg_sys::DEBUG2 as i32,
        num_heap_tuples: rows,
        strategy,
    }
}

/// The next of sorted values, in memory of the caller; false behind the last (`tuplesort_getdatum` of tuplesortvariants.c).
///
/// # Safety
/// The sort has been performed.
pub unsafe fn next_sorted(sort: *mut pg_sys::Tuplesortstate, value: &mut pg_sys::Datum, null: &mut bool) -> bool {
    let not_asked = std::ptr::null_mut();
    // SAFETY: promised by the caller.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::tuplesort_getdatum(sort, true, value, null, not_asked);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::tuplesort_getdatum(sort, true, true, value, null, not_asked);
    }
}
