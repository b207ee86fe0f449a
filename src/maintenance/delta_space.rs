//! Giving the space of an emptied delta back to the file system.
//!
//! What a flush deletes from the delta stays in its files until a vacuum of the delta finds that nobody sees it any more, which
//! the transaction that flushed cannot yet. So a VACUUM command takes a second step for each table that it has vacuumed, in
//! a transaction of its own: it vacuums the delta and cuts its file. A btree never shrinks by itself; where no block of the heap
//! is left, the btrees get new files. Nobody is waited for: where the delta is in use, its space stays until the next VACUUM.
//!
//! A heap without blocks holds nothing that any snapshot sees, here or on a standby: vacuum cuts off no block before that, and
//! logs what standbys need to cancel the snapshots that do. So the btrees over it may be made anew.

use std::cell::RefCell;

use pgrx::pg_sys;
use pgrx::PgTryBuilder;

use super::{heap, tidy};
use crate::catalog;
use crate::delta::Delta;
use crate::pg::transaction::when_aborted;
use crate::read::TableState;
use crate::segment::relation;

/// A table that the running VACUUM command has vacuumed.
#[derive(Clone, Copy)]
struct Vacuumed {
    table: pg_sys::Oid,
    /// `None` for VACUUM FULL, which leaves all rows of the delta behind.
    params: Option<pg_sys::VacuumParams>,
}

thread_local! {
    /// What the running VACUUM command has vacuumed; `None` where none runs.
    static VACUUMED: RefCell<Option<Vec<Vacuumed>>> = const { RefCell::new(None) };
}

/// Lets an aborted command be forgotten. Called once a process from `_PG_init`.
pub fn init() {
    when_aborted(|_| VACUUMED.set(None));
}

/// Notes that a VACUUM command begins.
pub fn begin_command() {
    VACUUMED.set(Some(Vec::new()));
}

/// Notes a table that VACUUM has vacuumed with these parameters, or rewritten for `None`. Nothing is noted for autovacuum and
/// CLUSTER.
pub fn note(table: pg_sys::Oid, params: Option<pg_sys::VacuumParams>) {
    VACUUMED.with_borrow_mut(|vacuumed| {
        if let Some(vacuumed) = vacuumed {
            vacuumed.push(Vacuumed { table, params });
        }
    });
}

/// Ends a VACUUM command: gives back the space of the deltas of all tables noted, each in a transaction of its own.
///
/// # Safety
/// Called where VACUUM ends: outside a transaction block, in a transaction in which nothing has been done.
pub unsafe fn end_command() {
    for Vacuumed { table, params } in VACUUMED.take().unwrap_or_default() {
        if params.is_none() {
            // SAFETY: promised by the caller; `in_transaction` ends as it begins.
            unsafe { in_transaction(table, |state| tidy::delta(state, |_| {})) };
        }
        // As VACUUM FULL has them where it vacuums.
        let params = params.unwrap_or(pg_sys::VacuumParams {
            options: pg_sys::VACOPT_VACUUM,
            freeze_min_age: -1,
            freeze_table_age: -1,
            multixact_freeze_min_age: -1,
            multixact_freeze_table_age: -1,
            index_cleanup: pg_sys::VacOptValue::VACOPTVALUE_ENABLED,
            truncate: pg_sys::VacOptValue::VACOPTVALUE_ENABLED,
            ..Default::default()
        });
        // SAFETY: as above.
        unsafe { in_transaction(table, |state| give_back(state, &params)) };
    }
}

