//! INSERT and COPY: each row overwrites the row of its key, if there is one.

use super::{bulk, rewrite, row_ids, version};
use crate::catalog::InsertMode;
use crate::delta::write::{self, LockRequest, NewVersion, Newest, Refused};
use crate::delta::{predicate, Delta};
use crate::error::Report;
use crate::pg::scratch::in_scratch;
use crate::pg::snapshot::of_transaction;
use crate::pg::tid;
use crate::read::segments::LatestSegments;
use crate::read::{point, rewritten, TableState};
use crate::segment::visibility_map;
use cass_storage::row::{EncodedRow, RowKind, RowView};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::c_int;
use std::rc::Rc;

/// The delta, ready for a row: made where it is missing, and noted as changed. The first rows of a delta that is made here go
/// unnoted in the metapage; the next write to it makes good for that.
pub fn open_delta_for_writing(state: &TableState) -> Delta {
    crate::read::loading::check(state.rel);
    let delta = Delta::open_or_create(state.rel, state.storage_id);
    predicate::check_for_writing(state.rel);
    visibility_map::delta_changed(state.rel, !delta.is_younger_than(state.rel));
    delta
}

/// The snapshot a write is held against: that of the transaction under REPEATABLE READ and SERIALIZABLE, else none.
fn transaction_snapshot() -> pg_sys::Snapshot {
    of_transaction().unwrap_or(std::ptr::null_mut())
}

/// Holds a key that is to be overwritten, whatever it has now. A row that lies in a segment is overwritten through an anchor, so that
/// weaker lockers can pass. `command` becomes that of the write.
fn hold_to_overwrite(state: &TableState, delta: &Delta, key: &[u8], command: &mut pg_sys::CommandId) -> Newest {
    let snapshot = transaction_snapshot();
    let segments = LatestSegments::of(state);
    loop {
        let request = LockRequest {
            mode: pg_sys::LockTupleMode::LockTupleNoKeyExclusive,
            wait: pg_sys::LockWaitPolicy::LockWaitBlock,
            command: *command,
        };
        if let Ok(held) = write::hold(delta, key, request, snapshot, &segments, true) {
            refuse_unseen(state, snapshot, &held);
            return held;
        }
        *command = next_command();
    }
}

/// A version that the transaction's snapshot does not see, and that is not its own, may not be overwritten; nor one that it may
/// see only because the table was rewritten.
fn refuse_unseen(state: &TableState, snapshot: pg_sys::Snapshot, held: &Newest) {
    if snapshot.is_null() || held.own {
        return;
    }
    if !held.visible || (held.live_row_id().is_some() && rewritten::after_snapshot(state)) {
        write::raise_serialization_failure();
    }
}

/// Writes one row. Returns its row id.
///
/// # Safety
/// `slot` holds a row of the table.
unsafe fn upsert(
    state: &TableState,
    delta: &Delta,
    slot: *mut pg_sys::TupleTableSlot,
    mut command: pg_sys::CommandId,
) -> u64 {
    let unnamed = columns_to_keep(state, slot);
    // SAFETY: promised by the caller.
    let values = unsafe {
        let values = version::Values::of_slot(slot);
        if unnamed.is_empty() {
            values
        } else {
            values.detached(state.rel)
        }
    };
    let row_id = row_ids::next(state);
    let key = state.encode_key(&values.values, &values.nulls, row_id);
    let mut encoded: Option<Vec<u8>> = None;
    let mut completed = false;
    loop {
        let held = hold_to_overwrite(state, delta, &key.bytes, &mut command);
        let overwrites = held.live_row_id().is_some();
        if overwrites {
            refuse_under_row_security(state);
        }
        if completed || (overwrites && !unnamed.is_empty()) {
            completed = overwrites;
            // SAFETY: promised by the caller; the values were detached from the slot.
            encoded = Some(unsafe {
                complete(state, slot, &values, &unnamed, &key.bytes, &held);
                version::encode(state, &version::Values::of_slot(slot), row_id)
            });
        }
        // SAFETY: promised by the caller.
        let row = encoded.get_or_insert_with(|| unsafe { version::encode(state, &values, row_id) });
        let new = NewVersion { key: &key.bytes, row_id, kind: RowKind::Row, row };
        if write::store(delta, &held, &new, command) {
            release_replaced(state, &held);
            point::remember(state.storage_id, row_id, &key.bytes);
            return row_id;
        }
    }
}

