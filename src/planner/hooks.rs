//! The hooks themselves.
//!
//! An error that passes through pgrx's guard loses its position and context. So the hooks call on without one: an error
//! jumps over their frames, which hold nothing to drop, and callbacks of aborted transactions tidy up.

use std::cell::RefCell;
use std::ffi::{c_char, c_void, CStr};
use std::ptr;
use std::rc::Rc;

use pgrx::pg_sys::{self, RTEKind};
use pgrx::prelude::*;

use super::key_of;
use super::statement::Statement;
use super::verdict::Read;
use crate::catalog::{cass_am_oid, cass_key_am_oid, is_cass_oid};
use crate::pg::externs::unguarded;
use crate::pg::nodes::{list_of, pointers};
use crate::pg::transaction::when_aborted;
use crate::scan::bitmap::{is_bitmap, may_begin_again};
use crate::scan::path::{is_replaced, FullRead, Relation};

static mut PREVIOUS_PLANNER: pg_sys::planner_hook_type = None;
static mut PREVIOUS_PATHS: pg_sys::set_rel_pathlist_hook_type = None;

thread_local! {
    /// The statements that are being planned, innermost last; planning can call a function that plans another.
    static PLANNING: RefCell<Vec<Planning>> = const { RefCell::new(Vec::new()) };
}

/// A statement that is being planned.
struct Planning {
    /// What it says; `None` where the extension is absent.
    statement: Option<Rc<Statement>>,
    /// Nesting level of the (sub)transaction, whose abort ends the planning.
    transaction_level: i32,
}

/// Installs the hooks in front of those already there.
pub(super) fn init() {
    // SAFETY: called once a process from _PG_init, before any statement; a backend has one thread.
    unsafe {
        PREVIOUS_PLANNER = pg_sys::planner_hook;
        pg_sys::planner_hook = Some(plan);
        PREVIOUS_PATHS = pg_sys::set_rel_pathlist_hook;
        pg_sys::set_rel_pathlist_hook = Some(set_paths);
        pg_sys::RegisterXactCallback(Some(transaction_ended), ptr::null_mut());
    }
    when_aborted(|level| {
        PLANNING.with_borrow_mut(|planning| planning.retain(|statement| statement.transaction_level < level))
    });
}

/// Plans a statement, with a note of what it says while that lasts.
unsafe extern "C-unwind" fn plan(
    query: *mut pg_sys::Query,
    source: *const c_char,
    cursor_options: i32,
    parameters: pg_sys::ParamListInfo,
) -> *mut pg_sys::PlannedStmt {
    // SAFETY: the arguments are those that the server called the hook with; this frame holds nothing to drop.
    unsafe {
        let parameters = begin(query, source, parameters);
        let planned =
            PREVIOUS_PLANNER.unwrap_or(unguarded::standard_planner)(query, source, cursor_options, parameters);
        end();
        planned
    }
}

/// Notes what a statement says; gives the parameters to plan it with.
#[pg_guard]
unsafe extern "C-unwind" fn begin(
    query: *mut pg_sys::Query,
    source: *const c_char,
    parameters: pg_sys::ParamListInfo,
) -> pg_sys::ParamListInfo {
    // SAFETY: the server lets planners change the statement; its text and parameters are its own.
    unsafe {
        let statement = cass_am_oid().map(|_| Rc::new(Statement::read(query, shown(source))));
        let parameters = match &statement {
            Some(statement) if statement.has_relations() => statement.parameters.keep_from_folding(parameters),
            _ => parameters,
        };
        let transaction_level = pg_sys::GetCurrentTransactionNestLevel();
        PLANNING.with_borrow_mut(|planning| planning.push(Planning { statement, transaction_level }));
        parameters
    }
}

/// The text, if positions in it mean something to who reads the error: it is the client's, or a function or SPI will
/// add it to the error. The text behind EXECUTE is neither.
unsafe fn shown(source: *const c_char) -> *const c_char {
    // SAFETY: both texts are null or C strings; the error context stack is only compared.
    unsafe {
        let client = pg_sys::debug_query_string;
        let is_clients = !source.is_null() && !client.is_null() && CStr::from_ptr(source) == CStr::from_ptr(client);
        if is_clients || !pg_sys::error_context_stack.is_null() {
            source
        } else {
            ptr::null()
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn end() {
    PLANNING.with_borrow_mut(Vec::pop);
}

#[pg_guard]
unsafe extern "C-unwind" fn transaction_ended(_event: pg_sys::XactEvent::Type, _argument: *mut c_void) {
    PLANNING.with_borrow_mut(Vec::clear);
}

/// What the innermost statement that is being planned says.
fn current_statement() -> Option<Rc<Statement>> {
    PLANNING.with_borrow(|planning| planning.last()?.statement.clone())
}

unsafe extern "C-unwind" fn set_paths(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    index: pg_sys::Index,
    entry: *mut pg_sys::RangeTblEntry,
) {
    // SAFETY: the arguments are those that the planner called the hook with; this frame holds nothing to drop.
    unsafe {
        if let Some(previous) = PREVIOUS_PATHS {
            previous(root, rel, index, entry);
        }
        add_paths(root, rel, entry);
    }
}

/// Replaces the paths of a cass table that read it as a whole or by its key, and judges the query's read of it.
#[pg_guard]
unsafe extern "C-unwind" fn add_paths(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    entry: *mut pg_sys::RangeTblEntry,
) {
    // SAFETY: called by the planner, with live nodes, while the relation's paths are made.
    unsafe {
        if (*entry).rtekind != RTEKind::RTE_RELATION || (*entry).inh || !is_cass_oid((*entry).relid) {
            return;
        }
        let (Some(key), Some(key_access_method)) = (key_of((*entry).relid), cass_key_am_oid()) else {
            return;
        };
        let statement = current_statement();
        let read =
            Read { relation: Relation { root, rel, key: &key }, entry: &*entry, statement: statement.as_deref() };
        let is_dummy = pg_sys::is_dummy_rel(rel);
        let outer_sets = if is_dummy { Vec::new() } else { read.relation.binding_outer_sets() };
        let full_read = read.judge(&outer_sets);
        if is_dummy {
            return;
        }
        (*rel).partial_pathlist = ptr::null_mut();
        if !(*entry).tablesample.is_null() {
            if full_read == FullRead::Refused {
                read.refuse_partition_key();
            }
            return;
        }
        let may_begin_again = may_begin_again(root);
        let is_dropped = |path| is_replaced(path, key_access_method) || may_begin_again && is_bitmap(path);
        let kept = pointers::<pg_sys::Path>((*rel).pathlist).filter(|path| !is_dropped(*path));
        (*rel).pathlist = list_of(kept);
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
        let statement = current_statement();
        Read { relation: Relation { root, rel, key: &key }, entry: &*entry, statement: statement.as_deref() }
            .refuse_partition_key();
    }
}
