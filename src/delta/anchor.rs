//! Anchors: delta rows that hold a key's lock while its row lies in a segment.
//!
//! An anchor is inserted speculatively. Once its entry in the unique index has won, it is frozen in place: it then
//! belongs to no transaction, outlives a rollback, and can be locked and updated by all. Inserting it frozen at once
//! would not do: an aborted one would stay visible.

use super::write::insert_unique;
use super::Delta;
use crate::pg::externs::{log_heap_freeze, page_set_lsn, FreezeTuple};
use cass_storage::row::{RowBuilder, RowHeader, RowKind};
use pgrx::pg_sys;

/// Puts an anchor for `key` into the delta. Nothing happens where another row of the key was faster.
pub fn win(delta: &Delta, key: &[u8], command: pg_sys::CommandId) {
    crate::pg::scratch::in_scratch(|| {
        let header =
            RowHeader { kind: RowKind::Anchor, row_id: 0, write_time: 0, marker: false, expiry: None, natts: 0 };
        let tuple = delta.form_tuple(key, 0, RowKind::Anchor, &RowBuilder::new(header).encode());
        if insert_unique(delta, tuple, key, command) {
            // SAFETY: heap_insert has set the tuple's TID.
            freeze(delta, unsafe { (*tuple).t_self });
        }
    });
}

/// Freezes the tuple at `tid`, which this transaction has just inserted.
fn freeze(delta: &Delta, tid: pg_sys::ItemPointerData) {
    // SAFETY: the tuple is there: its inserter is running and nobody can have removed it. The page is changed under its
    // exclusive lock and logged in the same critical section.
    unsafe {
        let block = (u32::from(tid.ip_blkid.bi_hi) << 16) | u32::from(tid.ip_blkid.bi_lo);
        let buffer = pg_sys::ReadBuffer(delta.heap, block);
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
        // Readers pass anchors over, so no standby query needs to be cancelled: the cutoff is the oldest there is.
        let cutoff = (*(*delta.heap).rd_rel).relfrozenxid;
        let logged = (*(*delta.heap).rd_rel).relpersistence == pg_sys::RELPERSISTENCE_PERMANENT as std::ffi::c_char;
        pg_sys::CritSectionCount += 1;
        (*header).t_infomask = freeze.infomask;
        pg_sys::MarkBufferDirty(buffer);
        if logged {
            let lsn = log_heap_freeze(delta.heap, buffer, cutoff, std::slice::from_mut(&mut freeze));
            page_set_lsn(page, lsn);
        }
        pg_sys::CritSectionCount -= 1;
        pg_sys::UnlockReleaseBuffer(buffer);
    }
}
