//! VACUUM (`vacuum.h`) and what it reports.

use pgrx::pg_sys;
use std::time::Duration;

/// Sleeps as the cost-based delay of VACUUM asks for, and lets the user interrupt it.
///
/// # Safety
/// No lock or pin is held that others wait for.
pub unsafe fn delay_point() {
    // SAFETY: promised by the caller.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        pg_sys::vacuum_delay_point();
        #[cfg(feature = "pg18")]
        pg_sys::vacuum_delay_point(false);
    }
}

/// Writes what VACUUM has found into the relation's row of `pg_class`. No page is told to be all visible.
///
/// # Safety
/// `rel` is open and locked as VACUUM does. `oldest_ids`, the oldest transaction and multixact ids in it, are invalid where it holds none.
pub unsafe fn update_statistics(
    rel: pg_sys::Relation,
    pages: pg_sys::BlockNumber,
    rows: f64,
    has_index: bool,
    oldest_ids: (pg_sys::TransactionId, pg_sys::MultiXactId),
) {
    let (xid, multi) = oldest_ids;
    let none = std::ptr::null_mut();
    // SAFETY: promised by the caller.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        pg_sys::vac_update_relstats(rel, pages, rows, 0, has_index, xid, multi, none, none, false);
        #[cfg(feature = "pg18")]
        pg_sys::vac_update_relstats(rel, pages, rows, 0, 0, has_index, xid, multi, none, none, false);
    }
}

/// Tells the cumulative statistics of a VACUUM that took `elapsed`.
///
/// # Safety
/// `rel` is an open table of this database, not shared.
pub unsafe fn report_counts(rel: pg_sys::Relation, live: i64, dead: i64, elapsed: Duration) {
    // SAFETY: promised by the caller.
    unsafe {
        let oid = (*rel).rd_id;
        #[cfg(not(feature = "pg18"))]
        {
            let _ = elapsed;
            pg_sys::pgstat_report_vacuum(oid, false, live, dead);
        }
        #[cfg(feature = "pg18")]
        {
            let elapsed = i64::try_from(elapsed.as_micros()).unwrap_or(0);
            let started = pg_sys::GetCurrentTimestamp() - elapsed;
            pg_sys::pgstat_report_vacuum(oid, false, live, dead, started);
        }
    }
}

/// VACUUM's parameters without any option.
pub fn parameters() -> pg_sys::VacuumParams {
    pg_sys::VacuumParams {
        options: pg_sys::VACOPT_VACUUM,
        freeze_min_age: -1,
        freeze_table_age: -1,
        multixact_freeze_min_age: -1,
        multixact_freeze_table_age: -1,
        is_wraparound: false,
        log_min_duration: -1,
        index_cleanup: pg_sys::VacOptValue::VACOPTVALUE_ENABLED,
        truncate: pg_sys::VacOptValue::VACOPTVALUE_ENABLED,
        #[cfg(feature = "pg18")]
        toast_parent: pg_sys::InvalidOid,
        #[cfg(feature = "pg18")]
        max_eager_freeze_failure_rate: 0.0,
        nworkers: -1,
    }
}
