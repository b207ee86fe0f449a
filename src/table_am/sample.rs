//! TABLESAMPLE.
//!
//! Sampling methods choose among numbered blocks and, within a block, among numbered rows
//! (PostgreSQL's `access/tsmapi.h`). What a block is here depends on who chooses:
//!
//! - A method that takes all blocks (BERNOULLI) is shown the rows in key order, [`tid::OFFSETS`] of them a block. So the rows that
//!   `REPEATABLE` gives change only when rows do, and not with VACUUM.
//! - A method that chooses blocks (SYSTEM) chooses among equal parts of the token ring, about as many as the table has pages,
//!   and only those are read. A partition lies wholly in one of them. Of an unplaced table, whose keys are row ids, they are
//!   parts of the ids given.

use super::scan::{merged, Scan};
use crate::pg::{statistics, tid};
use crate::read::{ColumnSet, KeyRange, ScanSpec, TableState};
use crate::segment::{metapage, relation};
use cass_storage::merge::Direction;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ops::Bound;

/// Rows that a method can tell apart at a time.
const ROWS: pg_sys::OffsetNumber = tid::OFFSETS as pg_sys::OffsetNumber;

/// Where a sampling scan is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Into how many blocks the table is cut; 0 before that is known, and where all are taken.
    blocks: pg_sys::BlockNumber,
    /// How many blocks were begun, where all are taken.
    begun: pg_sys::BlockNumber,
    /// The current block.
    block: pg_sys::BlockNumber,
    /// Rows read of the block since its last multiple of [`ROWS`].
    passed: pg_sys::OffsetNumber,
    /// Whether there are no rows behind those read.
    at_end: bool,
}

/// `scan_sample_next_block`
#[pg_guard]
pub unsafe extern "C-unwind" fn next_block(scan: pg_sys::TableScanDesc, node: *mut pg_sys::SampleScanState) -> bool {
    let scan = scan.cast::<Scan>();
    // SAFETY: the scan was made by our `scan_begin`; the executor hands over its node, whose method is loaded.
    unsafe {
        let sample = &mut (*scan).sample;
        sample.passed = 0;
        let Some(choose) = (*(*node).tsmroutine).NextSampleBlock else {
            sample.block = sample.begun;
            sample.begun += 1;
            return !sample.at_end;
        };
        let state = TableState::of((*scan).base.rs_rd);
        let slices = Slices::of(&state);
        if sample.blocks == 0 {
            sample.blocks = slices.wanted(&state);
        }
        sample.block = choose(node, sample.blocks);
        if sample.block == pg_sys::InvalidBlockNumber {
            return false;
        }
        sample.at_end = false;
        let ranges = vec![slices.range(sample.block, sample.blocks)];
        merged(scan).restart(ScanSpec { ranges, direction: Direction::Forward, columns: ColumnSet::All });
        true
    }
}

/// `scan_sample_next_tuple`
#[pg_guard]
pub unsafe extern "C-unwind" fn next_tuple(
    scan: pg_sys::TableScanDesc,
    node: *mut pg_sys::SampleScanState,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    let scan = scan.cast::<Scan>();
    // SAFETY: as for `next_block`; the slot is of the table's type. Every method has this callback.
    unsafe {
        let merged = merged(scan);
        let sample = &mut (*scan).sample;
        let Some(choose) = (*(*node).tsmroutine).NextSampleTuple else {
            return false;
        };
        let mut advance = |sample: &mut Sample, to: pg_sys::OffsetNumber| {
            while !sample.at_end && sample.passed < to {
                sample.at_end = !merged.next(slot);
                sample.passed += pg_sys::OffsetNumber::from(!sample.at_end);
            }
            !sample.at_end
        };
        loop {
            let offset = choose(node, sample.block, ROWS);
            if offset != pg_sys::InvalidOffsetNumber {
                if advance(sample, offset) {
                    statistics::count_scanned_row((*scan).base.rs_rd);
                    return true;
                }
                // Told how many rows there are, the method sees that it is through, and starts the next block anew.
                choose(node, sample.block, sample.passed);
                pg_sys::ExecClearTuple(slot);
                return false;
            }
            let took_the_last = sample.passed == ROWS;
            if (*(*node).tsmroutine).NextSampleBlock.is_none() {
                advance(sample, ROWS);
                pg_sys::ExecClearTuple(slot);
                return false;
            }
            // A part of the ring has as many rows as it has: what holds for its first rows holds for those behind.
            if !took_the_last {
                pg_sys::ExecClearTuple(slot);
                return false;
            }
            sample.passed = 0;
        }
    }
}

/// The keys of a table by their first eight bytes, cut into equal parts.
struct Slices {
    /// Keys start with numbers below this.
    end: u128,
}

impl Slices {
    fn of(state: &TableState) -> Slices {
        let end = match state.key {
            Some(_) => 1 << 64,
            None => u128::from(metapage::read(state.rel).next_row_id).max(1),
        };
        Slices { end }
    }

    /// How many slices to cut a table into: one for each page of it and its delta.
    fn wanted(&self, state: &TableState) -> pg_sys::BlockNumber {
        let of_delta = state.open_delta().map_or(0, |delta| {
            let pages = relation::main_fork_blocks(delta.heap);
            delta.close();
            pages
        });
        let pages = relation::main_fork_blocks(state.rel).saturating_add(of_delta);
        u128::from(pages.max(1)).min(self.end).try_into().unwrap_or(pg_sys::BlockNumber::MAX)
    }

    /// The first number of a slice, or the end of the last one.
    fn start(&self, slice: u128, slices: pg_sys::BlockNumber) -> u128 {
        self.end * slice / u128::from(slices.max(1))
    }

    fn range(&self, slice: pg_sys::BlockNumber, slices: pg_sys::BlockNumber) -> KeyRange {
        let bytes = |number: u128| u64::try_from(number).ok().map(|number| number.to_be_bytes().to_vec());
        let lower = bytes(self.start(u128::from(slice), slices));
        let upper = bytes(self.start(u128::from(slice) + 1, slices));
        KeyRange {
            lower: lower.map_or(Bound::Unbounded, Bound::Included),
            upper: upper.map_or(Bound::Unbounded, Bound::Excluded),
            partition: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_cover_all_keys_once() {
        for end in [1, 7, 1 << 20, 1 << 64] {
            let slices = Slices { end };
            for count in [1, 2, 3, 7, 1000] {
                let ranges: Vec<KeyRange> = (0..count).map(|slice| slices.range(slice, count)).collect();
                assert_eq!(ranges[0].lower, Bound::Included(vec![0; 8]));
                for pair in ranges.windows(2) {
                    let Bound::Excluded(upper) = &pair[0].upper else { panic!("open: {:?}", pair[0]) };
                    assert_eq!(pair[1].lower, Bound::Included(upper.clone()));
                }
                let last = &ranges[ranges.len() - 1].upper;
                match u64::try_from(end) {
                    Ok(end) => assert_eq!(*last, Bound::Excluded(end.to_be_bytes().to_vec())),
                    Err(_) => assert_eq!(*last, Bound::Unbounded),
                }
            }
        }
    }
}
