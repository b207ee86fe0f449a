//! Makes what VACUUM writes count.

use pgrx::pg_sys;

/// Place of ProcArrayLock among the main lightweight locks (PostgreSQL 15's lwlocknames.txt).
const PROC_ARRAY_LOCK: usize = 4;

/// Undoes `vacuum_rel`'s announcement that this transaction writes no rows.
///
/// PostgreSQL leaves a backend with PROC_IN_VACUUM out of snapshots and horizons: a transaction that starts meanwhile would not
/// count it as running, and rows it writes are then taken for those of a crashed transaction and lost. Clearing the flag, as
/// it was set, under ProcArrayLock, makes this an ordinary writer. Snapshots taken before were not protected: take a new one
/// before anything is read.
pub fn become_a_writer() {
    // SAFETY: this backend's own entries, changed under the lock that guards them, as vacuum_rel and ProcArrayEndTransaction
    // do; nothing between acquiring and releasing can raise an error.
    unsafe {
        let lock = &raw mut (*pg_sys::MainLWLockArray.add(PROC_ARRAY_LOCK)).lock;
        pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
        (*pg_sys::MyProc).statusFlags &= !(pg_sys::PROC_IN_VACUUM as u8);
        let flags = (*pg_sys::ProcGlobal).statusFlags.add((*pg_sys::MyProc).pgxactoff as usize);
        *flags = (*pg_sys::MyProc).statusFlags;
        pg_sys::LWLockRelease(lock);
    }
}
