//! The executor's hooks, and what COPY tells.
//!
//! An error that passes through pgrx's guard loses its constraint name, position and context. So the hooks call on without
//! one: an error jumps over their frames, which hold nothing to drop, and the callbacks of aborted transactions tidy up.

use super::{forget, pop, push, Kind};
use crate::pg::externs::unguarded;
use crate::pg::transaction::when_aborted;
use crate::table_am::bulk;
use pgrx::pg_sys;
use pgrx::prelude::*;

static mut PREVIOUS_RUN: pg_sys::ExecutorRun_hook_type = None;
static mut PREVIOUS_FINISH: pg_sys::ExecutorFinish_hook_type = None;

/// Installs the hooks.
pub fn init() {
    // SAFETY: called once a process, from _PG_init, before any statement; a backend has one thread.
    unsafe {
        PREVIOUS_RUN = pg_sys::ExecutorRun_hook;
        pg_sys::ExecutorRun_hook = Some(run);
        PREVIOUS_FINISH = pg_sys::ExecutorFinish_hook;
        pg_sys::ExecutorFinish_hook = Some(finish);
    }
    when_aborted(forget);
    when_aborted(bulk::forget);
}

/// A statement that runs inside another one must see the rows that one has written, so they leave their buffer first.
#[pg_guard]
unsafe extern "C-unwind" fn before_run(query: *mut pg_sys::QueryDesc) {
    bulk::drain_all();
    push(Kind::Query(query));
}

#[pg_guard]
unsafe extern "C-unwind" fn before_finish(query: *mut pg_sys::QueryDesc) {
    bulk::finish_all();
    push(Kind::Query(query));
}

#[pg_guard]
unsafe extern "C-unwind" fn after_run() {
    pop();
}

#[pg_guard]
unsafe extern "C-unwind" fn after_finish() {
    pop();
    bulk::finish_all();
}

/// Notes a COPY FROM that lists `columns`, or none, until [`copied`].
pub fn copying(columns: Option<Vec<String>>) {
    push(Kind::Copy(columns));
}

/// The COPY FROM noted last has ended.
pub fn copied() {
    pop();
}

unsafe extern "C-unwind" fn run(
    query: *mut pg_sys::QueryDesc,
    direction: pg_sys::ScanDirection::Type,
    count: u64,
    #[cfg(not(feature = "pg18"))] execute_once: bool,
) {
    // SAFETY: the arguments are those that PostgreSQL called the hook with; this frame holds nothing to drop.
    unsafe {
        before_run(query);
        match PREVIOUS_RUN {
            #[cfg(not(feature = "pg18"))]
            Some(previous) => previous(query, direction, count, execute_once),
            #[cfg(not(feature = "pg18"))]
            None => unguarded::standard_ExecutorRun(query, direction, count, execute_once),
            #[cfg(feature = "pg18")]
            Some(previous) => previous(query, direction, count),
            #[cfg(feature = "pg18")]
            None => unguarded::standard_ExecutorRun(query, direction, count),
        }
        after_run();
    }
}

/// Rows that an INSERT ... SELECT buffered are written before its AFTER triggers run, and those of a data-modifying WITH,
/// which is run to its end here, afterwards.
unsafe extern "C-unwind" fn finish(query: *mut pg_sys::QueryDesc) {
    // SAFETY: the argument is the one PostgreSQL called the hook with; this frame holds nothing to drop.
    unsafe {
        before_finish(query);
        match PREVIOUS_FINISH {
            Some(previous) => previous(query),
            None => unguarded::standard_ExecutorFinish(query),
        }
        after_finish();
    }
}