/// An INSERT that would overwrite a row is refused to those whom the table's policies bind: the policies for UPDATE cannot be asked
/// about the old row here.
fn refuse_under_row_security(state: &TableState) {
    // SAFETY: the table is open; the check looks at its policies for the current user.
    let bound = unsafe {
        (*(*state.rel).rd_rel).relrowsecurity
            && pg_sys::check_enable_rls((*state.rel).rd_id, pg_sys::InvalidOid, true)
                == pg_sys::CheckEnableRlsResult::RLS_ENABLED as i32
    };
    if bound {
        let table = crate::read::state::name(state.rel);
        Report::new(
            "42501",
            format!("INSERT may not overwrite a row of table \"{table}\", which has row-level security"),
        )
        .detail("A row with this primary key exists.")
        .hint("UPDATE it, so that the table's policies are asked.")
        .raise();
    }
}

/// Writes a row whose version is encoded already.
pub fn upsert_encoded(
    state: &TableState,
    delta: &Delta,
    key: &[u8],
    row_id: u64,
    row: &[u8],
    mut command: pg_sys::CommandId,
) {
    loop {
        let held = hold_to_overwrite(state, delta, key, &mut command);
        if write::store(delta, &held, &NewVersion { key, row_id, kind: RowKind::Row, row }, command) {
            release_replaced(state, &held);
            return;
        }
    }
}

/// The columns that keep what the row had before: those the statement does not name, unless the table's `insert` option asks
/// for whole rows.
pub fn columns_to_keep(state: &TableState, slot: *mut pg_sys::TupleTableSlot) -> Rc<[u16]> {
    if state.key.is_none() || state.table.options.insert == InsertMode::Row {
        return Rc::from([]);
    }
    crate::statement::unnamed_columns(state, slot)
}

/// Completes the row in `slot` from the version that is held, before indexes, RETURNING and AFTER triggers see it. Where none is
/// live any more, the slot gets its own values back.
///
/// # Safety
/// `slot` holds a row of the table; the values lie in memory that is not the slot's.
unsafe fn complete(
    state: &TableState,
    slot: *mut pg_sys::TupleTableSlot,
    values: &version::Values,
    unnamed: &[u16],
    key: &[u8],
    held: &Newest,
) {
    // SAFETY: promised by the caller.
    let fill = |older: Option<(&[u8], &dyn RowView)>| unsafe { version::complete(state, slot, values, unnamed, older) };
    match &held.version {
        _ if held.live_row_id().is_none() => return fill(None),
        Some(version) if version.kind == RowKind::Row => match EncodedRow::parse(&version.row) {
            Ok(older) => fill(Some((key, &older))),
            Err(error) => state.raise(&error),
        },
        _ => LatestSegments::of(state).with_newest(key, |older| fill(Some((key, older)))),
    }
    // SAFETY: promised by the caller.
    unsafe { crate::statement::check_completed_row(state.rel, slot) };
}

/// Gives back what a replaced delta row kept in the TOAST table. What a replaced row of a segment kept goes when a merge
/// drops that row.
pub fn release_replaced(state: &TableState, held: &Newest) {
    if let Some(version) = held.version.as_ref().filter(|version| version.kind == RowKind::Row) {
        version::delete_moved_out(state, &version.row);
    }
}

/// A second write of a key by one command is a command of its own: heapam would refuse to update the row otherwise.
fn next_command() -> pg_sys::CommandId {
    // SAFETY: allowed in the middle of a statement, as functions called by it show; its own snapshot stays as it is.
    unsafe {
        pg_sys::CommandCounterIncrement();
        pg_sys::GetCurrentCommandId(true)
    }
}

/// Stores a row under a key that must not be live, as an UPDATE that changes the key needs it.
///
/// # Safety
/// `values` are those of a row of the table.
pub unsafe fn insert_new(
    state: &TableState,
    delta: &Delta,
    key: &[u8],
    values: &version::Values,
    row_id: u64,
    mut command: pg_sys::CommandId,
) {
    let snapshot = transaction_snapshot();
    let segments = LatestSegments::of(state);
    let mut encoded: Option<Vec<u8>> = None;
    loop {
        let request = LockRequest {
            mode: pg_sys::LockTupleMode::LockTupleExclusive,
            wait: pg_sys::LockWaitPolicy::LockWaitBlock,
            command,
        };
        let held = match write::hold(delta, key, request, snapshot, &segments, false) {
            Ok(held) => held,
            Err(Refused::Invisible(version)) if version.kind == RowKind::Row => raise_duplicate(state, key),
            Err(_) => {
                command = next_command();
                continue;
            }
        };
        if held.live_row_id().is_some() {
            raise_duplicate(state, key);
        }
        refuse_unseen(state, snapshot, &held);
        // SAFETY: promised by the caller.
        let row = encoded.get_or_insert_with(|| unsafe { version::encode(state, values, row_id) });
        if write::store(delta, &held, &NewVersion { key, row_id, kind: RowKind::Row, row }, command) {
            release_replaced(state, &held);
            point::remember(state.storage_id, row_id, key);
            return;
        }
    }
}

