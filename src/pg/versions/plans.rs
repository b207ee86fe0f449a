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

/// Whether a path key is ascending.
///
/// # Safety
/// `pathkey` is of this planner run.
pub unsafe fn is_ascending(pathkey: *const pg_sys::PathKey) -> bool {
    // SAFETY: promised by the caller.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        return u32::from((*pathkey).pk_strategy as u16) == pg_sys::BTLessStrategyNumber;
        #[cfg(feature = "pg18")]
        return (*pathkey).pk_cmptype == pg_sys::CompareType::COMPARE_LT;
    }
}

/// Tells a bitmap heap scan that has begun to ask for no pages ahead. From 18 on the table access method asks for them.
///
/// # Safety
/// `scan` is initialised.
pub unsafe fn prefetch_nothing(scan: *mut pg_sys::BitmapHeapScanState) {
    #[cfg(not(feature = "pg18"))]
    // SAFETY: promised by the caller.
    unsafe {
        (*scan).prefetch_maximum = 0;
    }
    #[cfg(feature = "pg18")]
    let _ = scan;
}

/// This process's own number of its transaction.
pub fn local_transaction() -> pg_sys::LocalTransactionId {
    // SAFETY: this process's own entry, which it has while it runs statements.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        return (*pg_sys::MyProc).lxid;
        #[cfg(feature = "pg18")]
        return (*pg_sys::MyProc).vxid.lxid;
    }
}