/// Runs `work` in a transaction of its own with a cass table, unless it is gone or somebody else maintains or alters it.
///
/// # Safety
/// As for [`end_command`].
unsafe fn in_transaction(table: pg_sys::Oid, work: impl FnOnce(&TableState)) {
    let lock = pg_sys::ShareUpdateExclusiveLock as pg_sys::LOCKMODE;
    // SAFETY: promised by the caller; the snapshot is popped on the ordinary way out, else by the abort. The lock is released by the
    // commit.
    unsafe {
        pg_sys::CommitTransactionCommand();
        pg_sys::StartTransactionCommand();
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        if pg_sys::ConditionalLockRelationOid(table, lock) && catalog::is_cass_oid(table) {
            let rel = pg_sys::try_table_open(table, pg_sys::NoLock as pg_sys::LOCKMODE);
            if !rel.is_null() {
                work(&TableState::of(rel));
                pg_sys::table_close(rel, pg_sys::NoLock as pg_sys::LOCKMODE);
            }
        }
        pg_sys::PopActiveSnapshot();
    }
}

/// Vacuums the delta and cuts off its free end; then makes small what is empty.
fn give_back(state: &TableState, params: &pg_sys::VacuumParams) {
    let Some(delta) = Delta::open(state.rel, state.storage_id, pg_sys::AccessShareLock) else {
        return;
    };
    if relation::main_fork_blocks(delta.heap) > 0 {
        throttled(|| {
            // SAFETY: the delta is an open heap, the parameters are VACUUM's.
            unsafe {
                let strategy = pg_sys::GetAccessStrategy(pg_sys::BufferAccessStrategyType::BAS_VACUUM);
                heap::vacuum_and_cut_if_free(delta.heap, params, strategy);
                pg_sys::FreeAccessStrategy(strategy);
            }
        });
        tidy::note_if_empty(state, &delta);
    }
    delta.close();
    shrink_indexes(state);
}

/// Runs `work` with VACUUM's cost limits, as the command itself does.
fn throttled(work: impl FnOnce() + std::panic::UnwindSafe + std::panic::RefUnwindSafe) {
    // SAFETY: variables of this process.
    unsafe {
        pg_sys::VacuumCostActive = pg_sys::VacuumCostDelay > 0.0;
        pg_sys::VacuumCostBalance = 0;
    }
    PgTryBuilder::new(work)
        .finally(|| {
            // SAFETY: as above.
            unsafe { pg_sys::VacuumCostActive = false }
        })
        .execute();
}

/// Gives the delta's btrees new, empty files if its heap has no block and they are longer than need be, unless somebody uses
/// them. They stay locked to the end of the transaction, so this is the last thing it does.
pub fn shrink_indexes(state: &TableState) {
    let Some(delta) = Delta::open(state.rel, state.storage_id, pg_sys::AccessShareLock) else {
        return;
    };
    let indexes = [delta.key_index, delta.row_id_index].map(relation::oid);
    let heap = relation::oid(delta.heap);
    // A btree without entries is its metapage.
    let worthwhile = relation::main_fork_blocks(delta.heap) == 0
        && [delta.key_index, delta.row_id_index].into_iter().any(|index| relation::main_fork_blocks(index) > 1);
    // SAFETY: the delta's relations stay, as the table that they depend on is locked; they are locked as reindex_index does,
    // and none of them is open any more when it looks.
    unsafe {
        let persistence = (*(*delta.heap).rd_rel).relpersistence;
        // No writer is at work, nor does one begin.
        let locked = worthwhile && pg_sys::ConditionalLockRelation(delta.heap, pg_sys::ShareLock as pg_sys::LOCKMODE);
        let empty = locked && relation::main_fork_blocks(delta.heap) == 0;
        delta.close();
        let exclusive = pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE;
        if empty && indexes.into_iter().all(|index| pg_sys::ConditionalLockRelationOid(index, exclusive)) {
            let mut params = pg_sys::ReindexParams { options: 0, tablespaceOid: pg_sys::InvalidOid };
            for index in indexes {
                pg_sys::reindex_index(index, true, persistence, &raw mut params);
            }
        } else if locked {
            pg_sys::UnlockRelationOid(heap, pg_sys::ShareLock as pg_sys::LOCKMODE);
        }
    }
}