fn raise_duplicate(state: &TableState, key: &[u8]) -> ! {
    let shown = state.key.as_ref().map(|table_key| table_key.describe(key)).unwrap_or_default();
    Report::new(
        "23505",
        format!(
            "an UPDATE would give two rows of table \"{}\" the same primary key",
            crate::read::state::name(state.rel)
        ),
    )
    .detail(format!("Key ({shown}) already exists."))
    .hint("DELETE the other row first; or INSERT, which overwrites.")
    .raise()
}

/// `tuple_insert`
#[pg_guard]
pub unsafe extern "C-unwind" fn insert(
    rel: pg_sys::Relation,
    slot: *mut pg_sys::TupleTableSlot,
    command: pg_sys::CommandId,
    options: c_int,
    _bistate: *mut pg_sys::BulkInsertStateData,
) {
    let mut slot = slot;
    // SAFETY: PostgreSQL hands over an open relation and a slot that holds a row.
    unsafe { multi_insert_guarded(rel, &mut slot, 1, command, options) }
}

/// `multi_insert`
#[pg_guard]
pub unsafe extern "C-unwind" fn multi_insert(
    rel: pg_sys::Relation,
    slots: *mut *mut pg_sys::TupleTableSlot,
    count: c_int,
    command: pg_sys::CommandId,
    options: c_int,
    _bistate: *mut pg_sys::BulkInsertStateData,
) {
    // SAFETY: as for `insert`, for each of the slots.
    unsafe { multi_insert_guarded(rel, slots, count, command, options) }
}

unsafe fn multi_insert_guarded(
    rel: pg_sys::Relation,
    slots: *mut *mut pg_sys::TupleTableSlot,
    count: c_int,
    command: pg_sys::CommandId,
    _options: c_int,
) {
    // SAFETY: PostgreSQL hands over `count` slots, each holding a row of the table.
    let slots = unsafe { std::slice::from_raw_parts(slots, count as usize) };
    if bulk::is_transient(rel) {
        let state = rewrite::prepare(rel);
        for slot in slots {
            // SAFETY: as above.
            unsafe { bulk::rewrite(&state, *slot, command) };
        }
        return;
    }
    let state = TableState::of(rel);
    // SAFETY: as above.
    if unsafe { bulk::gather(&state, slots, command) } {
        // SAFETY: counts on an open relation, so that autovacuum visits the table.
        unsafe { pg_sys::pgstat_count_heap_insert(rel, i64::from(count)) };
        return;
    }
    let delta = open_delta_for_writing(&state);
    for slot in slots {
        in_scratch(|| {
            // SAFETY: as above; the slot's identity is set as heapam does.
            unsafe {
                let row_id = upsert(&state, &delta, *slot, command);
                (**slot).tts_tid = tid::from_row_id(row_id);
                (**slot).tts_tableOid = (*rel).rd_id;
            }
        });
    }
    delta.close();
    // SAFETY: counts on an open relation, so that autovacuum visits the table.
    unsafe { pg_sys::pgstat_count_heap_insert(rel, i64::from(count)) };
}

/// `tuple_insert_speculative`: the planner refuses ON CONFLICT on cass tables before this is reached.
#[pg_guard]
pub unsafe extern "C-unwind" fn insert_speculative(
    _rel: pg_sys::Relation,
    _slot: *mut pg_sys::TupleTableSlot,
    _command: pg_sys::CommandId,
    _options: c_int,
    _bistate: *mut pg_sys::BulkInsertStateData,
    _token: u32,
) {
    raise_on_conflict()
}

/// `tuple_complete_speculative`
#[pg_guard]
pub unsafe extern "C-unwind" fn complete_speculative(
    _rel: pg_sys::Relation,
    _slot: *mut pg_sys::TupleTableSlot,
    _token: u32,
    _succeeded: bool,
) {
    raise_on_conflict()
}

fn raise_on_conflict() -> ! {
    Report::new("0A000", "INSERT ... ON CONFLICT is not supported on cass tables")
        .hint("INSERT alone overwrites the row with the same primary key.")
        .raise()
}

/// `finish_bulk_insert`
#[pg_guard]
pub unsafe extern "C-unwind" fn finish_bulk_insert(rel: pg_sys::Relation, _options: c_int) {
    bulk::finish(rel);
}
