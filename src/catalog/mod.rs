//! What the catalogs say of a cass table: its access method, key layout, options and columns.

pub mod access_method;
pub mod identifier;
pub mod key_layout;
pub mod options;
pub mod primary_key;
pub mod table;
pub mod table_key;

pub use access_method::{cass_am_oid, cass_key_am_oid, is_cass_key_oid, is_cass_oid, is_cass_relation};
pub use options::{Compaction, InsertMode};
pub use table::{table_of, Column, Table};
pub use table_key::{EncodedKey, KeyColumn, TableKey};

/// Registers the cache callbacks. Called once a process from `_PG_init`.
pub fn init() {
    access_method::init();
    table::init();
}
