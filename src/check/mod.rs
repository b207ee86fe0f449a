//! Checking a table: whether all that is stored of it is whole, and its parts agree with each other.
//!
//! Everything is judged as one snapshot sees it, which is taken after the table was locked with AccessShareLock. Writers and VACUUM
//! go on: what they change meanwhile the snapshot does not see, and what it sees stays (runs keep their blocks, delta rows,
//! index entries and moved-out values their places) while it is held. What goes by no snapshot, the counters of the metapage and
//! the sizes of files, only grows while somebody may look, so it is read last.
//!
//! Damage is told, not raised: whatever may raise an error on damaged data runs in a subtransaction (`pg::subtransaction`).
//! Memory is bounded: rows are streamed, and where sets of them are compared both sides are sorted, with temporary files.
//!
//! - `fault`: what is told;
//! - `metapage`, `list`, `segments`: the main fork, the list of segments, the pages of each;
//! - `version`: one row version by itself and with its key; `row_ids`: that no id names two;
//! - `delta`: the delta's rows and its two indexes;
//! - `scan`: the table as a query reads it, with values that were moved out; `indexes`: the entries of secondary indexes.

mod delta;
pub mod fault;
mod indexes;
mod list;
mod metapage;
mod row_ids;
mod scan;
mod segments;
mod version;

use std::path::PathBuf;

use cass_storage::StorageError;
use pgrx::pg_sys;

use crate::pg::subtransaction::caught;
use crate::read::segments::with_latest_snapshot;
use crate::read::TableState;
use crate::segment::buffer::temp_directory;
use crate::segment::relation;
use fault::{Faults, Kind};
use row_ids::RowIds;

/// Bytes of memory for each sort, at the least.
const LEAST_MEMORY: usize = 4 << 20;

/// A check that is under way.
struct Check<'a> {
    state: &'a TableState,
    snapshot: pg_sys::Snapshot,
    faults: &'a mut Faults,
}

/// Checks an open table, locked with AccessShareLock or more, and tells its faults.
///
/// # Errors
/// 58030 where temporary files cannot be written; those of cancelling. Damage is told.
pub fn check_table(rel: pg_sys::Relation, faults: &mut Faults) {
    if !metapage::check(rel, faults) {
        return;
    }
    let state = match caught(|| TableState::of(rel)) {
        Ok(state) => state,
        Err(error) => return faults.add(Kind::Metapage, relation::oid(rel), Some(0), error.text),
    };
    with_latest_snapshot(|snapshot| {
        let mut check = Check { state: &state, snapshot, faults };
        let mut row_ids = RowIds::new(&state);
        let listed = check.list();
        for entry in &listed {
            check.segment(entry, &mut row_ids);
        }
        let readable = check.delta(&mut row_ids);
        check.row_ids(row_ids);
        metapage::check_counters(&state, &listed, check.faults);
        if readable && check.scan() {
            check.indexes();
        }
    });
}

/// Memory that a sort may use, in bytes.
fn sort_memory() -> usize {
    // SAFETY: a setting in kilobytes, read in the backend's only thread.
    let setting = unsafe { pg_sys::maintenance_work_mem }.unsigned_abs() as usize * 1024;
    (setting / 2).max(LEAST_MEMORY)
}

/// Folder for the temporary files of sorts.
fn sort_directory(state: &TableState) -> PathBuf {
    temp_directory().unwrap_or_else(|error| state.raise(&StorageError::from(error)))
}

/// The first bytes of a key, for messages.
fn hex(bytes: &[u8]) -> String {
    const MOST: usize = 24;
    let shown: String = bytes.iter().take(MOST).map(|byte| format!("{byte:02x}")).collect();
    if bytes.len() > MOST {
        format!("{shown}... ({} bytes)", bytes.len())
    } else {
        shown
    }
}
