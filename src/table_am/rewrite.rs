//! Filling a table that takes another's place, and placing the rows of a table that gets its key.

use super::{bulk, copy};
use crate::error::Report;
use crate::maintenance::{self, BulkLoad};
use crate::read::segments::with_latest_snapshot;
use crate::read::state::name;
use crate::read::{MergedScan, ScanSpec, TableState};
use crate::segment::metapage;
use pgrx::pg_sys;
use pgrx::prelude::*;

/// Makes a new, empty transient table ready: its rows are placed as the key of the table it stands for says.
pub fn prepare(rel: pg_sys::Relation) -> TableState {
    // SAFETY: the caller holds the table open and locked.
    let declared = unsafe { crate::catalog::table_of(rel) };
    if let Some(key) = &declared.key {
        if metapage::identity(rel).layout != key.layout {
            metapage::set_layout(rel, key.layout);
        }
    }
    TableState::of(rel)
}

/// `relation_copy_for_cluster`: VACUUM FULL and CLUSTER write the rows that are there now into one segment. A table of which
/// snapshots see different rows is copied as it is.
#[pg_guard]
pub unsafe extern "C-unwind" fn copy_for_cluster(
    old: pg_sys::Relation,
    new: pg_sys::Relation,
    _index: pg_sys::Relation,
    _use_sort: bool,
    horizon: pg_sys::TransactionId,
    xid_cutoff: *mut pg_sys::TransactionId,
    multi_cutoff: *mut pg_sys::MultiXactId,
    tuples: *mut f64,
    vacuumed: *mut f64,
    recently_dead: *mut f64,
) {
    let copied = if maintenance::is_settled(&TableState::of(old), horizon) {
        let state = prepare(new);
        let mut load = BulkLoad::new(&state);
        copy_rows(old, |slot| {
            // SAFETY: the slot holds a row of the old table, whose columns are those of the new one.
            unsafe { bulk::push(&state, &mut load, slot, 0) };
        });
        load.finish(new)
    } else {
        // SAFETY: core hands over both tables open and locked exclusively, and room for its cutoffs.
        unsafe { copy::copy_table(old, new, horizon, xid_cutoff, multi_cutoff) };
        copy_rows(old, |_| {})
    };
    maintenance::reclaim::note(old);
    // The cutoffs stay as PostgreSQL has them: they become those of the table, which holds no transaction ids, and of its TOAST
    // table, whose rows are all new, or frozen by them.
    // SAFETY: PostgreSQL hands over room for its answers.
    unsafe {
        *tuples = copied as f64;
        *vacuumed = 0.0;
        *recently_dead = 0.0;
    }
}

/// Calls `work` with a slot for each row that is there now, each in memory of its own. Returns their number.
fn copy_rows(rel: pg_sys::Relation, mut work: impl FnMut(*mut pg_sys::TupleTableSlot)) -> u64 {
    with_latest_snapshot(|snapshot| {
        let mut scan = MergedScan::begin(rel, snapshot, ScanSpec::everything());
        // SAFETY: the slot is of the table's type and dropped once.
        unsafe {
            let slot = pg_sys::table_slot_create(rel, std::ptr::null_mut());
            while scan.next(slot) {
                work(slot);
            }
            pg_sys::ExecDropSingleTupleTableSlot(slot);
        }
        scan.end().rows
    })
}

/// Places the rows of a table by the primary key that is being built. Returns their number, or -1 where they were placed
/// before.
///
/// # Errors
/// 23505 where two rows have the same key.
///
/// # Safety
/// `rel` is open and locked exclusively.
pub unsafe fn place_rows(rel: pg_sys::Relation) -> f64 {
    // SAFETY: the caller holds the table open and locked.
    let declared = unsafe { crate::catalog::table_of(rel) };
    let Some(key) = declared.key.clone() else {
        Report::new("XX000", format!("table \"{}\" has no primary key to place its rows by", name(rel))).raise()
    };
    let identity = metapage::identity(rel);
    if identity.layout == key.layout {
        return -1.0;
    }
    let mut placed = TableState::of_layout(rel, 0);
    placed.key = Some(key.clone());
    let unplaced = TableState::of_layout(rel, identity.layout);
    let mut load = BulkLoad::new(&placed);
    let count = with_latest_snapshot(|snapshot| {
        let mut scan = MergedScan::begin_as(unplaced, snapshot, ScanSpec::everything());
        // SAFETY: the slot is of the table's type and dropped once.
        unsafe {
            let slot = pg_sys::table_slot_create(rel, std::ptr::null_mut());
            while scan.next(slot) {
                bulk::push_again(&placed, &mut load, slot);
            }
            pg_sys::ExecDropSingleTupleTableSlot(slot);
        }
        scan.end().rows
    });
    // pg_upgrade brings no number for other files; it puts the old cluster's in the place of these.
    // SAFETY: reads a variable of this process.
    let upgraded = unsafe { pg_sys::IsBinaryUpgrade };
    if count == 0 && (upgraded || is_new_in_this_subtransaction(rel)) {
        metapage::set_layout(rel, key.layout);
        return 0.0;
    }
    // SAFETY: the statement that adds a key holds the table exclusively; the old file goes at commit.
    unsafe { crate::pg::versions::files::set_new(rel) };
    metapage::set_layout(rel, key.layout);
    let written = load.finish(rel);
    if written < count {
        Report::new("23505", format!("could not add the primary key of table \"{}\"", name(rel)))
            .detail(format!("{} of its {count} rows have the key of another row.", count - written))
            .hint("Delete or change these rows, or choose a key that tells them apart.")
            .raise();
    }
    written as f64
}

/// Whether rolling back the current subtransaction drops the table's file, so that it may be changed in place.
fn is_new_in_this_subtransaction(rel: pg_sys::Relation) -> bool {
    // SAFETY: the relation is open.
    unsafe {
        let current = pg_sys::GetCurrentSubTransactionId();
        (*rel).rd_createSubid == current || crate::pg::versions::files::last_replaced_in(&*rel) == current
    }
}
