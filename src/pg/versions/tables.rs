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
    // SAFETY: allocates in the current memory context. The last arguments: NULLS NOT DISTINCT, ready, concurrent,
    // summarizing, WITHOUT OVERLAPS.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::makeIndexInfo(columns, columns, pg_sys::BTREE_AM_OID, none, none, unique, false, true, false);
        #[cfg(feature = "pg16")]
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
        #[cfg(feature = "pg18")]
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

/// Makes a btree index of a table's own, empty or with the table's rows, in the table's tablespace.
///
/// # Safety
/// `table` is open with an exclusive lock; `info` describes as many columns as there are names and operator classes.
pub unsafe fn btree_create(
    table: pg_sys::Relation,
    name: &std::ffi::CStr,
    info: *mut pg_sys::IndexInfo,
    columns: *mut pg_sys::List,
    classes: &[pg_sys::Oid],
) {
    let new = pg_sys::InvalidOid;
    let collations = vec![pg_sys::InvalidOid; classes.len()];
    let options = vec![0i16; classes.len()];
    // SAFETY: promised by the caller; the arrays live to the end of the call.
    unsafe {
        let tablespace = (*(*table).rd_rel).reltablespace;
        #[cfg(not(feature = "pg18"))]
        pg_sys::index_create(
            table,
            name.as_ptr(),
            new,
            new,
            new,
            new,
            info,
            columns,
            pg_sys::BTREE_AM_OID,
            tablespace,
            collations.as_ptr().cast_mut(),
            classes.as_ptr().cast_mut(),
            options.as_ptr().cast_mut(),
            pg_sys::Datum::from(0),
            0,
            0,
            true,
            true,
            std::ptr::null_mut(),
        );
        #[cfg(feature = "pg18")]
        pg_sys::index_create(
            table,
            name.as_ptr(),
            new,
            new,
            new,
            new,
            info,
            columns,
            pg_sys::BTREE_AM_OID,
            tablespace,
            collations.as_ptr(),
            classes.as_ptr(),
            std::ptr::null(),
            options.as_ptr(),
            std::ptr::null(),
            pg_sys::Datum::from(0),
            0,
            0,
            true,
            true,
            std::ptr::null_mut(),
        );
    }
}

/// The index of a table's primary key, which is not deferrable; invalid if there is none.
///
/// # Safety
/// `table` is open.
pub unsafe fn primary_key_index(table: pg_sys::Relation) -> pg_sys::Oid {
    // SAFETY: promised by the caller.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        return pg_sys::RelationGetPrimaryKeyIndex(table);
        #[cfg(feature = "pg18")]
        return pg_sys::RelationGetPrimaryKeyIndex(table, false);
    }
}

/// Builds an index anew, in new files.
///
/// # Safety
/// The index exists, and nobody has it open here.
pub unsafe fn rebuild_index(index: pg_sys::Oid, persistence: std::ffi::c_char) {
    // SAFETY: promised by the caller.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        pg_sys::reindex_index(index, false, persistence, &mut pg_sys::ReindexParams::default());
        #[cfg(feature = "pg18")]
        pg_sys::reindex_index(std::ptr::null(), index, false, persistence, &pg_sys::ReindexParams::default());
    }
}

/// Builds all indexes of a table anew.
///
/// # Safety
/// The table exists, and nobody has it open here.
pub unsafe fn rebuild_indexes(table: pg_sys::Oid) {
    // SAFETY: promised by the caller.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        pg_sys::reindex_relation(table, 0, &mut pg_sys::ReindexParams::default());
        #[cfg(feature = "pg18")]
        pg_sys::reindex_relation(std::ptr::null(), table, 0, &pg_sys::ReindexParams::default());
    }
}
