//! Path keys. Outer joins are marked in the expressions from PostgreSQL 16 on, no longer in the equivalence classes.

use pgrx::pg_sys;

/// The path keys, at most one, of an order by an expression of one relation, where a class for it exists (pathkeys.c).
///
/// # Safety
/// The pointers are of one planner run.
pub unsafe fn pathkeys_of(
    root: *mut pg_sys::PlannerInfo,
    expression: *mut pg_sys::Expr,
    operator: pg_sys::Oid,
    relids: pg_sys::Relids,
) -> *mut pg_sys::List {
    // SAFETY: promised by the caller.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::build_expression_pathkey(root, expression, std::ptr::null_mut(), operator, relids, false);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::build_expression_pathkey(root, expression, operator, relids, false);
    }
}

/// Whether an order by a class says nothing, all its values being one (`EC_MUST_BE_REDUNDANT` of pathnodes.h).
pub fn is_constant(class: &pg_sys::EquivalenceClass) -> bool {
    #[cfg(feature = "pg15")]
    return class.ec_has_const && !class.ec_below_outer_join;
    #[cfg(not(feature = "pg15"))]
    return class.ec_has_const;
}
