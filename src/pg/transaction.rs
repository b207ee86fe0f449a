//! Hearing of aborted transactions. An error jumps over the frames of hooks that call on without a guard, so what those have
//! noted about a running statement is taken away here.

use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::c_void;

/// Forgets what belongs to subtransactions of this nesting level and deeper; 0 is everything.
pub type Forget = fn(i32);

/// Lets `forget` be called whenever a transaction or subtransaction aborts. Called from `_PG_init`.
pub fn when_aborted(forget: Forget) {
    // SAFETY: the callbacks live as long as the process and get the function they were registered with.
    unsafe {
        pg_sys::RegisterXactCallback(Some(transaction_ended), forget as *mut c_void);
        pg_sys::RegisterSubXactCallback(Some(subtransaction_ended), forget as *mut c_void);
    }
}

/// # Safety
/// `argument` is what [`when_aborted`] registered.
unsafe fn forget_of(argument: *mut c_void) -> Forget {
    // SAFETY: promised by the caller; the pointer was made from such a function.
    unsafe { std::mem::transmute::<*mut c_void, Forget>(argument) }
}

/// Statements that commit on their way (REINDEX CONCURRENTLY) go on, so a commit takes nothing away.
#[pg_guard]
unsafe extern "C-unwind" fn transaction_ended(event: pg_sys::XactEvent::Type, argument: *mut c_void) {
    if matches!(event, pg_sys::XactEvent::XACT_EVENT_ABORT | pg_sys::XactEvent::XACT_EVENT_PARALLEL_ABORT) {
        // SAFETY: the callback was registered by `when_aborted`.
        unsafe { forget_of(argument)(0) };
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn subtransaction_ended(
    event: pg_sys::SubXactEvent::Type,
    _subtransaction: pg_sys::SubTransactionId,
    _parent: pg_sys::SubTransactionId,
    argument: *mut c_void,
) {
    if event == pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB {
        // SAFETY: reads the level of the subtransaction that is being aborted; registered by `when_aborted`.
        unsafe { forget_of(argument)(pg_sys::GetCurrentTransactionNestLevel()) };
    }
}
