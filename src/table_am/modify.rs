//! UPDATE and DELETE of one row.

use super::insert::{insert_new, open_delta_for_writing, release_replaced};
use super::{row_ids, version};
use crate::delta::write::{self, LockRequest, NewVersion, Newest, Refused};
use crate::delta::Delta;
use crate::pg::scratch::in_scratch;
use crate::pg::tid;
use crate::pg::versions::heap;
use crate::read::segments::LatestSegments;
use crate::read::{point, rewritten, TableState};
use cass_storage::row::RowKind;
use pgrx::pg_sys;
use pgrx::prelude::*;

/// How an UPDATE or DELETE of a row version turned out.
pub enum Verdict {
    /// The version is the newest one and held.
    Held(Newest),
    /// It is not, for a reason PostgreSQL knows how to deal with.
    Failed(pg_sys::TM_Result::Type),
}

/// What is to be changed, as PostgreSQL's callbacks say it.
pub struct Target<'a> {
    pub state: &'a TableState,
    pub delta: &'a Delta,
    pub row_id: u64,
    pub key: &'a [u8],
    pub command: pg_sys::CommandId,
    pub wait: bool,
    /// A snapshot that must see the row too, or null (foreign keys under REPEATABLE READ).
    pub crosscheck: pg_sys::Snapshot,
}

impl Target<'_> {
    /// Holds the key and judges whether the version is still the newest one; fills `failure` where it is not.
    pub fn hold(&self, mode: pg_sys::LockTupleMode::Type, failure: &mut pg_sys::TM_FailureData) -> Verdict {
        let wait = if self.wait { pg_sys::LockWaitPolicy::LockWaitBlock } else { pg_sys::LockWaitPolicy::LockWaitSkip };
        let request = LockRequest { mode, wait, command: self.command };
        let segments = LatestSegments::of(self.state);
        let held = match write::hold(self.delta, self.key, request, self.crosscheck, &segments, true) {
            Ok(held) => held,
            Err(Refused::WouldBlock) => return Verdict::Failed(pg_sys::TM_Result::TM_BeingModified),
            Err(Refused::Invisible(version)) => {
                let result = self_modified(&version, self.row_id, failure);
                return Verdict::Failed(result);
            }
        };
        failure.traversed = false;
        failure.xmax = pg_sys::InvalidTransactionId;
        failure.cmax = pg_sys::InvalidCommandId;
        failure.ctid = tid::from_row_id(held.row.map_or(self.row_id, |(row_id, _)| row_id));
        match held.live_row_id() {
            Some(newest) if newest == self.row_id => {
                let unseen = !self.crosscheck.is_null() && !held.visible;
                if !held.own && (unseen || rewritten::after_snapshot(self.state)) {
                    return Verdict::Failed(pg_sys::TM_Result::TM_Updated);
                }
                Verdict::Held(held)
            }
            Some(_) => Verdict::Failed(pg_sys::TM_Result::TM_Updated),
            None => {
                held.raise_if_moved();
                Verdict::Failed(pg_sys::TM_Result::TM_Deleted)
            }
        }
    }
}

/// The answer for a row whose newest version this command, or a later one of this transaction, wrote.
pub fn self_modified(
    newest: &crate::delta::probe::Version,
    row_id: u64,
    failure: &mut pg_sys::TM_FailureData,
) -> pg_sys::TM_Result::Type {
    if newest.row_id == row_id {
        return pg_sys::TM_Result::TM_Invisible;
    }
    failure.traversed = false;
    failure.ctid = tid::from_row_id(newest.row_id);
    // SAFETY: reads this transaction's id, which it has, since it wrote the version.
    failure.xmax = unsafe { pg_sys::GetCurrentTransactionId() };
    failure.cmax = newest.own_command.unwrap_or(pg_sys::InvalidCommandId);
    pg_sys::TM_Result::TM_SelfModified
}

/// `tuple_delete`
#[pg_guard]
pub unsafe extern "C-unwind" fn delete(
    rel: pg_sys::Relation,
    tid: pg_sys::ItemPointer,
    command: pg_sys::CommandId,
    _snapshot: pg_sys::Snapshot,
    crosscheck: pg_sys::Snapshot,
    wait: bool,
    failure: *mut pg_sys::TM_FailureData,
    _changing_partition: bool,
) -> pg_sys::TM_Result::Type {
    let state = TableState::of(rel);
    // SAFETY: PostgreSQL hands over a valid TID and room for the failure's data.
    let (row_id, failure) = unsafe { (tid::to_row_id(*tid), &mut *failure) };
    let Some((row_id, key)) = row_id.and_then(|id| Some((id, point::key_of_row_id(&state, id)?))) else {
        return pg_sys::TM_Result::TM_Deleted;
    };
    let delta = open_delta_for_writing(&state);
    let target = Target { state: &state, delta: &delta, row_id, key: &key, command, wait, crosscheck };
    let result = in_scratch(|| loop {
        let held = match target.hold(pg_sys::LockTupleMode::LockTupleExclusive, failure) {
            Verdict::Held(held) => held,
            Verdict::Failed(result) => break result,
        };
        if store_tombstone(&target, &held, RowKind::RowTombstone) {
            release_replaced(&state, &held);
            break pg_sys::TM_Result::TM_Ok;
        }
    });
    delta.close();
    if result == pg_sys::TM_Result::TM_Ok {
        // SAFETY: counts on an open relation.
        unsafe { pg_sys::pgstat_count_heap_delete(rel) };
    }
    result
}

