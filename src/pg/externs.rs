//! PostgreSQL functions that pgrx does not bind.

use pgrx::pg_guard;
use pgrx::pg_sys;

/// One tuple to freeze, as WAL carries it (`xl_heap_freeze_tuple` in `src/include/access/heapam_xlog.h`).
#[repr(C)]
pub struct FreezeTuple {
    pub xmax: pg_sys::TransactionId,
    pub offset: pg_sys::OffsetNumber,
    pub infomask2: u16,
    pub infomask: u16,
    pub flags: u8,
}

#[pg_guard]
extern "C-unwind" {
    /// `src/backend/access/heap/heapam.c`: logs the freezing of tuples of one page.
    pub fn log_heap_freeze(
        relation: pg_sys::Relation,
        buffer: pg_sys::Buffer,
        cutoff_xid: pg_sys::TransactionId,
        tuples: *mut FreezeTuple,
        count: std::ffi::c_int,
    ) -> pg_sys::XLogRecPtr;

    /// `src/backend/access/heap/heaptoast.c`: compresses and moves out large attributes of a tuple.
    pub fn heap_toast_insert_or_update(
        relation: pg_sys::Relation,
        new_tuple: pg_sys::HeapTuple,
        old_tuple: pg_sys::HeapTuple,
        options: std::ffi::c_int,
    ) -> pg_sys::HeapTuple;
}
