//! What every read and write needs to know of a table.

use crate::catalog::{self, EncodedKey, Table, TableKey};
use crate::delta::{lost, Delta, ForReading};
use crate::error::Report;
use crate::segment::{metapage, visibility_map};
use cass_storage::StorageError;
use pgrx::pg_sys;
use std::rc::Rc;

/// An open table: its columns, the key its rows are stored by, and which life of it counts.
#[derive(Clone)]
pub struct TableState {
    pub rel: pg_sys::Relation,
    pub table: Rc<Table>,
    pub storage_id: u64,
    /// The key the stored rows are placed by; `None` while the table is unplaced (it has no primary key yet).
    pub key: Option<Rc<TableKey>>,
}

impl TableState {
    /// The state of an open and locked table.
    ///
    /// # Errors
    /// XX002 where the rows are stored by another key than the one declared.
    pub fn of(rel: pg_sys::Relation) -> TableState {
        Self::of_layout(rel, metapage::identity(rel).layout)
    }

    /// The state of a table whose rows are stored by the key with this fingerprint, 0 for none.
    ///
    /// # Errors
    /// As [`TableState::of`].
    pub fn of_layout(rel: pg_sys::Relation, layout: u64) -> TableState {
        // SAFETY: the caller holds the table open and locked.
        let table = unsafe { catalog::table_of(rel) };
        let key = match (&table.key, layout) {
            (_, 0) => None,
            (Some(key), layout) if key.layout == layout => Some(key.clone()),
            _ => Report::new(
                "XX002",
                format!("the rows of table \"{}\" are stored by another key than its primary key", name(rel)),
            )
            .hint("Restore the primary key the table was written with.")
            .raise(),
        };
        TableState { rel, table, storage_id: metapage::identity(rel).storage_id, key }
    }

    /// The key of a row: the row id in an unplaced table.
    pub fn encode_key(&self, values: &[pg_sys::Datum], nulls: &[bool], row_id: u64) -> EncodedKey {
        match &self.key {
            Some(key) => key.encode_row(values, nulls),
            None => EncodedKey { bytes: row_id.to_be_bytes().to_vec(), partition_len: 0 },
        }
    }

    /// The partition's part of a key, for filters.
    pub fn partition_of<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        let length = self.key.as_ref()?.partition_len(key)?;
        key.get(..length)
    }

    /// Opens the delta for a read by `snapshot`, which is valid; `None` where that sees no rows in it.
    ///
    /// # Errors
    /// Those of [`TableState::open_delta`].
    pub fn open_delta_for(&self, snapshot: pg_sys::Snapshot) -> Option<Delta> {
        if visibility_map::delta_is_empty(self.rel, snapshot) {
            super::loading::check(self.rel);
            return None;
        }
        self.open_delta()
    }

    /// Opens the delta for reading; `None` where it holds no rows.
    ///
    /// # Errors
    /// 55006 where an outer transaction level is loading the table; XX001 where it is missing although the metapage says that it has rows.
    pub fn open_delta(&self) -> Option<Delta> {
        super::loading::check(self.rel);
        match Delta::open_for_reading(self.rel, self.storage_id) {
            ForReading::Open(delta) => Some(delta),
            ForReading::Empty => None,
            ForReading::Missing => {
                lost::refuse_if_lost(self.rel);
                None
            }
        }
    }

    /// Raises a PostgreSQL error for what went wrong below.
    pub fn raise(&self, error: &StorageError) -> ! {
        crate::segment::source::raise(&name(self.rel), error)
    }
}

pub use crate::segment::relation::name;
