//! Freezing a row in place, so that every snapshot sees it and no rollback takes it away.

use super::externs::{log_heap_freeze, page_set_lsn, FreezeTuple};
use crate::segment::relation::needs_wal;
use pgrx::pg_sys;

/// Freezes the tuple at `tid`. It must be an inserted one, not an update's new version: those who follow a chain of versions
/// stop before a frozen one.
///
/// # Safety
/// `heap` is an open heap table, and this transaction has inserted the tuple at `tid`.
pub unsafe fn freeze(heap: pg_sys::Relation, tid: pg_sys::ItemPointerData) {
    // SAFETY: the tuple is there: its inserter is running and nobody can have removed it. The page is changed under its
    // exclusive lock and logged in the same critical section.
    unsafe {
        let block = (u32::from(tid.ip_blkid.bi_hi) << 16) | u32::from(tid.ip_blkid.bi_lo);
        let buffer = pg_sys::ReadBuffer(heap, block);
        pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_EXCLUSIVE as i32);
        let page = pg_sys::BufferGetPage(buffer);
        let item = pg_sys::PageGetItemId(page, tid.ip_posid);
        let header = pg_sys::PageGetItem(page, item).cast::<pg_sys::HeapTupleHeaderData>();
        let mut freeze = FreezeTuple {
            xmax: pg_sys::InvalidTransactionId,
            offset: tid.ip_posid,
            infomask2: (*header).t_infomask2,
            infomask: (*header).t_infomask | (pg_sys::HEAP_XMIN_FROZEN | pg_sys::HEAP_XMAX_INVALID) as u16,
            flags: 0,
        };
        // The row is meant for every snapshot, so no standby query needs to be cancelled: the cutoff is the oldest there is.
        let cutoff = (*(*heap).rd_rel).relfrozenxid;
        let logged = needs_wal(heap);
        pg_sys::CritSectionCount += 1;
        (*header).t_infomask = freeze.infomask;
        pg_sys::MarkBufferDirty(buffer);
        if logged {
            let lsn = log_heap_freeze(heap, buffer, cutoff, std::slice::from_mut(&mut freeze));
            page_set_lsn(page, lsn);
        }
        pg_sys::CritSectionCount -= 1;
        pg_sys::UnlockReleaseBuffer(buffer);
    }
}
