//! The cumulative statistics (`pgstat.h`).

use pgrx::pg_sys;

/// Counts a read of the whole table.
pub fn count_scan(status: &mut pg_sys::PgStat_TableStatus) {
    #[cfg(feature = "pg15")]
    {
        status.t_counts.t_numscans += 1;
    }
    #[cfg(not(feature = "pg15"))]
    {
        status.counts.numscans += 1;
    }
}

/// Counts a row that such a read gave.
pub fn count_row(status: &mut pg_sys::PgStat_TableStatus) {
    #[cfg(feature = "pg15")]
    {
        status.t_counts.t_tuples_returned += 1;
    }
    #[cfg(not(feature = "pg15"))]
    {
        status.counts.tuples_returned += 1;
    }
}

/// Rows of a table that are known to be dead.
pub fn dead_rows(entry: &pg_sys::PgStat_StatTabEntry) -> i64 {
    #[cfg(feature = "pg15")]
    return entry.n_dead_tuples;
    #[cfg(not(feature = "pg15"))]
    return entry.dead_tuples;
}

/// Counts an update of a row, whose new version every index gets an entry of.
///
/// # Safety
/// `rel` is open.
pub unsafe fn count_update(rel: pg_sys::Relation) {
    // SAFETY: promised by the caller. Neither a HOT update nor one to another page.
    unsafe {
        #[cfg(feature = "pg15")]
        pg_sys::pgstat_count_heap_update(rel, false);
        #[cfg(not(feature = "pg15"))]
        pg_sys::pgstat_count_heap_update(rel, false, false);
    }
}
