//! Rewrites of a table that a transaction's snapshot does not see.
//!
//! A rewrite keeps only the newest versions, in a segment that all snapshots see: an older one would find no rows otherwise. Which
//! of them changed after that snapshot was taken cannot be told any more, so that a transaction that goes by it may write none.

use std::cell::Cell;

use pgrx::pg_sys;

use super::TableState;
use crate::pg::snapshot::of_transaction;
use crate::pg::versions::plans;
use crate::segment::{list, visibility_map};

thread_local! {
    /// The answer for a life of a table and a local transaction. It stays, as whoever writes holds a lock on the table.
    static ANSWER: Cell<Option<(u64, pg_sys::LocalTransactionId, bool)>> = const { Cell::new(None) };
}

/// Whether another transaction has rewritten an open, locked table after the snapshot of this one was taken. False where each
/// statement has a snapshot of its own, which is taken under the table's lock.
pub fn after_snapshot(state: &TableState) -> bool {
    let Some(snapshot) = of_transaction() else { return false };
    let transaction = plans::local_transaction();
    match ANSWER.get() {
        Some((storage_id, asked_by, answer)) if (storage_id, asked_by) == (state.storage_id, transaction) => answer,
        _ => {
            // All that the map tells was so before the snapshot.
            let answer = visibility_map::segments(state.rel, snapshot).is_none()
                && list::is_rewritten_after(state.storage_id, snapshot);
            ANSWER.set(Some((state.storage_id, transaction, answer)));
            answer
        }
    }
}
