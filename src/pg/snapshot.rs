//! What a snapshot can see.

use pgrx::pg_sys;

/// Whether every transaction before `since` has ended for this snapshot, so that it sees what was so at `since` unless a later
/// transaction has changed it. False for snapshots that do not go by transactions, and for a `since` of two billion
/// transactions ago, which looks like one in the future.
///
/// # Safety
/// `snapshot` is valid.
pub unsafe fn begins_after(snapshot: pg_sys::Snapshot, since: pg_sys::TransactionId) -> bool {
    // SAFETY: promised by the caller.
    unsafe {
        (*snapshot).snapshot_type == pg_sys::SnapshotType::SNAPSHOT_MVCC
            && pg_sys::TransactionIdPrecedesOrEquals(since, (*snapshot).xmin)
    }
}

/// Whether reads must leave their predicate locks, so that none may be left out.
pub fn is_serializable() -> bool {
    // SAFETY: reads a variable of this backend.
    unsafe { pg_sys::XactIsoLevel == pg_sys::XACT_SERIALIZABLE as std::ffi::c_int }
}
