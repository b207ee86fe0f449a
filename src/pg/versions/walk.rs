//! The walk over an executor's nodes, whose function has another name from PostgreSQL 16 on (nodeFuncs.c).

use pgrx::pg_sys;
use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use std::ffi::c_void;

type Walker = unsafe extern "C-unwind" fn(*mut pg_sys::PlanState, *mut c_void) -> bool;

unsafe extern "C-unwind" {
    #[cfg_attr(not(feature = "pg15"), link_name = "planstate_tree_walker_impl")]
    fn planstate_tree_walker(node: *mut pg_sys::PlanState, walker: Walker, context: *mut c_void) -> bool;
}

/// Calls `walker` with each child of an executor node, those of its subplans included.
///
/// # Safety
/// `node` is an initialised node of a running query, and `context` what `walker` expects.
pub unsafe fn planstate_children(node: *mut pg_sys::PlanState, walker: Walker, context: *mut c_void) {
    // SAFETY: promised by the caller.
    unsafe { pg_guard_ffi_boundary(|| planstate_tree_walker(node, walker, context)) };
}
