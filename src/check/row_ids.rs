//! Row ids over all segments and the delta: each names one key, and the metapage has given it.
//!
//! The same version may be there twice: a row that a flush has copied stays in the delta while somebody uses it. Two versions never
//! share an id.

use cass_storage::sort::ExternalSorter;
use cass_storage::token::token;
use cass_storage::Result;

use super::fault::Kind;
use super::{metapage, sort_directory, sort_memory, Check};
use crate::read::TableState;
use crate::segment::relation;

/// Stands for the delta where a segment's number would be.
pub(super) const IN_DELTA: u64 = 0;

/// Gathers row ids, sorted, with a hash of the key that each names.
pub(super) struct RowIds {
    sorter: ExternalSorter,
}

impl RowIds {
    pub(super) fn new(state: &TableState) -> RowIds {
        RowIds { sorter: ExternalSorter::with_directory(sort_memory(), sort_directory(state)) }
    }

    /// Adds a version that was found in a segment, or [`IN_DELTA`]. 0 is no id.
    pub(super) fn push(&mut self, row_id: u64, key: &[u8], run_id: u64) -> Result<()> {
        if row_id == 0 {
            return Ok(());
        }
        let mut entry = [0; 16];
        entry[..8].copy_from_slice(&row_id.to_be_bytes());
        entry[8..].copy_from_slice(&token(key).to_be_bytes());
        self.sorter.push(&entry, &run_id.to_be_bytes())
    }
}

impl Check<'_> {
    /// Looks for ids that name two keys, or that have not been given.
    pub(super) fn row_ids(&mut self, row_ids: RowIds) {
        let state = self.state;
        let mut sorted = row_ids.sorter.finish().unwrap_or_else(|error| state.raise(&error));
        let mut last: Option<(u64, u64)> = None;
        loop {
            pgrx::check_for_interrupts!();
            let next = sorted.next().unwrap_or_else(|error| state.raise(&error));
            let Some((entry, run)) = next else { break };
            let number = |bytes: Option<&[u8; 8]>| bytes.map_or(0, |bytes| u64::from_be_bytes(*bytes));
            let (row_id, run_id) = (number(entry.first_chunk()), number(run.first_chunk()));
            if let Some((_, other)) = last.filter(|(id, _)| *id == row_id) {
                let detail =
                    format!("row id {row_id} names rows of two keys, in {} and in {}", place(other), place(run_id));
                self.row_id_fault(run_id, detail);
            }
            last = Some((row_id, run_id));
        }
        // Read last: ids are given before rows that have them are written.
        if let (Some((row_id, run_id)), Some(next)) = (last, metapage::next_row_id(state)) {
            if row_id >= next {
                let detail = format!("row id {row_id} is there, and the metapage says that {next} is given next");
                self.row_id_fault(run_id, detail);
            }
        }
    }

    fn row_id_fault(&mut self, run_id: u64, detail: String) {
        let table = relation::oid(self.state.rel);
        if run_id == IN_DELTA {
            self.faults.add(Kind::RowId, table, None, detail);
        } else {
            self.faults.add_in_segment(Kind::RowId, table, run_id, None, detail);
        }
    }
}

fn place(run_id: u64) -> String {
    if run_id == IN_DELTA {
        "the delta".into()
    } else {
        format!("segment {run_id}")
    }
}
