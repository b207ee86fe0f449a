//! Bitmap scans: the rows whose ids the bitmaps of secondary indexes have gathered.
//!
//! A bitmap's block is a run of [`tid::OFFSETS`] row ids, not a page of the table (`pg::tid`). Each id is looked up as an index
//! scan does. Since an id names one version for ever, what an exact bitmap found needs no second look at the condition.

use super::index_fetch::fetch_row;
use super::scan::Scan;
use crate::pg::tid;
use crate::pg::versions::scans::Block;
use crate::read::TableState;
use pgrx::pg_sys;

/// Where a bitmap scan is; of zero bytes before its first block.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Position {
    pub block: Block,
    /// Whether `block` is one.
    within: bool,
    /// How many ids of the block were looked at.
    passed: usize,
}

impl Position {
    /// Goes to a block; `None` before the first one, or behind the last.
    pub fn set(&mut self, block: Option<Block>) {
        self.within = block.is_some();
        self.passed = 0;
        if let Some(block) = block {
            self.block = block;
        }
    }

    /// The next id of the block. A lossy one stands for all that it can hold.
    fn next(&mut self) -> Option<pg_sys::ItemPointerData> {
        let place = self.passed;
        self.passed += 1;
        let offset = match self.block.lossy {
            false => self.block.offsets().get(place).copied(),
            true => u16::try_from(place + 1).ok().filter(|offset| u64::from(*offset) <= tid::OFFSETS),
        };
        offset.filter(|_| self.within).map(|offset| tid::at(self.block.number, offset))
    }
}

/// Puts the next row of the scan's block into a slot, and tells whether there is one.
///
/// # Safety
/// The scan was made by our `scan_begin`, and the slot is of the table's type.
pub unsafe fn next_row(scan: *mut Scan, slot: *mut pg_sys::TupleTableSlot) -> bool {
    // SAFETY: promised by the caller.
    unsafe {
        let state = TableState::of((*scan).base.rs_rd);
        while let Some(tid) = (*scan).bitmap.next() {
            pgrx::check_for_interrupts!();
            if fetch_row(&state, tid, (*scan).snapshot, slot) {
                return true;
            }
        }
        pg_sys::ExecClearTuple(slot);
        false
    }
}
