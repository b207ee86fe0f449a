//! What the cumulative statistics count of reads: macros of pgstat.h, which pgrx does not bind.

use super::versions::counters;
use pgrx::pg_sys;

/// Counts a read of the whole table (`seq_scan`).
pub fn count_full_scan(rel: pg_sys::Relation) {
    counted(rel, counters::count_scan);
}

/// Counts a row that such a read gave (`seq_tup_read`).
pub fn count_scanned_row(rel: pg_sys::Relation) {
    counted(rel, counters::count_row);
}

fn counted(rel: pg_sys::Relation, count: impl FnOnce(&mut pg_sys::PgStat_TableStatus)) {
    // SAFETY: the caller has the relation open; its entry of pending statistics, once there, stays as long.
    unsafe {
        if (*rel).pgstat_info.is_null() && (*rel).pgstat_enabled {
            pg_sys::pgstat_assoc_relation(rel);
        }
        if let Some(entry) = (*rel).pgstat_info.as_mut() {
            count(entry);
        }
    }
}
