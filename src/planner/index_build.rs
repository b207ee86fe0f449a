//! Indexes on cass tables are built by one process.
//!
//! The processes of a parallel build read by the snapshot of the leader's transaction, which is older than the lock on the
//! table, and may take no other: rows committed in between would have no entry.

use crate::catalog::is_cass_oid;
use pgrx::pg_sys::{self, Oid, PlannerInfo, RelOptInfo};
use pgrx::prelude::*;

static mut PREVIOUS: pg_sys::get_relation_info_hook_type = None;

pub fn init() {
    // SAFETY: runs once a process, from _PG_init, before any planning.
    unsafe {
        PREVIOUS = pg_sys::get_relation_info_hook;
        pg_sys::get_relation_info_hook = Some(no_workers);
    }
}

/// `get_relation_info_hook`. A number of workers set for the table goes before every estimate, and before
/// `min_parallel_table_scan_size`.
#[pg_guard]
unsafe extern "C-unwind" fn no_workers(root: *mut PlannerInfo, relid: Oid, inherited: bool, rel: *mut RelOptInfo) {
    // SAFETY: the planner hands over its own structs, and the chain of hooks is only set up at load.
    unsafe {
        if let Some(previous) = PREVIOUS {
            previous(root, relid, inherited, rel);
        }
        // Only the planning of an index build has a query without a FROM tree.
        if (*(*root).parse).jointree.is_null() && is_cass_oid(relid) {
            (*rel).rel_parallel_workers = 0;
        }
    }
}
