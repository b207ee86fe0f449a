//! Freezing a row in place, so that every snapshot sees it and no rollback takes it away.

use pgrx::pg_sys;

/// Freezes the tuple at `tid`. It must be an inserted one, not an update's new version: those who follow a chain of versions
/// stop before a frozen one.
///
/// The change is logged as a generic one, which every version knows and no standby query needs to be cancelled for: the row is
/// meant for every snapshot.
///
/// # Safety
/// `heap` is an open heap table, and this transaction has inserted the tuple at `tid`.
pub unsafe fn freeze(heap: pg_sys::Relation, tid: pg_sys::ItemPointerData) {
    // SAFETY: the tuple is there: its inserter is running and nobody can have removed it. A copy of the page is changed under
    // the page's exclusive lock, and takes its place when it is logged (PostgreSQL's generic_xlog.c).
    unsafe {
        let block = (u32::from(tid.ip_blkid.bi_hi) << 16) | u32::from(tid.ip_blkid.bi_lo);
        let buffer = pg_sys::ReadBuffer(heap, block);
        pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_EXCLUSIVE as i32);
        let record = pg_sys::GenericXLogStart(heap);
        let page = pg_sys::GenericXLogRegisterBuffer(record, buffer, 0);
        let item = pg_sys::PageGetItemId(page, tid.ip_posid);
        let header = pg_sys::PageGetItem(page, item).cast::<pg_sys::HeapTupleHeaderData>();
        (*header).t_infomask |= (pg_sys::HEAP_XMIN_FROZEN | pg_sys::HEAP_XMAX_INVALID) as u16;
        pg_sys::GenericXLogFinish(record);
        pg_sys::UnlockReleaseBuffer(buffer);
    }
}
