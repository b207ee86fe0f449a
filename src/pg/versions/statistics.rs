//! Names of the cumulative statistics' counters (pgstat.h).

use pgrx::pg_sys;

/// What one table counts until it is reported.
pub fn counts(entry: &mut pg_sys::PgStat_TableStatus) -> &mut pg_sys::PgStat_TableCounts {
    #[cfg(feature = "pg15")]
    return &mut entry.t_counts;
    #[cfg(not(feature = "pg15"))]
    return &mut entry.counts;
}

/// The counter of reads of the whole table.
pub fn scans(counts: &mut pg_sys::PgStat_TableCounts) -> &mut pg_sys::PgStat_Counter {
    #[cfg(feature = "pg15")]
    return &mut counts.t_numscans;
    #[cfg(not(feature = "pg15"))]
    return &mut counts.numscans;
}

/// The counter of rows that such reads gave.
pub fn rows_returned(counts: &mut pg_sys::PgStat_TableCounts) -> &mut pg_sys::PgStat_Counter {
    #[cfg(feature = "pg15")]
    return &mut counts.t_tuples_returned;
    #[cfg(not(feature = "pg15"))]
    return &mut counts.tuples_returned;
}

/// Rows of a table that vacuum has not removed yet.
pub fn dead_rows(entry: &pg_sys::PgStat_StatTabEntry) -> i64 {
    #[cfg(feature = "pg15")]
    return entry.n_dead_tuples;
    #[cfg(not(feature = "pg15"))]
    return entry.dead_tuples;
}

/// Counts the update of a row.
///
/// # Safety
/// `rel` is open.
pub unsafe fn count_update(rel: pg_sys::Relation) {
    // SAFETY: promised by the caller.
    unsafe {
        #[cfg(feature = "pg15")]
        pg_sys::pgstat_count_heap_update(rel, false);
        #[cfg(not(feature = "pg15"))]
        pg_sys::pgstat_count_heap_update(rel, false, false);
    }
}
