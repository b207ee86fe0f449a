//! What the cumulative statistics count of reads: macros of pgstat.h, which pgrx does not bind.

use super::versions::statistics as versions;
use pgrx::pg_sys;

/// Counts a read of the whole table (`seq_scan`).
pub fn count_full_scan(rel: pg_sys::Relation) {
    counted(rel, |counts| *versions::scans(counts) += 1);
}

/// Counts a row that such a read gave (`seq_tup_read`).
pub fn count_scanned_row(rel: pg_sys::Relation) {
    counted(rel, |counts| *versions::rows_returned(counts) += 1);
}

fn counted(rel: pg_sys::Relation, count: impl FnOnce(&mut pg_sys::PgStat_TableCounts)) {
    // SAFETY: the caller has the relation open; its entry of pending statistics, once there, stays as long.
    unsafe {
        if (*rel).pgstat_info.is_null() && (*rel).pgstat_enabled {
            pg_sys::pgstat_assoc_relation(rel);
        }
        if let Some(entry) = (*rel).pgstat_info.as_mut() {
            count(versions::counts(entry));
        }
    }
}
