//! VACUUM of a cass table: the compaction scheduler, run by autovacuum too.
//!
//! One transaction: what nobody can see any more is given back first (list rows with their runs, delta rows), then the delta is
//! flushed, then segments are merged, then dead index entries go.

use std::time::{Duration, Instant};

use pgrx::pg_sys;

use super::{flush, heap, in_vacuum, index_entries, merge, reclaim, tidy, Flushed, Merged};
use crate::error::Report;
use crate::pg::versions::{counters, vacuum};
use crate::read::segments::with_latest_snapshot;
use crate::read::TableState;
use crate::segment::{list, relation};

/// What one VACUUM did.
struct Work {
    flushed: Flushed,
    merged: Merged,
    index_entries: u64,
}

/// `relation_vacuum`: everything that VACUUM does to a table, but for what it does to the whole database.
///
/// # Safety
/// Called by VACUUM, with the table open and locked with ShareUpdateExclusiveLock.
pub unsafe fn vacuum(rel: pg_sys::Relation, params: *mut pg_sys::VacuumParams, strategy: pg_sys::BufferAccessStrategy) {
    let start = Instant::now();
    in_vacuum::become_a_writer();
    // SAFETY: promised by the caller; the snapshot pushed here is popped below, on an error by transaction abort.
    unsafe {
        pg_sys::PushActiveSnapshot(pg_sys::GetLatestSnapshot());
        let state = TableState::of(rel);
        let params = *params;
        tidy::list(&state, |heap| heap::vacuum_if_free(heap, &params, strategy, false));
        tidy::delta(&state, |heap| heap::vacuum_if_free(heap, &params, strategy, false));
        if params.truncate != pg_sys::VacOptValue::VACOPTVALUE_DISABLED {
            reclaim::note(rel);
        }
        begin_progress(rel);
        let flushed = flush(&state);
        phase(pg_sys::PROGRESS_VACUUM_PHASE_VACUUM_HEAP);
        let merged = merge(&state, false);
        phase(pg_sys::PROGRESS_VACUUM_PHASE_VACUUM_INDEX);
        let wanted = params.index_cleanup != pg_sys::VacOptValue::VACOPTVALUE_DISABLED;
        let dead = dead_rows(rel);
        let index_entries = if wanted && dead > 0 { index_entries::remove_dead(&state, strategy) } else { 0 };
        phase(pg_sys::PROGRESS_VACUUM_PHASE_FINAL_CLEANUP);
        // The ids of what was merged away are still in runs that snapshots may read: the next VACUUM removes their entries.
        let dead_next_time = if merged.inputs > 0 || list::has_dead(state.storage_id) { dead.max(1) } else { 0 };
        update_statistics(&state, dead_next_time, start.elapsed());
        pg_sys::PopActiveSnapshot();
        pg_sys::pgstat_progress_end_command();
        report(rel, &params, start.elapsed(), &Work { flushed, merged, index_entries });
    }
}

/// Shows the work in `pg_stat_progress_vacuum`: scanning the heap is the flush, vacuuming it the merges.
fn begin_progress(rel: pg_sys::Relation) {
    // SAFETY: writes this backend's own entry of shared statistics.
    unsafe {
        pg_sys::pgstat_progress_start_command(pg_sys::ProgressCommandType::PROGRESS_COMMAND_VACUUM, relation::oid(rel));
        let blocks = i64::from(relation::main_fork_blocks(rel));
        pg_sys::pgstat_progress_update_param(pg_sys::PROGRESS_VACUUM_TOTAL_HEAP_BLKS as i32, blocks);
    }
    phase(pg_sys::PROGRESS_VACUUM_PHASE_SCAN_HEAP);
}

fn phase(phase: u32) {
    // SAFETY: writes this backend's own entry of shared statistics.
    unsafe { pg_sys::pgstat_progress_update_param(pg_sys::PROGRESS_VACUUM_PHASE as i32, i64::from(phase)) }
}

/// Rows overwritten or deleted that indexes may still have entries of, as far as the statistics know.
fn dead_rows(rel: pg_sys::Relation) -> i64 {
    // SAFETY: the entry, if there is one, stays for the transaction.
    unsafe {
        let entry = pg_sys::pgstat_fetch_stat_tabentry(relation::oid(rel));
        if entry.is_null() {
            0
        } else {
            counters::dead_rows(&*entry)
        }
    }
}

/// Tells planner and autovacuum how large the table is now. Segments hold no transaction ids; still, core gives a rewritten
/// table a relfrozenxid, which must not stay behind.
fn update_statistics(state: &TableState, dead: i64, elapsed: Duration) {
    let segments = with_latest_snapshot(|snapshot| list::visible(state.rel, snapshot));
    let rows: u64 = segments.iter().map(|segment| segment.row_count.saturating_sub(segment.tombstone_count)).sum();
    // SAFETY: the table is open and locked as VACUUM does.
    unsafe {
        let class = (*state.rel).rd_rel;
        let oldest_ids = if (*class).relfrozenxid == pg_sys::InvalidTransactionId {
            (pg_sys::InvalidTransactionId, pg_sys::MultiXactId::from(0))
        } else {
            (pg_sys::GetOldestNonRemovableTransactionId(state.rel), pg_sys::GetOldestMultiXactId())
        };
        let pages = relation::main_fork_blocks(state.rel);
        vacuum::update_statistics(state.rel, pages, rows as f64, (*class).relhasindex, oldest_ids);
        vacuum::report_counts(state.rel, rows as i64, dead, elapsed);
    }
}

/// Says what was done: VACUUM VERBOSE to the client, autovacuum to the log if it took long.
fn report(rel: pg_sys::Relation, params: &pg_sys::VacuumParams, elapsed: Duration, work: &Work) {
    // SAFETY: a process-wide constant of the backend.
    let automatic = unsafe { pg_sys::MyBackendType } == pg_sys::BackendType::B_AUTOVAC_WORKER;
    let verbose = params.options & pg_sys::VACOPT_VERBOSE != 0;
    let limit = u128::try_from(params.log_min_duration);
    let slow = automatic && limit.is_ok_and(|limit| elapsed.as_millis() >= limit);
    if !verbose && !slow {
        return;
    }
    let Work { flushed, merged, index_entries } = work;
    let message = format!("vacuumed cass table \"{}\" in {} ms", relation::name(rel), elapsed.as_millis());
    let detail = format!(
        "{} rows flushed, {} delta rows removed and {} left, {} segments merged into {}, {} row versions dropped, {} index \
         entries removed.",
        flushed.rows, flushed.removed, flushed.left, merged.inputs, merged.outputs, merged.dropped, index_entries
    );
    if slow {
        Report::new("00000", message).detail(detail).log();
    } else {
        pgrx::info!("{message}: {detail}");
    }
}
