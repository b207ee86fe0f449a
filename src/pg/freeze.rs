//! Freezing a row in place, so that every snapshot sees it and no rollback takes it away.

use super::versions;
use pgrx::pg_sys;

/// Freezes the tuple at `tid`. It must be an inserted one, not an update's new version: those who follow a chain of versions
/// stop before a frozen one.
///
/// # Safety
/// `heap` is an open heap table, and this transaction has inserted the tuple at `tid`.
pub unsafe fn freeze(heap: pg_sys::Relation, tid: pg_sys::ItemPointerData) {
    // SAFETY: the tuple is there: its inserter is running and nobody can have removed it. The page is changed under its
    // exclusive lock.
    unsafe {
        let block = (u32::from(tid.ip_blkid.bi_hi) << 16) | u32::from(tid.ip_blkid.bi_lo);
        let buffer = pg_sys::ReadBuffer(heap, block);
        pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_EXCLUSIVE as i32);
        versions::freeze::freeze(heap, buffer, tid.ip_posid);
        pg_sys::UnlockReleaseBuffer(buffer);
    }
}
