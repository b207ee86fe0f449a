//! Data definition: what makes a primary key `cass_key` if and only if its table is cass.
//!
//! A ProcessUtility hook makes the common statements work: it gives a primary key its access method and options. An
//! object access hook sees every index, table and inheritance link that any path creates, and makes every other
//! outcome an error.

mod alter_table;
mod conversion;
mod create_table;
mod frame;
mod key_index;
mod nodes;
mod object_access;
mod option_list;
mod publication;
mod utility;

use pgrx::pg_sys;

pub use frame::in_alter_table;

use crate::error::Report;

/// Installs the hooks. Called once a process from `_PG_init`.
pub fn init() {
    frame::init();
    utility::init();
    object_access::init();
}

/// Raises message C unless the server is loading the library as it starts.
///
/// A library that is loaded later has no hooks in the sessions that did not load it, where a cass table's key could
/// become a btree and no query would be refused.
pub fn require_preload() {
    // SAFETY: a flag of the process, which only its main thread changes.
    if unsafe { pg_sys::process_shared_preload_libraries_in_progress } {
        return;
    }
    Report::new("55000", "cass must be loaded when the server starts")
        .detail("\"cass\" is not in shared_preload_libraries, so its tables' keys and queries could not be checked.")
        .hint("Add cass to shared_preload_libraries, restart the server, and repeat the command.")
        .raise()
}
