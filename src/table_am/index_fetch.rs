//! Rows by TID: index scans, triggers, RETURNING, `ctid` conditions.

use super::scan::Scan;
use crate::pg::tid;
use crate::read::{point, TableState};
use pgrx::pg_sys;
use pgrx::prelude::*;

/// `index_fetch_begin`
#[pg_guard]
pub unsafe extern "C-unwind" fn begin(rel: pg_sys::Relation) -> *mut pg_sys::IndexFetchTableData {
    // SAFETY: palloc0 gives zeroed memory of the struct's size, or raises.
    unsafe {
        let fetch =
            pg_sys::palloc0(std::mem::size_of::<pg_sys::IndexFetchTableData>()).cast::<pg_sys::IndexFetchTableData>();
        (*fetch).rel = rel;
        fetch
    }
}

/// `index_fetch_reset`: nothing is held between two rows.
#[pg_guard]
pub unsafe extern "C-unwind" fn reset(_fetch: *mut pg_sys::IndexFetchTableData) {}

/// `index_fetch_end`
#[pg_guard]
pub unsafe extern "C-unwind" fn end(fetch: *mut pg_sys::IndexFetchTableData) {
    // SAFETY: allocated by `begin`, ended once.
    unsafe { pg_sys::pfree(fetch.cast()) };
}

/// `index_fetch_tuple`. An id never has more than one version, so there is nothing to call again for; and none is ever
/// said to be dead for all, since only VACUUM knows.
#[pg_guard]
pub unsafe extern "C-unwind" fn fetch_tuple(
    fetch: *mut pg_sys::IndexFetchTableData,
    tid: pg_sys::ItemPointer,
    snapshot: pg_sys::Snapshot,
    slot: *mut pg_sys::TupleTableSlot,
    call_again: *mut bool,
    all_dead: *mut bool,
) -> bool {
    // SAFETY: PostgreSQL hands over what `begin` made, a valid TID and snapshot, and a slot of the table's type.
    unsafe {
        *call_again = false;
        if let Some(all_dead) = all_dead.as_mut() {
            *all_dead = false;
        }
        fetch_row(&TableState::of((*fetch).rel), *tid, snapshot, slot)
    }
}

/// Stores the row that a TID names in `slot` if `snapshot` sees it.
///
/// # Safety
/// `slot` is of the table's type; `snapshot` is valid.
pub unsafe fn fetch_row(
    state: &TableState,
    tid: pg_sys::ItemPointerData,
    snapshot: pg_sys::Snapshot,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: promised by the caller.
    tid::to_row_id(tid).is_some_and(|row_id| unsafe { point::fetch_row_id(state, snapshot, row_id, slot) })
}

/// `tuple_fetch_row_version`
#[pg_guard]
pub unsafe extern "C-unwind" fn fetch_row_version(
    rel: pg_sys::Relation,
    tid: pg_sys::ItemPointer,
    snapshot: pg_sys::Snapshot,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: as for `fetch_tuple`.
    unsafe { fetch_row(&TableState::of(rel), *tid, snapshot, slot) }
}

/// `tuple_tid_valid`
#[pg_guard]
pub unsafe extern "C-unwind" fn tid_valid(_scan: pg_sys::TableScanDesc, tid: pg_sys::ItemPointer) -> bool {
    // SAFETY: PostgreSQL hands over a TID that may hold anything.
    unsafe { tid::to_row_id(*tid) }.is_some()
}

/// `tuple_get_latest_tid`: the newest version of the row's key that the scan's snapshot sees.
#[pg_guard]
pub unsafe extern "C-unwind" fn latest_tid(scan: pg_sys::TableScanDesc, tid: pg_sys::ItemPointer) {
    // SAFETY: the scan was made by our `scan_begin`; the TID is valid and may be written.
    unsafe {
        let scan = scan.cast::<Scan>();
        let state = TableState::of((*scan).base.rs_rd);
        let newest = tid::to_row_id(*tid)
            .and_then(|row_id| point::key_of_row_id(&state, row_id))
            .and_then(|key| point::row_id_of_key(&state, (*scan).snapshot, &key));
        if let Some(newest) = newest {
            *tid = tid::from_row_id(newest);
        }
    }
}

/// `tuple_satisfies_snapshot`
#[pg_guard]
pub unsafe extern "C-unwind" fn satisfies_snapshot(
    rel: pg_sys::Relation,
    slot: *mut pg_sys::TupleTableSlot,
    snapshot: pg_sys::Snapshot,
) -> bool {
    let state = TableState::of(rel);
    // SAFETY: PostgreSQL hands over a slot that holds a row of the table, and a valid snapshot.
    unsafe {
        let Some(row_id) = tid::to_row_id((*slot).tts_tid) else {
            return false;
        };
        let Some(key) = point::key_of_row_id(&state, row_id) else {
            return false;
        };
        point::sees_row_id(&state, snapshot, row_id, &key)
    }
}

/// `index_delete_tuples`: no entry is known to be dead here; VACUUM removes those that are.
#[pg_guard]
pub unsafe extern "C-unwind" fn delete_tuples(
    _rel: pg_sys::Relation,
    state: *mut pg_sys::TM_IndexDeleteOp,
) -> pg_sys::TransactionId {
    // SAFETY: PostgreSQL hands over a valid structure and reads back how many entries may go.
    unsafe { (*state).ndeltids = 0 };
    pg_sys::InvalidTransactionId
}
