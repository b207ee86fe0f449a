//! The executor's hooks.

use super::{Guard, Kind};
use crate::error::keeping_sqlstate;
use crate::table_am::bulk;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::sync::OnceLock;

static PREVIOUS_RUN: OnceLock<pg_sys::ExecutorRun_hook_type> = OnceLock::new();
static PREVIOUS_FINISH: OnceLock<pg_sys::ExecutorFinish_hook_type> = OnceLock::new();

/// Installs the hooks.
pub fn init() {
    // SAFETY: called once a process, from _PG_init, before any statement.
    unsafe {
        PREVIOUS_RUN.get_or_init(|| pg_sys::ExecutorRun_hook);
        pg_sys::ExecutorRun_hook = Some(run);
        PREVIOUS_FINISH.get_or_init(|| pg_sys::ExecutorFinish_hook);
        pg_sys::ExecutorFinish_hook = Some(finish);
    }
}

/// Runs a COPY FROM that lists `columns`, or none.
pub fn copying(columns: Option<Vec<String>>, call: impl FnOnce()) {
    let _guard = Guard::push(Kind::Copy(columns));
    call();
}

/// A statement that runs inside another one must see the rows that one has written, so they leave their buffer first.
#[pg_guard]
unsafe extern "C-unwind" fn run(
    query: *mut pg_sys::QueryDesc,
    direction: pg_sys::ScanDirection::Type,
    count: u64,
    execute_once: bool,
) {
    bulk::drain_all();
    let _guard = Guard::push(Kind::Query(query));
    // SAFETY: the arguments are those that PostgreSQL called the hook with.
    keeping_sqlstate(|| unsafe {
        match PREVIOUS_RUN.get() {
            Some(Some(previous)) => {
                pg_sys::ffi::pg_guard_ffi_boundary(|| previous(query, direction, count, execute_once));
            }
            _ => pg_sys::standard_ExecutorRun(query, direction, count, execute_once),
        }
    });
}

/// Rows that an INSERT ... SELECT buffered are written before its AFTER triggers run, and those of a data-modifying WITH,
/// which is run to its end here, afterwards.
#[pg_guard]
unsafe extern "C-unwind" fn finish(query: *mut pg_sys::QueryDesc) {
    bulk::finish_all();
    let _guard = Guard::push(Kind::Query(query));
    // SAFETY: the argument is the one PostgreSQL called the hook with.
    keeping_sqlstate(|| unsafe {
        match PREVIOUS_FINISH.get() {
            Some(Some(previous)) => pg_sys::ffi::pg_guard_ffi_boundary(|| previous(query)),
            _ => pg_sys::standard_ExecutorFinish(query),
        }
    });
    bulk::finish_all();
}
