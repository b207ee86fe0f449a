//! Anchors: delta rows that hold a key's lock while its row lies in a segment.
//!
//! An anchor is inserted speculatively. Once its entry in the unique index has won, it is frozen in place: it then
//! belongs to no transaction, outlives a rollback, and can be locked and updated by all. Inserting it frozen at once
//! would not do: an aborted one would stay visible.

use super::write::insert_unique;
use super::Delta;
use crate::pg::freeze::freeze;
use crate::pg::injection::point;
use cass_storage::row::{RowBuilder, RowHeader, RowKind};
use pgrx::pg_sys;

/// Puts an anchor for `key` into the delta. Nothing happens where another row of the key was faster.
pub fn win(delta: &Delta, key: &[u8], command: pg_sys::CommandId) {
    crate::pg::scratch::in_scratch(|| {
        let header =
            RowHeader { kind: RowKind::Anchor, row_id: 0, write_time: 0, marker: false, expiry: None, natts: 0 };
        let tuple = delta.form_tuple(key, 0, RowKind::Anchor, &RowBuilder::new(header).encode());
        if insert_unique(delta, tuple, key, command) {
            point("anchor-won");
            // SAFETY: heap_insert has set the tuple's TID; the delta is open.
            unsafe { freeze(delta.heap, (*tuple).t_self) };
        }
    });
}
