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

/// The snapshot that all statements of the transaction read by, under REPEATABLE READ and SERIALIZABLE.
pub fn of_transaction() -> Option<pg_sys::Snapshot> {
    // SAFETY: called inside a transaction, whose snapshot lasts as long.
    unsafe {
        let lasts = pg_sys::XactIsoLevel >= pg_sys::XACT_REPEATABLE_READ as std::ffi::c_int;
        lasts.then(|| pg_sys::GetTransactionSnapshot())
    }
}

/// Whether a transaction that is known to have committed had not ended for this snapshot. False for this transaction, and for an
/// id of two billion transactions ago, which looks like one in the future.
///
/// # Safety
/// `snapshot` is a valid MVCC snapshot.
pub unsafe fn committed_after(xid: pg_sys::TransactionId, snapshot: pg_sys::Snapshot) -> bool {
    // SAFETY: promised by the caller.
    unsafe {
        !pg_sys::TransactionIdIsCurrentTransactionId(xid)
            && pg_sys::TransactionIdPrecedes(xid, pg_sys::ReadNextTransactionId())
            && pg_sys::XidInMVCCSnapshot(xid, snapshot)
    }
}

/// Whether reads must leave their predicate locks, so that none may be left out.
pub fn is_serializable() -> bool {
    // SAFETY: reads a variable of this backend.
    unsafe { pg_sys::XactIsoLevel == pg_sys::XACT_SERIALIZABLE as std::ffi::c_int }
}
