//! cass: Cassandra's data model as a PostgreSQL table access method.

use pgrx::prelude::*;

mod catalog;
mod check;
mod ddl;
mod delta;
mod error;
mod functions;
mod key_am;
mod maintenance;
mod pg;
mod planner;
mod read;
mod scan;
mod segment;
mod settings;
mod statement;
mod table_am;
mod types;
mod upgrade;

#[cfg(any(test, feature = "pg_test"))]
#[path = "../pg_test/unit/mod.rs"]
mod unit_tests;

::pgrx::pg_module_magic!(name, version);

/// Called once a process, when the server or a session loads the library.
#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    hide_backtraces();
    ddl::require_preload();
    settings::init();
    pg::injection::init();
    catalog::init();
    key_am::init();
    planner::init();
    scan::init();
    ddl::init();
    statement::init();
    upgrade::init();
}

/// pgrx adds a Rust backtrace to an error's DETAIL where RUST_BACKTRACE is set for the server. Users are shown none, unless
/// RUST_LIB_BACKTRACE asks for it.
fn hide_backtraces() {
    if std::env::var_os("RUST_LIB_BACKTRACE").is_none() {
        std::env::set_var("RUST_LIB_BACKTRACE", "0");
    }
}

/// Required by `cargo pgrx test` at the root of the crate.
#[cfg(test)]
pub mod pg_test {
    pub fn setup(_options: Vec<&str>) {}

    #[must_use]
    pub fn postgresql_conf_options() -> Vec<&'static str> {
        vec!["shared_preload_libraries = 'cass'"]
    }
}
