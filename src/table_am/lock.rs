//! SELECT ... FOR UPDATE and its kin, and the lock before EvalPlanQual.

use super::insert::open_delta_for_writing;
use super::modify::self_modified;
use crate::delta::write::{self, LockRequest, Refused};
use crate::error::Report;
use crate::pg::scratch::in_scratch;
use crate::pg::tid;
use crate::read::segments::LatestSegments;
use crate::read::state::name;
use crate::read::{point, rewritten, TableState};
use pgrx::pg_sys;
use pgrx::prelude::*;

/// `tuple_lock`. The newest version of the row's key is locked; `TM_Updated` says that it is not the one asked for, unless
/// the caller wants the newest in any case.
#[pg_guard]
pub unsafe extern "C-unwind" fn lock(
    rel: pg_sys::Relation,
    tid: pg_sys::ItemPointer,
    _snapshot: pg_sys::Snapshot,
    slot: *mut pg_sys::TupleTableSlot,
    command: pg_sys::CommandId,
    mode: pg_sys::LockTupleMode::Type,
    wait: pg_sys::LockWaitPolicy::Type,
    flags: u8,
    failure: *mut pg_sys::TM_FailureData,
) -> pg_sys::TM_Result::Type {
    let state = TableState::of(rel);
    // SAFETY: PostgreSQL hands over a valid TID, which it reads again afterwards, and room for the failure's data.
    let (tid, failure) = unsafe { (&mut *tid, &mut *failure) };
    failure.traversed = false;
    let Some((row_id, key)) = tid::to_row_id(*tid).and_then(|id| Some((id, point::key_of_row_id(&state, id)?))) else {
        return pg_sys::TM_Result::TM_Deleted;
    };
    let delta = open_delta_for_writing(&state);
    let request = LockRequest { mode, wait, command };
    let segments = LatestSegments::of(&state);
    let held = in_scratch(|| write::hold(&delta, &key, request, std::ptr::null_mut(), &segments, true));
    delta.close();
    let held = match held {
        Ok(held) => held,
        Err(Refused::Invisible(version)) => return self_modified(&version, row_id, failure),
        Err(Refused::WouldBlock) if wait == pg_sys::LockWaitPolicy::LockWaitSkip => {
            return pg_sys::TM_Result::TM_WouldBlock;
        }
        Err(Refused::WouldBlock) => {
            Report::new("55P03", format!("could not obtain lock on row in relation \"{}\"", name(rel))).raise()
        }
    };
    let Some(newest) = held.live_row_id() else {
        held.raise_if_moved();
        failure.ctid = *tid;
        return pg_sys::TM_Result::TM_Deleted;
    };
    failure.ctid = tid::from_row_id(newest);
    failure.xmax = pg_sys::InvalidTransactionId;
    failure.cmax = pg_sys::InvalidCommandId;
    if newest != row_id {
        if u32::from(flags) & pg_sys::TUPLE_LOCK_FLAG_FIND_LAST_VERSION == 0 {
            return pg_sys::TM_Result::TM_Updated;
        }
        failure.traversed = true;
        *tid = failure.ctid;
    }
    if !held.own && rewritten::after_snapshot(&state) {
        return pg_sys::TM_Result::TM_Updated;
    }
    // SAFETY: PostgreSQL hands over a slot of the table's type.
    if unsafe { point::store_version(&state, newest, &key, slot) } {
        pg_sys::TM_Result::TM_Ok
    } else {
        pg_sys::TM_Result::TM_Deleted
    }
}
