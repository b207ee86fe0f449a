//! The callbacks whose arguments differ between versions of PostgreSQL: thin covers of functions that know of no version.

use super::scan::Scan;
use super::{analyze, bitmap};
use crate::pg::versions::scans::Block;
use pgrx::pg_sys;
use pgrx::prelude::*;

/// `scan_analyze_next_block`
#[cfg(not(feature = "pg18"))]
#[pg_guard]
pub unsafe extern "C-unwind" fn analyze_block(
    scan: pg_sys::TableScanDesc,
    _block: pg_sys::BlockNumber,
    _strategy: pg_sys::BufferAccessStrategy,
) -> bool {
    // SAFETY: the scan was made by our `scan_begin`.
    unsafe { analyze::begin(scan.cast::<Scan>()) }
}

/// `scan_analyze_next_block`: the blocks to sample are taken from the stream unread, since ANALYZE counts those it has chosen.
#[cfg(feature = "pg18")]
#[pg_guard]
pub unsafe extern "C-unwind" fn analyze_block(scan: pg_sys::TableScanDesc, stream: *mut pg_sys::ReadStream) -> bool {
    // SAFETY: the scan was made by our `scan_begin`; the stream is the caller's, and live.
    unsafe {
        let mut strategy = std::ptr::null_mut();
        let mut any = false;
        while pg_sys::read_stream_next_block(stream, &mut strategy) != pg_sys::InvalidBlockNumber {
            any = true;
        }
        any && analyze::begin(scan.cast::<Scan>())
    }
}

/// `scan_bitmap_next_block`
#[cfg(not(feature = "pg18"))]
#[pg_guard]
pub unsafe extern "C-unwind" fn bitmap_block(
    scan: pg_sys::TableScanDesc,
    block: *mut pg_sys::TBMIterateResult,
) -> bool {
    // SAFETY: the scan was made by our `scan_begin`; an iterator gave the block.
    unsafe { (*scan.cast::<Scan>()).bitmap.set(block.as_ref().map(|block| Block::of(block))) };
    true
}

/// `scan_bitmap_next_tuple`
#[cfg(not(feature = "pg18"))]
#[pg_guard]
pub unsafe extern "C-unwind" fn bitmap_row(
    scan: pg_sys::TableScanDesc,
    _block: *mut pg_sys::TBMIterateResult,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: the scan was made by our `scan_begin`; the slot is of the table's type.
    unsafe { bitmap::next_row(scan.cast::<Scan>(), slot) }
}

/// `scan_bitmap_next_tuple`: walks the bitmap as well, and tells whether the condition is to be looked at again.
#[cfg(feature = "pg18")]
#[pg_guard]
pub unsafe extern "C-unwind" fn bitmap_row(
    scan: pg_sys::TableScanDesc,
    slot: *mut pg_sys::TupleTableSlot,
    recheck: *mut bool,
    lossy_blocks: *mut u64,
    exact_blocks: *mut u64,
) -> bool {
    // SAFETY: the scan was made by our `scan_begin`, and its caller has put an iterator into it; the slot is of the table's type.
    unsafe {
        let iterator = &raw mut (*scan).st.rs_tbmiterator;
        let scan = scan.cast::<Scan>();
        while !bitmap::next_row(scan, slot) {
            let block = Block::next(iterator);
            (*scan).bitmap.set(block);
            match block {
                None => return false,
                Some(block) if block.lossy => *lossy_blocks += 1,
                Some(_) => *exact_blocks += 1,
            }
        }
        *recheck = (*scan).bitmap.block.recheck;
        true
    }
}
