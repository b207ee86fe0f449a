//! Bitmap scans: the rows whose ids the bitmaps of secondary indexes have gathered.
//!
//! A bitmap's block is a run of [`tid::OFFSETS`] row ids, not a page of the table (`pg::tid`). Each id is looked up as an index
//! scan does. Since an id names one version for ever, what an exact bitmap found needs no second look at the condition.

use super::index_fetch::fetch_row;
use super::scan::Scan;
use crate::pg::tid;
use crate::read::TableState;
use pgrx::pg_sys;
use pgrx::prelude::*;

/// Where a bitmap scan is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Position {
    /// How many ids of the current block were looked at.
    passed: usize,
}

/// `scan_bitmap_next_block`
#[pg_guard]
pub unsafe extern "C-unwind" fn next_block(scan: pg_sys::TableScanDesc, _block: *mut pg_sys::TBMIterateResult) -> bool {
    // SAFETY: the scan was made by our `scan_begin`.
    unsafe { (*scan.cast::<Scan>()).bitmap = Position::default() };
    true
}

/// `scan_bitmap_next_tuple`
#[pg_guard]
pub unsafe extern "C-unwind" fn next_tuple(
    scan: pg_sys::TableScanDesc,
    block: *mut pg_sys::TBMIterateResult,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    let scan = scan.cast::<Scan>();
    // SAFETY: the scan was made by our `scan_begin`, the slot is of the table's type, and the block is what `next_block` was
    // called with.
    unsafe {
        let state = TableState::of((*scan).base.rs_rd);
        while let Some(offset) = offset((*block).ntuples, &raw const (*block).offsets, (*scan).bitmap.passed) {
            pgrx::check_for_interrupts!();
            (*scan).bitmap.passed += 1;
            if fetch_row(&state, tid::at((*block).blockno, offset), (*scan).snapshot, slot) {
                return true;
            }
        }
        pg_sys::ExecClearTuple(slot);
        false
    }
}

/// The offset at `place` in a block of a bitmap; `None` behind its last one. A lossy block, of a count below 0, stands for all.
unsafe fn offset(
    count: i32,
    offsets: *const pg_sys::__IncompleteArrayField<pg_sys::OffsetNumber>,
    place: usize,
) -> Option<pg_sys::OffsetNumber> {
    match usize::try_from(count) {
        // SAFETY: the block's array has `count` members.
        Ok(count) => (place < count).then(|| unsafe { *offsets.cast::<pg_sys::OffsetNumber>().add(place) }),
        Err(_) => u16::try_from(place + 1).ok().filter(|offset| u64::from(*offset) <= tid::OFFSETS),
    }
}
