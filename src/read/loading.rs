//! Tables whose rows a running statement has gathered and not written yet.
//!
//! A statement that starts inside a loading one sees the rows, since they are written first. That is not possible if it runs in a
//! subtransaction of its own (a PL/pgSQL block with an exception handler, say): the rows would be undone with it. There the table
//! cannot be used until the load has ended.

use crate::error::Report;
use crate::segment::relation;
use pgrx::pg_sys;
use std::cell::RefCell;

thread_local! {
    /// OID of a table and the level of the subtransaction that loads it.
    static LOADING: RefCell<Vec<(pg_sys::Oid, i32)>> = const { RefCell::new(Vec::new()) };
}

/// Notes that a statement at this nesting level of transactions gathers rows of a table.
pub fn begin(rel: pg_sys::Relation, nest_level: i32) {
    LOADING.with_borrow_mut(|loading| loading.push((relation::oid(rel), nest_level)));
}

/// Notes that nothing is gathered any more.
pub fn end(rel: pg_sys::Relation) {
    LOADING.with_borrow_mut(|loading| loading.retain(|(table, _)| *table != relation::oid(rel)));
}

/// Forgets the loads of aborted subtransactions, those of this level and deeper.
pub fn forget(nest_level: i32) {
    LOADING.with_borrow_mut(|loading| loading.retain(|(_, level)| *level < nest_level));
}

/// Raises an error if an outer transaction level is loading the table.
pub fn check(rel: pg_sys::Relation) {
    let loaded_outside = LOADING.with_borrow(|loading| {
        if loading.is_empty() {
            return false;
        }
        // SAFETY: reads a counter of this backend.
        let level = unsafe { pg_sys::GetCurrentTransactionNestLevel() };
        loading.iter().any(|(table, loader)| *table == relation::oid(rel) && *loader < level)
    });
    if loaded_outside {
        refuse(rel);
    }
}

/// The error of a statement that uses a table while an outer transaction level loads it.
pub fn refuse(rel: pg_sys::Relation) -> ! {
    let table = relation::name(rel);
    Report::new("55006", format!("table \"{table}\" cannot be used in a subtransaction while it is being loaded"))
        .detail("The statement around this one has gathered rows of the table that are not written yet.")
        .hint("Load into another table first, or leave the exception block out of the function that the load calls.")
        .raise()
}
