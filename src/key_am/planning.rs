//! What the planner may do with the primary key's index: prove uniqueness by it, never scan it.

use std::sync::OnceLock;

use pgrx::pg_sys::{self, Oid};
use pgrx::prelude::*;
use pgrx::PgList;

use crate::catalog;

static PREVIOUS: OnceLock<pg_sys::get_relation_info_hook_type> = OnceLock::new();

/// Installs the hook.
pub(super) fn init() {
    // SAFETY: called once a process, from _PG_init, before any planning.
    unsafe {
        PREVIOUS.get_or_init(|| pg_sys::get_relation_info_hook);
        pg_sys::get_relation_info_hook = Some(relation_info);
    }
}

/// Takes scans by `cass_key` indexes out of the planner's reach.
///
/// Operator families become btree's, which is where the planner looks for the `=` of a join when it asks
/// whether a unique index makes the inner side unique.
#[pg_guard]
unsafe extern "C-unwind" fn relation_info(
    root: *mut pg_sys::PlannerInfo,
    relid: Oid,
    inhparent: bool,
    rel: *mut pg_sys::RelOptInfo,
) {
    // SAFETY: the planner passes live nodes; each index has `nkeycolumns` families.
    unsafe {
        if let Some(Some(previous)) = PREVIOUS.get() {
            pg_sys::ffi::pg_guard_ffi_boundary(|| previous(root, relid, inhparent, rel));
        }
        if (*rel).indexlist.is_null() {
            return;
        }
        let Some(cass_key) = catalog::cass_key_am_oid() else {
            return;
        };
        for index in PgList::<pg_sys::IndexOptInfo>::from_pg((*rel).indexlist).iter_ptr() {
            if (*index).relam != cass_key {
                continue;
            }
            (*index).amhasgettuple = false;
            (*index).amhasgetbitmap = false;
            if !(*index).sortopfamily.is_null() {
                std::ptr::copy((*index).sortopfamily, (*index).opfamily, (*index).nkeycolumns as usize);
            }
        }
    }
}

/// Cost of a scan that the planner should not have thought of.
#[allow(clippy::too_many_arguments, reason = "the signature is PostgreSQL's")]
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn cost_estimate(
    _root: *mut pg_sys::PlannerInfo,
    _path: *mut pg_sys::IndexPath,
    _loops: f64,
    startup: *mut pg_sys::Cost,
    total: *mut pg_sys::Cost,
    selectivity: *mut pg_sys::Selectivity,
    correlation: *mut f64,
    pages: *mut f64,
) {
    // SAFETY: the planner passes places to write to; disable_cost is a constant of the server.
    unsafe {
        *startup = pg_sys::disable_cost;
        *total = pg_sys::disable_cost;
        *selectivity = 1.0;
        *correlation = 0.0;
        *pages = 0.0;
    }
}