fn store_tombstone(target: &Target<'_>, held: &Newest, kind: RowKind) -> bool {
    let row_id = row_ids::next(target.state);
    let row = version::encode_tombstone(kind, row_id);
    let new = NewVersion { key: target.key, row_id, kind, row: &row };
    write::store(target.delta, held, &new, target.command)
}

/// `tuple_update`. A change of the primary key is a DELETE and an INSERT of a key that must be free.
#[pg_guard]
pub unsafe extern "C-unwind" fn update(
    rel: pg_sys::Relation,
    old_tid: pg_sys::ItemPointer,
    slot: *mut pg_sys::TupleTableSlot,
    command: pg_sys::CommandId,
    _snapshot: pg_sys::Snapshot,
    crosscheck: pg_sys::Snapshot,
    wait: bool,
    failure: *mut pg_sys::TM_FailureData,
    lock_mode: *mut pg_sys::LockTupleMode::Type,
    update_indexes: *mut heap::UpdateIndexes,
) -> pg_sys::TM_Result::Type {
    let state = TableState::of(rel);
    // SAFETY: PostgreSQL hands over a valid TID, a slot that holds the new row, and room for its answers.
    let (old_id, failure) = unsafe { (tid::to_row_id(*old_tid), &mut *failure) };
    let Some((row_id, key)) = old_id.and_then(|id| Some((id, point::key_of_row_id(&state, id)?))) else {
        return pg_sys::TM_Result::TM_Deleted;
    };
    let delta = open_delta_for_writing(&state);
    let target = Target { state: &state, delta: &delta, row_id, key: &key, command, wait, crosscheck };
    // SAFETY: as above.
    let result = in_scratch(|| unsafe { update_row(&target, slot, failure, &mut *lock_mode) });
    delta.close();
    if result == pg_sys::TM_Result::TM_Ok {
        // SAFETY: counts on an open relation; the new version has an id of its own, so every index needs an entry.
        unsafe {
            *update_indexes = heap::UPDATE_ALL_INDEXES;
            crate::pg::versions::statistics::count_update(rel);
        }
    }
    result
}

/// # Safety
/// `slot` holds a row of the table.
unsafe fn update_row(
    target: &Target<'_>,
    slot: *mut pg_sys::TupleTableSlot,
    failure: &mut pg_sys::TM_FailureData,
    lock_mode: &mut pg_sys::LockTupleMode::Type,
) -> pg_sys::TM_Result::Type {
    let state = target.state;
    // SAFETY: promised by the caller.
    let values = unsafe { version::Values::of_slot(slot) };
    let new_id = row_ids::next(state);
    let new_key = match &state.key {
        Some(_) => state.encode_key(&values.values, &values.nulls, new_id).bytes,
        None => target.key.to_vec(),
    };
    let moves = new_key != target.key;
    *lock_mode =
        if moves { pg_sys::LockTupleMode::LockTupleExclusive } else { pg_sys::LockTupleMode::LockTupleNoKeyExclusive };
    let mut encoded: Option<Vec<u8>> = None;
    loop {
        let held = match target.hold(*lock_mode, failure) {
            Verdict::Held(held) => held,
            Verdict::Failed(result) => return result,
        };
        let stored = if moves {
            store_tombstone(target, &held, RowKind::Moved)
        } else {
            // SAFETY: promised by the caller.
            let row = encoded.get_or_insert_with(|| unsafe { version::encode(state, &values, new_id) });
            let new = NewVersion { key: target.key, row_id: new_id, kind: RowKind::Row, row };
            write::store(target.delta, &held, &new, target.command)
        };
        if !stored {
            continue;
        }
        if !moves {
            release_replaced(state, &held);
        } else {
            // The values are read once more before the old version gives them back.
            // SAFETY: promised by the caller.
            unsafe { insert_new(state, target.delta, &new_key, &values, new_id, target.command) };
            release_replaced(state, &held);
        }
        point::remember(state.storage_id, new_id, &new_key);
        // SAFETY: the slot is valid; its identity is set as heapam does.
        unsafe {
            (*slot).tts_tid = tid::from_row_id(new_id);
            (*slot).tts_tableOid = (*state.rel).rd_id;
        }
        return pg_sys::TM_Result::TM_Ok;
    }
}
