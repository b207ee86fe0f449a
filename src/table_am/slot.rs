//! The slots that hold rows of cass tables: virtual ones that know who wrote their row.
//!
//! Foreign keys ask a row that is updated whether this transaction inserted it; before 18 they ask for its `xmin`.

use crate::error::Report;
use crate::pg::scratch::in_scratch;
use crate::pg::tid;
use crate::read::TableState;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::c_int;
use std::sync::OnceLock;

static OPERATIONS: OnceLock<pg_sys::TupleTableSlotOps> = OnceLock::new();

/// `slot_callbacks`
#[pg_guard]
pub unsafe extern "C-unwind" fn slot_callbacks(_rel: pg_sys::Relation) -> *const pg_sys::TupleTableSlotOps {
    std::ptr::from_ref(OPERATIONS.get_or_init(|| {
        // SAFETY: a constant of PostgreSQL.
        let mut operations = unsafe { pg_sys::TTSOpsVirtual };
        operations.getsysattr = Some(system_attribute);
        #[cfg(feature = "pg18")]
        {
            operations.is_current_xact_tuple = Some(is_of_this_transaction);
        }
        operations
    }))
}

/// `getsysattr`: `xmin`, looked up; the other ones that a slot does not carry itself are errors, as for any virtual slot.
#[pg_guard]
unsafe extern "C-unwind" fn system_attribute(
    slot: *mut pg_sys::TupleTableSlot,
    attribute: c_int,
    is_null: *mut bool,
) -> pg_sys::Datum {
    // SAFETY: PostgreSQL hands over a slot that holds a row and room for the answer. A slot's row is of a table that the
    // statement has locked, unless it is of none.
    unsafe {
        if attribute == pg_sys::MinTransactionIdAttributeNumber {
            if let Some(writer) = writer_of(slot) {
                *is_null = false;
                return pg_sys::Datum::from(writer);
            }
        }
        match pg_sys::TTSOpsVirtual.getsysattr {
            Some(of_virtual) => of_virtual(slot, attribute, is_null),
            None => Report::new("0A000", "cass tables have no such system column").raise(),
        }
    }
}

/// `is_current_xact_tuple`: whether this transaction wrote the row.
#[cfg(feature = "pg18")]
#[pg_guard]
unsafe extern "C-unwind" fn is_of_this_transaction(slot: *mut pg_sys::TupleTableSlot) -> bool {
    // SAFETY: as for `system_attribute`.
    unsafe { writer_of(slot).is_some_and(|writer| pg_sys::TransactionIdIsCurrentTransactionId(writer)) }
}

/// The transaction that wrote the row of a slot; `None` if that is a row of no table.
///
/// # Safety
/// A table whose row the slot holds is a cass table that is locked.
unsafe fn writer_of(slot: *mut pg_sys::TupleTableSlot) -> Option<pg_sys::TransactionId> {
    // SAFETY: promised by the caller.
    unsafe {
        let row_id = tid::to_row_id((*slot).tts_tid)?;
        ((*slot).tts_tableOid != pg_sys::InvalidOid).then(|| writer((*slot).tts_tableOid, row_id))
    }
}

/// The transaction that wrote a version: that of its delta row; in a segment it is visible to everyone, as frozen rows are.
///
/// # Safety
/// `table` is a cass table that is locked.
unsafe fn writer(table: pg_sys::Oid, row_id: u64) -> pg_sys::TransactionId {
    // SAFETY: promised by the caller.
    let rel = unsafe { pg_sys::table_open(table, pg_sys::NoLock as pg_sys::LOCKMODE) };
    let state = TableState::of(rel);
    let found = state.open_delta();
    let writer = found.and_then(|delta| {
        let writer = in_scratch(|| delta.writer_of_row_id(row_id));
        delta.close();
        writer
    });
    // SAFETY: opened above.
    unsafe { pg_sys::table_close(rel, pg_sys::NoLock as pg_sys::LOCKMODE) };
    writer.unwrap_or(pg_sys::FrozenTransactionId)
}
