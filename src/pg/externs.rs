//! PostgreSQL functions that pgrx does not bind. Each is called through pgrx's guard, which turns an ERROR into unwinding.

use pgrx::pg_sys;
use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use std::ffi::c_void;

mod bare {
    use pgrx::pg_sys;
    use std::ffi::{c_int, c_void};

    unsafe extern "C-unwind" {
        pub fn heap_toast_insert_or_update(
            relation: pg_sys::Relation,
            new_tuple: pg_sys::HeapTuple,
            old_tuple: pg_sys::HeapTuple,
            options: c_int,
        ) -> pg_sys::HeapTuple;

        pub fn toast_delete_datum(relation: pg_sys::Relation, value: pg_sys::Datum, is_speculative: bool);

        pub fn ExecComputeStoredGenerated(
            target: *mut pg_sys::ResultRelInfo,
            estate: *mut pg_sys::EState,
            slot: *mut pg_sys::TupleTableSlot,
            command: pg_sys::CmdType::Type,
        );

        #[cfg_attr(not(feature = "pg15"), link_name = "planstate_tree_walker_impl")]
        pub fn planstate_tree_walker(
            node: *mut pg_sys::PlanState,
            walker: unsafe extern "C-unwind" fn(*mut pg_sys::PlanState, *mut c_void) -> bool,
            context: *mut c_void,
        ) -> bool;

        pub fn PredicateLockRelation(relation: pg_sys::Relation, snapshot: pg_sys::Snapshot);

        pub fn CheckForSerializableConflictIn(
            relation: pg_sys::Relation,
            tid: pg_sys::ItemPointer,
            block: pg_sys::BlockNumber,
        );
    }
}

/// PostgreSQL's own ends of the hook chains, called as C calls them: their errors jump over the caller's frame.
pub mod unguarded {
    use pgrx::pg_sys;
    use std::ffi::c_char;

    unsafe extern "C-unwind" {
        pub fn standard_ExecutorStart(query: *mut pg_sys::QueryDesc, flags: std::ffi::c_int);
        pub fn standard_ExecutorRun(
            query: *mut pg_sys::QueryDesc,
            direction: pg_sys::ScanDirection::Type,
            count: u64,
            #[cfg(not(feature = "pg18"))] execute_once: bool,
        );
        pub fn standard_ExecutorFinish(query: *mut pg_sys::QueryDesc);
        pub fn standard_planner(
            query: *mut pg_sys::Query,
            source: *const c_char,
            cursor_options: std::ffi::c_int,
            parameters: pg_sys::ParamListInfo,
        ) -> *mut pg_sys::PlannedStmt;
        pub fn standard_ProcessUtility(
            statement: *mut pg_sys::PlannedStmt,
            query: *const c_char,
            read_only_tree: bool,
            context: pg_sys::ProcessUtilityContext::Type,
            parameters: pg_sys::ParamListInfo,
            environment: *mut pg_sys::QueryEnvironment,
            destination: *mut pg_sys::DestReceiver,
            completion: *mut pg_sys::QueryCompletion,
        );
    }
}

/// Compresses and moves out large attributes of a new tuple (`src/backend/access/heap/heaptoast.c`).
///
/// # Safety
/// `relation` is open and writable; `tuple` was formed by its descriptor.
pub unsafe fn toast_new_tuple(relation: pg_sys::Relation, tuple: pg_sys::HeapTuple) -> pg_sys::HeapTuple {
    // SAFETY: promised by the caller.
    unsafe { pg_guard_ffi_boundary(|| bare::heap_toast_insert_or_update(relation, tuple, std::ptr::null_mut(), 0)) }
}

/// Deletes the chunks of a value that lies in the relation's TOAST table (`src/backend/access/common/toast_internals.c`).
///
/// # Safety
/// `relation` is open and writable; `pointer` is the image of an on-disk TOAST pointer of it.
pub unsafe fn toast_delete(relation: pg_sys::Relation, pointer: &[u8]) {
    let value = pg_sys::Datum::from(pointer.as_ptr());
    // SAFETY: promised by the caller.
    unsafe { pg_guard_ffi_boundary(|| bare::toast_delete_datum(relation, value, false)) }
}

/// Computes the stored generated columns of a row that is inserted (`src/backend/executor/nodeModifyTable.c`).
///
/// # Safety
/// `target` and `estate` are initialised; `slot` holds a row of the target.
pub unsafe fn compute_stored_generated(
    target: *mut pg_sys::ResultRelInfo,
    estate: *mut pg_sys::EState,
    slot: *mut pg_sys::TupleTableSlot,
) {
    let command = pg_sys::CmdType::CMD_INSERT;
    // SAFETY: promised by the caller.
    unsafe { pg_guard_ffi_boundary(|| bare::ExecComputeStoredGenerated(target, estate, slot, command)) }
}

/// Calls `visit` with each child of an executor node, those of its subplans included (`src/backend/nodes/nodeFuncs.c`).
///
/// # Safety
/// `node` is an initialised node of a running query.
pub unsafe fn planstate_children(node: *mut pg_sys::PlanState, visit: &mut dyn FnMut(*mut pg_sys::PlanState)) {
    #[pgrx::pg_guard]
    unsafe extern "C-unwind" fn walker(child: *mut pg_sys::PlanState, context: *mut c_void) -> bool {
        // SAFETY: the context is the `visit` of the call below, which lives until that returns.
        unsafe { (*context.cast::<&mut dyn FnMut(*mut pg_sys::PlanState)>())(child) };
        false
    }
    let mut visit = visit;
    // SAFETY: promised by the caller.
    unsafe {
        pg_guard_ffi_boundary(|| bare::planstate_tree_walker(node, walker, (&raw mut visit).cast()));
    }
}

/// Locks a whole relation for a SERIALIZABLE read (`src/backend/storage/lmgr/predicate.c`).
///
/// # Safety
/// `relation` is open; `snapshot` is valid.
pub unsafe fn predicate_lock_relation(relation: pg_sys::Relation, snapshot: pg_sys::Snapshot) {
    // SAFETY: promised by the caller.
    unsafe { pg_guard_ffi_boundary(|| bare::PredicateLockRelation(relation, snapshot)) }
}

/// Notes a write of this SERIALIZABLE transaction as in conflict with the reads that locked the whole relation
/// (`src/backend/storage/lmgr/predicate.c`).
///
/// # Errors
/// 40001 where no order of the transactions is left.
///
/// # Safety
/// `relation` is open.
pub unsafe fn check_for_serializable_conflict(relation: pg_sys::Relation) {
    let (no_row, no_page) = (std::ptr::null_mut(), pg_sys::InvalidBlockNumber);
    // SAFETY: promised by the caller.
    unsafe { pg_guard_ffi_boundary(|| bare::CheckForSerializableConflictIn(relation, no_row, no_page)) }
}
