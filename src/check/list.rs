//! The table's part of the list of segments.

use std::collections::BTreeMap;

use pgrx::pg_sys;

use super::fault::Kind;
use super::Check;
use crate::pg::subtransaction::caught;
use crate::segment::list::{self, List, SegmentEntry};
use crate::segment::{relation, visibility_map};

impl Check<'_> {
    /// Checks the list and gives the segments whose pages can be looked at.
    pub(super) fn list(&mut self) -> Vec<SegmentEntry> {
        let (rel, storage_id, snapshot) = (self.state.rel, self.state.storage_id, self.snapshot);
        let read = caught(|| {
            let by_index: Vec<SegmentEntry> =
                list::listed(storage_id, snapshot).into_iter().map(|listed| listed.entry).collect();
            (by_index, rows_by_heap(storage_id, snapshot))
        });
        let (by_index, by_heap) = match read {
            Ok(read) => read,
            Err(error) => {
                self.list_fault(None, format!("the list of segments cannot be read: {}", error.text));
                return Vec::new();
            }
        };
        for (table, entry) in &by_heap {
            if *table != relation::table_oid(rel) {
                self.list_fault(Some(entry.run_id), format!("the list says that it is of table {}", table.to_u32()));
            }
            if !by_index.contains(entry) {
                self.list_fault(Some(entry.run_id), "the index of the list does not lead to the segment's row");
            }
        }
        let in_heap = |entry: &SegmentEntry| by_heap.iter().any(|(_, other)| other == entry);
        for entry in by_index.iter().filter(|entry| !in_heap(entry)) {
            self.list_fault(
                Some(entry.run_id),
                "the index of the list leads to a row of the segment that is not there",
            );
        }
        self.map_agrees(&by_index);
        let segments = by_heap.into_iter().map(|(_, entry)| entry).collect();
        self.numbers(segments)
    }

    /// Whether the visibility map says of the segments what the list does.
    fn map_agrees(&mut self, listed: &[SegmentEntry]) {
        let (rel, snapshot) = (self.state.rel, self.snapshot);
        let Ok(Some(known)) = caught(|| visibility_map::segments(rel, snapshot)) else { return };
        if *known != *listed {
            let (known, listed) = (run_ids(&known), run_ids(listed));
            let detail =
                format!("the visibility map has segments {known}, and the list has {listed}, or what they say differs");
            self.faults.add(Kind::VisibilityMap, relation::oid(rel), Some(0), detail);
        }
    }

    /// Looks at places of runs and at the order of segments. Leaves out segments that do not lie inside the table's file.
    fn numbers(&mut self, mut segments: Vec<SegmentEntry>) -> Vec<SegmentEntry> {
        // Files only get longer while the table is locked, so this is asked after the list was read.
        let blocks = u64::from(relation::main_fork_blocks(self.state.rel));
        let mut by_block = BTreeMap::new();
        let mut by_sequence = BTreeMap::new();
        segments.sort_unstable_by_key(|entry| entry.run_id);
        segments.retain(|entry| {
            let (run_id, first) = (entry.run_id, u64::from(entry.first_block));
            let end = first + u64::from(entry.page_count);
            if first == 0 || end == first || end > blocks {
                let detail =
                    format!("the list says blocks {first} to {} of it, and the file has {blocks} blocks", end - 1);
                self.list_fault(Some(run_id), detail);
                return false;
            }
            if let Some((_, other)) = by_block.range(..end).next_back().filter(|(_, (other_end, _))| *other_end > first)
            {
                let (_, other): &(u64, u64) = other;
                self.list_fault(Some(run_id), format!("its blocks from {first} on are those of segment {other} too"));
            }
            by_block.insert(first, (end, run_id));
            let (low, high) = (entry.sequence_low, entry.sequence_high);
            if low == 0 || low > high {
                self.list_fault(Some(run_id), format!("it stands for places {low} to {high} in the order of segments"));
            }
            if let Some((_, other)) =
                by_sequence.range(..=high).next_back().filter(|(_, (other_high, _))| *other_high >= low)
            {
                let (_, other): &(u64, u64) = other;
                let detail =
                    format!("its places {low} to {high} in the order of segments are those of segment {other} too");
                self.list_fault(Some(run_id), detail);
            }
            by_sequence.insert(low, (high, run_id));
            true
        });
        segments
    }

    fn list_fault(&mut self, run_id: Option<u64>, detail: impl Into<String>) {
        let table = relation::oid(self.state.rel);
        match run_id {
            Some(run_id) => self.faults.add_in_segment(Kind::List, table, run_id, None, detail),
            None => self.faults.add(Kind::List, table, None, detail),
        }
    }
}

/// The published rows of a life of a table that a snapshot sees, read without the list's index, each with the table it names.
fn rows_by_heap(storage_id: u64, snapshot: pg_sys::Snapshot) -> Vec<(pg_sys::Oid, SegmentEntry)> {
    let mut found = Vec::new();
    let list = List::open(pg_sys::AccessShareLock);
    list.scan_tables(snapshot, |row| {
        if row.storage_id() == storage_id {
            found.extend(row.segment().map(|entry| (row.table(), entry)));
        }
    });
    list.close(pg_sys::AccessShareLock);
    found
}

fn run_ids(entries: &[SegmentEntry]) -> String {
    let ids: Vec<String> = entries.iter().map(|entry| entry.run_id.to_string()).collect();
    if ids.is_empty() {
        "none".into()
    } else {
        ids.join(", ")
    }
}
