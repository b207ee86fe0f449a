//! Predicate locks of SERIALIZABLE reads on a table that has no delta, whose btree would take them.

use crate::pg::externs;
use crate::pg::snapshot::is_serializable;
use pgrx::pg_sys;
use std::ffi::c_int;

/// Has a SERIALIZABLE read lock all of `table`, which it has found without a delta, and waits for whoever is making one: the catalogs
/// do not show it before it is committed, and what lies in it is to be seen as in conflict with this read. Whether one may be
/// there now. Writers call [`check_for_writing`].
pub fn lock_for_reading(table: pg_sys::Relation, snapshot: pg_sys::Snapshot) -> bool {
    if !is_serializable() {
        return false;
    }
    // SAFETY: the caller holds `table` open and the snapshot valid. Who makes a delta after the lock is given back finds the
    // predicate lock.
    unsafe {
        externs::predicate_lock_relation(table, snapshot);
        let (class, oid, share) = (pg_sys::RelationRelationId, (*table).rd_id, pg_sys::ShareLock as c_int);
        pg_sys::LockDatabaseObject(class, oid, 0, share);
        pg_sys::UnlockDatabaseObject(class, oid, 0, share);
    }
    true
}

/// Called by writers that have opened the delta of `table`, or made it.
///
/// # Errors
/// 40001 where this write and a SERIALIZABLE read of the whole table cannot both be.
pub fn check_for_writing(table: pg_sys::Relation) {
    // SAFETY: the caller holds `table` open.
    unsafe { externs::check_for_serializable_conflict(table) }
}
