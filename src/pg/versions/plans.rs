//! Planner and executor.

use pgrx::pg_sys;

/// The path keys of an expression of base relations, if the query knows it (`build_expression_pathkey` of PostgreSQL's pathkeys.c).
///
/// # Safety
/// All are of this planner run.
pub unsafe fn known_pathkeys(
    root: *mut pg_sys::PlannerInfo,
    expression: *mut pg_sys::Expr,
    operator: pg_sys::Oid,
    relations: pg_sys::Relids,
) -> *mut pg_sys::List {
    // SAFETY: promised by the caller.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::build_expression_pathkey(root, expression, std::ptr::null_mut(), operator, relations, false);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::build_expression_pathkey(root, expression, operator, relations, false);
    }
}

/// Whether an equivalence class has one value wherever it is used (`EC_MUST_BE_REDUNDANT` of PostgreSQL's pathnodes.h).
///
/// # Safety
/// `class` is of this planner run.
pub unsafe fn is_constant(class: *const pg_sys::EquivalenceClass) -> bool {
    // SAFETY: promised by the caller.
    unsafe {
        #[cfg(feature = "pg15")]
        return (*class).ec_has_const && !(*class).ec_below_outer_join;
        #[cfg(not(feature = "pg15"))]
        return (*class).ec_has_const;
    }
}
