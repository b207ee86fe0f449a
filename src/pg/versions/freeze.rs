//! Writing and logging the freezing of one row: a record of its own in PostgreSQL 15. Later versions log it inside the
//! record of a page's pruning, by functions that are not exported, so there it is a generic record.

#[cfg(not(feature = "pg15"))]
pub use generic::freeze;
#[cfg(feature = "pg15")]
pub use own_record::freeze;

use pgrx::pg_sys;

/// # Safety
/// `page` is a heap page with a row at `offset`.
unsafe fn header_at(page: pg_sys::Page, offset: pg_sys::OffsetNumber) -> *mut pg_sys::HeapTupleHeaderData {
    // SAFETY: promised by the caller.
    unsafe { pg_sys::PageGetItem(page, pg_sys::PageGetItemId(page, offset)).cast() }
}

/// The flags of a frozen row that nobody has deleted, beside those it had.
fn frozen(infomask: u16) -> u16 {
    infomask | (pg_sys::HEAP_XMIN_FROZEN | pg_sys::HEAP_XMAX_INVALID) as u16
}

#[cfg(feature = "pg15")]
mod own_record {
    use super::{frozen, header_at};
    use crate::segment::relation::needs_wal;
    use pgrx::pg_sys;
    use std::ffi::c_int;

    /// One tuple to freeze, as WAL carries it (`xl_heap_freeze_tuple` in `src/include/access/heapam_xlog.h`).
    #[repr(C)]
    struct FreezeTuple {
        xmax: pg_sys::TransactionId,
        offset: pg_sys::OffsetNumber,
        infomask2: u16,
        infomask: u16,
        flags: u8,
    }

    /// Sets a page's LSN (`PageSetLSN` of `bufpage.h`).
    ///
    /// # Safety
    /// `page` is a page whose buffer is locked exclusively.
    unsafe fn page_set_lsn(page: pg_sys::Page, lsn: pg_sys::XLogRecPtr) {
        let header = page.cast::<pg_sys::PageHeaderData>();
        // SAFETY: promised by the caller.
        unsafe {
            (*header).pd_lsn = pg_sys::PageXLogRecPtr { xlogid: (lsn >> 32) as u32, xrecoff: lsn as u32 };
        }
    }

    unsafe extern "C-unwind" {
        /// `src/backend/access/heap/heapam.c`
        fn log_heap_freeze(
            relation: pg_sys::Relation,
            buffer: pg_sys::Buffer,
            cutoff_xid: pg_sys::TransactionId,
            tuples: *mut FreezeTuple,
            count: c_int,
        ) -> pg_sys::XLogRecPtr;
    }

    /// Freezes the row at `offset` of a page.
    ///
    /// # Safety
    /// `heap` is open, the buffer holds a page of it under an exclusive lock, and there is a row at `offset`.
    pub unsafe fn freeze(heap: pg_sys::Relation, buffer: pg_sys::Buffer, offset: pg_sys::OffsetNumber) {
        // SAFETY: promised by the caller. The page is changed and logged in one critical section.
        unsafe {
            let page = pg_sys::BufferGetPage(buffer);
            let header = header_at(page, offset);
            let mut freeze = FreezeTuple {
                xmax: pg_sys::InvalidTransactionId,
                offset,
                infomask2: (*header).t_infomask2,
                infomask: frozen((*header).t_infomask),
                flags: 0,
            };
            // The row is meant for every snapshot, so no standby query needs to be cancelled: the cutoff is the oldest there is.
            let cutoff = (*(*heap).rd_rel).relfrozenxid;
            let logged = needs_wal(heap);
            pg_sys::CritSectionCount += 1;
            (*header).t_infomask = freeze.infomask;
            pg_sys::MarkBufferDirty(buffer);
            if logged {
                let lsn = log_heap_freeze(heap, buffer, cutoff, &raw mut freeze, 1);
                page_set_lsn(page, lsn);
            }
            pg_sys::CritSectionCount -= 1;
        }
    }
}

#[cfg(not(feature = "pg15"))]
mod generic {
    use super::{frozen, header_at};
    use pgrx::pg_sys;

    /// Freezes the row at `offset` of a page.
    ///
    /// # Safety
    /// `heap` is open, the buffer holds a page of it under an exclusive lock, and there is a row at `offset`.
    pub unsafe fn freeze(heap: pg_sys::Relation, buffer: pg_sys::Buffer, offset: pg_sys::OffsetNumber) {
        // SAFETY: promised by the caller. What is changed is generic_xlog.c's copy of the page, which it puts in the page's
        // place and logs, where the relation is logged, in one critical section.
        unsafe {
            let change = pg_sys::GenericXLogStart(heap);
            let header = header_at(pg_sys::GenericXLogRegisterBuffer(change, buffer, 0), offset);
            (*header).t_infomask = frozen((*header).t_infomask);
            pg_sys::GenericXLogFinish(change);
        }
    }
}
