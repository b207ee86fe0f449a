//! The hooks themselves.

use std::cell::RefCell;
use std::ffi::c_char;
use std::rc::Rc;
use std::sync::OnceLock;

use pgrx::pg_sys::{self, RTEKind};
use pgrx::prelude::*;

use super::key_of;
use super::statement::Statement;
use super::verdict::Read;
use crate::catalog::{cass_am_oid, cass_key_am_oid, is_cass_oid};
use crate::error::keeping_sqlstate;
use crate::pg::nodes::{list_of, pointers};
use crate::scan::path::{is_replaced, Relation};

static PREVIOUS_PLANNER: OnceLock<pg_sys::planner_hook_type> = OnceLock::new();
static PREVIOUS_PATHS: OnceLock<pg_sys::set_rel_pathlist_hook_type> = OnceLock::new();

thread_local! {
    /// The statements that are being planned, innermost last; planning can call a function that plans another.
    static PLANNING: RefCell<Vec<Rc<Statement>>> = const { RefCell::new(Vec::new()) };
}

/// Installs the hooks in front of those already there.
pub(super) fn init() {
    // SAFETY: called once a process from _PG_init, which alone writes these variables now.
    unsafe {
        let _ = PREVIOUS_PLANNER.set(pg_sys::planner_hook);
        pg_sys::planner_hook = Some(plan);
        let _ = PREVIOUS_PATHS.set(pg_sys::set_rel_pathlist_hook);
        pg_sys::set_rel_pathlist_hook = Some(add_paths);
    }
}

/// Plans a statement, with a note of what it says while that lasts.
#[pg_guard]
unsafe extern "C-unwind" fn plan(
    query: *mut pg_sys::Query,
    source: *const c_char,
    cursor_options: i32,
    parameters: pg_sys::ParamListInfo,
) -> *mut pg_sys::PlannedStmt {
    // SAFETY: called by the server with a statement it lets planners change; hooks follow the same contract.
    unsafe {
        let plan_on = |parameters| {
            keeping_sqlstate(|| match PREVIOUS_PLANNER.get().copied().flatten() {
                Some(previous) => {
                    pg_sys::ffi::pg_guard_ffi_boundary(|| previous(query, source, cursor_options, parameters))
                }
                None => pg_sys::standard_planner(query, source, cursor_options, parameters),
            })
        };
        if cass_am_oid().is_none() {
            return plan_on(parameters);
        }
        let statement = keeping_sqlstate(|| Rc::new(Statement::read(query, source)));
        let parameters =
            if statement.has_relations() { statement.parameters.keep_from_folding(parameters) } else { parameters };
        let _planning = Planning::enter(statement);
        plan_on(parameters)
    }
}

/// Keeps a statement on top of `PLANNING` while it is planned, also if that fails.
struct Planning;

impl Planning {
    fn enter(statement: Rc<Statement>) -> Self {
        PLANNING.with_borrow_mut(|planning| planning.push(statement));
        Self
    }
}

impl Drop for Planning {
    fn drop(&mut self) {
        PLANNING.with_borrow_mut(|planning| planning.pop());
    }
}

/// Replaces the paths of a cass table that read it as a whole or by its key, and judges the query's read of it.
#[pg_guard]
unsafe extern "C-unwind" fn add_paths(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    index: pg_sys::Index,
    entry: *mut pg_sys::RangeTblEntry,
) {
    // SAFETY: called by the planner while the relation's paths are made; hooks follow the same contract.
    unsafe {
        if let Some(previous) = PREVIOUS_PATHS.get().copied().flatten() {
            pg_sys::ffi::pg_guard_ffi_boundary(|| previous(root, rel, index, entry));
        }
        if (*entry).rtekind != RTEKind::RTE_RELATION || (*entry).inh || !is_cass_oid((*entry).relid) {
            return;
        }
        let (Some(key), Some(key_access_method)) = (key_of((*entry).relid), cass_key_am_oid()) else {
            return;
        };
        let statement = PLANNING.with_borrow(|planning| planning.last().cloned());
        let read =
            Read { relation: Relation { root, rel, key: &key }, entry: &*entry, statement: statement.as_deref() };
        let is_dummy = pg_sys::is_dummy_rel(rel);
        let outer_sets = if is_dummy { Vec::new() } else { read.relation.binding_outer_sets() };
        let full_read = read.judge(&outer_sets);
        if is_dummy {
            return;
        }
        let kept = pointers::<pg_sys::Path>((*rel).pathlist).filter(|path| !is_replaced(*path, key_access_method));
        (*rel).pathlist = list_of(kept);
        (*rel).partial_pathlist = std::ptr::null_mut();
        read.relation.add_own_paths(full_read);
        read.relation.add_parameterised_paths(&outer_sets);
    }
}

/// Issues the refusal of a full read that was chosen for want of another way.
///
/// # Safety
/// `root` and `rel` are live; called while the plan of `rel` is made.
pub unsafe fn refuse_chosen(root: *mut pg_sys::PlannerInfo, rel: *mut pg_sys::RelOptInfo) {
    // SAFETY: the caller's promise; a base relation has an entry in the array.
    unsafe {
        let entry = *(*root).simple_rte_array.add((*rel).relid as usize);
        let Some(key) = key_of((*entry).relid) else {
            return;
        };
        let statement = PLANNING.with_borrow(|planning| planning.last().cloned());
        Read { relation: Relation { root, rel, key: &key }, entry: &*entry, statement: statement.as_deref() }
            .refuse_partition_key();
    }
}
