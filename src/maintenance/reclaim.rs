//! What a VACUUM command gives back once it has committed.
//!
//! Rows that a flush moves out of the delta are dead when the flush commits, not before. So the command goes on, in a transaction
//! of its own for each table: it vacuums the delta, which shrinks to nothing if nobody needs its rows, makes its indexes small
//! again, and notes in the visibility map what is settled now. Nobody is waited for: what is in use stays for the next VACUUM.
//! Autovacuum does without: it comes to the delta as to any other heap, and to the rest at its next visit.

use std::cell::RefCell;

use pgrx::pg_sys;

use super::{heap, tidy};
use crate::catalog;
use crate::delta::Delta;
use crate::pg::injection::point;
use crate::pg::versions::{tables, vacuum};
use crate::read::TableState;
use crate::segment::relation;

thread_local! {
    /// OIDs of the tables that the running VACUUM command has come to.
    static VACUUMED: RefCell<Vec<pg_sys::Oid>> = const { RefCell::new(Vec::new()) };
}

/// Notes that the running command vacuums a table and may shrink files.
pub fn note(rel: pg_sys::Relation) {
    // SAFETY: a process-wide constant of the backend.
    if unsafe { pg_sys::MyBackendType } == pg_sys::BackendType::B_BACKEND {
        VACUUMED.with_borrow_mut(|vacuumed| vacuumed.push(relation::table_oid(rel)));
    }
}

/// Forgets what was noted, as a VACUUM command begins.
pub fn begin() {
    VACUUMED.with_borrow_mut(Vec::clear);
}

/// Ends a VACUUM command.
///
/// # Safety
/// Called at the top level, outside a transaction block and without an active snapshot, in a transaction that has done nothing
/// yet. It ends, and another such one is begun.
pub unsafe fn finish() {
    let mut tables = VACUUMED.take();
    tables.sort_unstable_by_key(|table| table.to_u32());
    tables.dedup();
    for table in tables {
        // SAFETY: promised by the caller.
        unsafe {
            // Rows of an earlier life of the table are deleted by one transaction and given back by the next.
            if reclaim_and_commit(table) {
                reclaim_and_commit(table);
            }
        }
    }
}

/// As [`reclaim`], which it commits.
///
/// # Safety
/// As [`finish`].
unsafe fn reclaim_and_commit(table: pg_sys::Oid) -> bool {
    // SAFETY: promised by the caller; the memory that the work uses goes with its transaction.
    unsafe {
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        let again = reclaim(table);
        pg_sys::PopActiveSnapshot();
        pg_sys::CommitTransactionCommand();
        pg_sys::StartTransactionCommand();
        again
    }
}

/// Gives back what it can of a table's delta. Whether there is more to be given back by another transaction.
fn reclaim(table: pg_sys::Oid) -> bool {
    let lock = pg_sys::ShareUpdateExclusiveLock as pg_sys::LOCKMODE;
    // SAFETY: the relation is opened only under a lock; the lock is kept to the transaction's end.
    unsafe {
        if !pg_sys::ConditionalLockRelationOid(table, lock) {
            return false;
        }
        let rel = pg_sys::try_relation_open(table, pg_sys::NoLock as pg_sys::LOCKMODE);
        if rel.is_null() {
            return false;
        }
        let again = catalog::is_cass_relation(rel) && {
            let state = TableState::of(rel);
            let again =
                tidy::delta(&state, |delta| heap::vacuum_if_free(delta, &vacuum::parameters(), strategy(), true));
            point("delta-emptied");
            shrink_indexes(&state);
            point("indexes-shrunk");
            tidy::note_segments(&state);
            again
        };
        pg_sys::relation_close(rel, pg_sys::NoLock as pg_sys::LOCKMODE);
        again
    }
}

/// A ring of buffers as VACUUM uses, in the transaction's memory.
fn strategy() -> pg_sys::BufferAccessStrategy {
    // SAFETY: allocates in the current memory context.
    unsafe { pg_sys::GetAccessStrategy(pg_sys::BufferAccessStrategyType::BAS_VACUUM) }
}

/// Pages of an index that are not worth a new file.
const SMALL_INDEX: u32 = 16;

/// Gives the delta's indexes new, small files if its heap has no page and nobody uses them. They are locked exclusively to the
/// transaction's end.
///
/// A heap without a page has no row that anybody sees, and the vacuum that has emptied it has cancelled the queries of
/// standbys that saw some.
fn shrink_indexes(state: &TableState) {
    let Some(delta) = Delta::open(state.rel, state.storage_id, pg_sys::RowExclusiveLock) else { return };
    let large: Vec<pg_sys::Oid> = [delta.key_index, delta.row_id_index]
        .into_iter()
        .filter(|index| relation::main_fork_blocks(*index) > SMALL_INDEX)
        .map(relation::oid)
        .collect();
    // SAFETY: all locks that reindex_index takes are held before it is called, so that it waits for nobody. It wants the indexes
    // to be closed.
    unsafe {
        let heap = delta.heap;
        delta.close_indexes();
        if !large.is_empty() && is_empty_and_unused(heap, &large) {
            let persistence = (*(*heap).rd_rel).relpersistence;
            for index in large {
                tables::rebuild_index(index, persistence);
            }
        }
        pg_sys::table_close(heap, pg_sys::NoLock as pg_sys::LOCKMODE);
    }
}

/// Whether a delta's heap has no page, and will have none, and its indexes could be locked, all without waiting.
///
/// # Safety
/// `heap` is an open delta and `indexes` are of it.
unsafe fn is_empty_and_unused(heap: pg_sys::Relation, indexes: &[pg_sys::Oid]) -> bool {
    let is_empty = || relation::main_fork_blocks(heap) == 0;
    // SAFETY: promised by the caller.
    unsafe {
        is_empty()
            && pg_sys::ConditionalLockRelation(heap, pg_sys::ShareLock as pg_sys::LOCKMODE)
            && is_empty()
            && indexes.iter().all(|index| {
                pg_sys::ConditionalLockRelationOid(*index, pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE)
            })
    }
}
