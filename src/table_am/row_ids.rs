//! Row ids for new versions, taken from the metapage in batches.

use crate::read::TableState;
use crate::segment::{metapage, relation};
use std::cell::RefCell;
use std::collections::HashMap;

/// A backend's first batch of a table; each further one is twice as large, so that a single INSERT wastes few ids and a
/// load rarely asks.
const FIRST_BATCH: u64 = 32;
const LARGEST_BATCH: u64 = 8192;
/// Tables a backend keeps batches of.
const TABLES: usize = 256;

struct Batch {
    next: u64,
    end: u64,
    size: u64,
}

thread_local! {
    /// By file too: what a copy has given is not the original's, if a rollback brings that back.
    static BATCHES: RefCell<HashMap<(relation::FileNode, u64), Batch>> = RefCell::new(HashMap::new());
}

/// A row id that no version of the table has had or will have.
pub fn next(state: &TableState) -> u64 {
    BATCHES.with_borrow_mut(|batches| {
        if batches.len() > TABLES {
            batches.clear();
        }
        let batch = batches.entry((relation::file_node(state.rel), state.storage_id)).or_insert(Batch {
            next: 0,
            end: 0,
            size: FIRST_BATCH / 2,
        });
        if batch.next == batch.end {
            batch.size = (batch.size * 2).min(LARGEST_BATCH);
            batch.next = metapage::reserve_row_ids(state.rel, batch.size);
            batch.end = batch.next + batch.size;
        }
        batch.next += 1;
        batch.next - 1
    })
}
