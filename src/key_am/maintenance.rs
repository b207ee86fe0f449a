//! Building, inserting into and vacuuming an index that has no entries.

use std::ffi::c_char;
use std::ptr;

use pgrx::pg_sys::{self, Datum, ItemPointerData, Relation};
use pgrx::prelude::*;

use crate::catalog;

/// Builds the index: sorts and places the rows that the table kept unplaced until it had a key.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn build(
    heap: Relation,
    _index: Relation,
    _info: *mut pg_sys::IndexInfo,
) -> *mut pg_sys::IndexBuildResult {
    // SAFETY: PostgreSQL passes open relations, under a lock that keeps writers out; the result is palloc'ed.
    unsafe {
        // A table on its way back to heap has its indexes rebuilt once more before its key is exchanged.
        let rows = if catalog::is_cass_relation(heap) { crate::table_am::place_rows(heap) } else { -1.0 };
        let mut result = PgBox::<pg_sys::IndexBuildResult>::alloc0();
        result.heap_tuples = rows;
        result.index_tuples = rows;
        result.into_pg()
    }
}

/// Writes the initial fork of an unlogged index, which is as empty as its main fork.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn build_empty(_index: Relation) {}

/// Called for each row that has been written; there is no entry to make.
///
/// Writing a row replaces the one of the same key, so only ON CONFLICT asks whether the key was free: it was if a
/// look-up that sees uncommitted rows finds the row just written.
#[allow(clippy::too_many_arguments, reason = "the signature is PostgreSQL's")]
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn insert(
    _index: Relation,
    values: *mut Datum,
    nulls: *mut bool,
    row: pg_sys::ItemPointer,
    heap: Relation,
    check: pg_sys::IndexUniqueCheck::Type,
    _unchanged: bool,
    _info: *mut pg_sys::IndexInfo,
) -> bool {
    if check != pg_sys::IndexUniqueCheck::UNIQUE_CHECK_PARTIAL {
        return true;
    }
    // SAFETY: the table is open; the arrays have a member for each key column; `row` is the row's identifier.
    unsafe {
        let table = catalog::table_of(heap);
        let Some(key) = table.key.as_deref() else {
            return true;
        };
        let count = key.columns.len();
        if std::slice::from_raw_parts(nulls, count).contains(&true) {
            return true;
        }
        let encoded = key.encode_values(std::slice::from_raw_parts(values, count));
        let mut snapshot =
            pg_sys::SnapshotData { snapshot_type: pg_sys::SnapshotType::SNAPSHOT_DIRTY, ..Default::default() };
        let found = crate::read::fetch_key(heap, &mut snapshot, &encoded.bytes);
        found.is_none_or(|found| same_row(&found, &*row))
    }
}

fn same_row(left: &ItemPointerData, right: &ItemPointerData) -> bool {
    (left.ip_blkid.bi_hi, left.ip_blkid.bi_lo, left.ip_posid)
        == (right.ip_blkid.bi_hi, right.ip_blkid.bi_lo, right.ip_posid)
}

/// Removes the entries of dead rows: there are none.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn bulk_delete(
    _info: *mut pg_sys::IndexVacuumInfo,
    stats: *mut pg_sys::IndexBulkDeleteResult,
    _callback: pg_sys::IndexBulkDeleteCallback,
    _state: *mut std::ffi::c_void,
) -> *mut pg_sys::IndexBulkDeleteResult {
    if !stats.is_null() {
        return stats;
    }
    // SAFETY: allocates in the caller's context.
    unsafe { PgBox::<pg_sys::IndexBulkDeleteResult>::alloc0() }.into_pg()
}

/// Ends a vacuum; nothing has changed.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn vacuum_cleanup(
    _info: *mut pg_sys::IndexVacuumInfo,
    stats: *mut pg_sys::IndexBulkDeleteResult,
) -> *mut pg_sys::IndexBulkDeleteResult {
    stats
}

/// Names a phase of the build in pg_stat_progress_create_index; there are none beside core's.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn build_phase_name(_phase: i64) -> *mut c_char {
    ptr::null_mut()
}
