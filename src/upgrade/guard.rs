//! Stops pg_upgrade where a table's delta holds rows.
//!
//! pg_upgrade starts the old server, and the new one, in binary-upgrade mode (`postgres -b`), and asks each of its databases
//! something before it dumps it. The first statement of a session of such a server is therefore an error where rows would
//! be lost: pg_upgrade shows it and ends, with --check too. A server in its usual mode has no hook at all.

use std::cell::Cell;

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::tables;
use crate::catalog::identifier::owned;
use crate::catalog::primary_key::qualified_name;
use crate::error::Report;
use crate::read::segments::with_latest_snapshot;
use crate::segment::metapage;

/// How many tables the error names.
const NAMED: usize = 20;

static mut PREVIOUS: pg_sys::post_parse_analyze_hook_type = None;

thread_local! {
    /// Whether this session has found nothing that would be lost.
    static CHECKED: Cell<bool> = const { Cell::new(false) };
}

/// Installs the hook in a server that pg_upgrade has started. Called once a process from `_PG_init`.
pub fn init() {
    // SAFETY: called from _PG_init, before any statement, when the postmaster has read its options.
    unsafe {
        if pg_sys::IsBinaryUpgrade {
            PREVIOUS = pg_sys::post_parse_analyze_hook;
            pg_sys::post_parse_analyze_hook = Some(analyzed);
        }
    }
}

/// A statement has been analyzed and is about to be run.
unsafe extern "C-unwind" fn analyzed(
    state: *mut pg_sys::ParseState,
    query: *mut pg_sys::Query,
    jumble: *mut pg_sys::JumbleState,
) {
    // SAFETY: the arguments are those that the server called the hook with; this frame holds nothing to drop.
    unsafe {
        if let Some(previous) = PREVIOUS {
            previous(state, query, jumble);
        }
        check();
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn check() {
    // SAFETY: asks for this process's state; a ROLLBACK is analyzed outside any transaction that works.
    if CHECKED.get() || !unsafe { pg_sys::IsTransactionState() } {
        return;
    }
    let unsaved = tables_to_flush();
    if !unsaved.is_empty() {
        refuse(&unsaved);
    }
    CHECKED.set(true);
}

/// Tables whose delta holds rows, or held some that are lost.
fn tables_to_flush() -> Vec<pg_sys::Oid> {
    let dirty = |table: pg_sys::Oid| {
        let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
        // SAFETY: opened by OID, null where it has been dropped meanwhile; closed once.
        unsafe {
            let rel = pg_sys::try_relation_open(table, lock);
            if rel.is_null() {
                return false;
            }
            // The first rows of a delta that a write had to make are not noted in the metapage.
            let dirty = metapage::read(rel).delta_dirty
                || with_latest_snapshot(|snapshot| tables::delta_holds_rows(rel, snapshot));
            pg_sys::relation_close(rel, lock);
            dirty
        }
    };
    tables::permanent().into_iter().filter(|table| dirty(*table)).collect()
}

fn refuse(unsaved: &[pg_sys::Oid]) -> ! {
    let names: Vec<String> = unsaved.iter().take(NAMED).map(|table| qualified_name(*table)).collect();
    let more = match unsaved.len() - names.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    // SAFETY: a catalog look-up of this session's database, whose result is null or a palloc'ed C string.
    let database = unsafe { owned(pg_sys::get_database_name(pg_sys::MyDatabaseId)) };
    Report::new("55000", format!("cass tables of database \"{database}\" are not prepared for pg_upgrade"))
        .detail(format!("Their deltas, which pg_upgrade does not carry, may hold rows: {}{more}.", names.join(", ")))
        .hint(format!(
            "Start the old server as usual, run CALL cass_prepare_upgrade() in database \"{database}\", stop the server, and \
             run pg_upgrade again."
        ))
        .raise()
}
