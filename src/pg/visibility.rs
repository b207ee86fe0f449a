//! What a heap tuple's header tells of its place among transactions.

use pgrx::pg_sys;

/// Whether a tuple is the same to every snapshot: seen by all, or by none. For tuples that nobody is writing or deleting.
///
/// `horizon` is a transaction before which all have ended for every snapshot.
///
/// # Safety
/// `header` is the header of a tuple on a pinned page.
pub unsafe fn is_same_to_all(header: pg_sys::HeapTupleHeader, horizon: pg_sys::TransactionId) -> bool {
    // SAFETY: promised by the caller.
    unsafe {
        let xmin = pg_sys::htup::HeapTupleHeaderGetXmin(header);
        match outcome(xmin, horizon) {
            Outcome::Aborted => return true,
            Outcome::Unsettled => return false,
            Outcome::Committed => {}
        }
        let flags = u32::from((*header).t_infomask);
        let xmax = (*header).t_choice.t_heap.t_xmax;
        let deleted = flags & (pg_sys::HEAP_XMAX_INVALID | pg_sys::HEAP_XMAX_LOCK_ONLY) == 0
            && xmax != pg_sys::InvalidTransactionId;
        // Several at once are not looked into.
        !deleted || (flags & pg_sys::HEAP_XMAX_IS_MULTI == 0 && !matches!(outcome(xmax, horizon), Outcome::Unsettled))
    }
}

enum Outcome {
    /// Committed for every snapshot.
    Committed,
    Aborted,
    /// In progress, this transaction included, or not yet ended for some snapshot.
    Unsettled,
}

fn outcome(xid: pg_sys::TransactionId, horizon: pg_sys::TransactionId) -> Outcome {
    // SAFETY: look-ups of the state of a transaction that a tuple names. In progress is asked first, as
    // `HeapTupleSatisfiesVacuum` does: who ends says so in the log before it leaves the running ones.
    unsafe {
        if pg_sys::TransactionIdIsCurrentTransactionId(xid) || pg_sys::TransactionIdIsInProgress(xid) {
            Outcome::Unsettled
        } else if !pg_sys::TransactionIdDidCommit(xid) {
            Outcome::Aborted
        } else if pg_sys::TransactionIdPrecedes(xid, horizon) {
            Outcome::Committed
        } else {
            Outcome::Unsettled
        }
    }
}
