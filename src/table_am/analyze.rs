//! ANALYZE: rows are sampled over the whole scan, not block by block, since delta and segments overlap.

use super::scan::{merged, Scan};
use pgrx::pg_sys;
use pgrx::prelude::*;

/// Rows a column's statistics target of 1 stands for (`std_typanalyze` in PostgreSQL's analyze.c).
const ROWS_PER_TARGET: u64 = 300;

/// Whether a sampled block is to be shown: the first one, which stands for all rows.
///
/// PostgreSQL multiplies what it counts by blocks / sampled blocks, so of a table with more blocks than it samples only
/// every n-th row is shown, n being that quotient.
///
/// # Safety
/// The scan was made by our `scan_begin`.
pub unsafe fn begin(scan: *mut Scan) -> bool {
    // SAFETY: promised by the caller.
    unsafe {
        if (*scan).stride != 0 {
            return false;
        }
        let sampled = ROWS_PER_TARGET * u64::from(pg_sys::default_statistics_target.unsigned_abs());
        let blocks = u64::from(crate::segment::relation::main_fork_blocks((*scan).base.rs_rd));
        (*scan).stride = blocks.div_ceil(sampled.max(1)).max(1);
    }
    true
}

/// `scan_analyze_next_tuple`
#[pg_guard]
pub unsafe extern "C-unwind" fn next_tuple(
    scan: pg_sys::TableScanDesc,
    _oldest_xmin: pg_sys::TransactionId,
    live_rows: *mut f64,
    _dead_rows: *mut f64,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    let scan = scan.cast::<Scan>();
    // SAFETY: the scan was made by our `scan_begin`; the slot is of the table's type.
    unsafe {
        let merged = merged(scan);
        for _ in 0..(*scan).stride {
            if !merged.next(slot) {
                return false;
            }
        }
        *live_rows += 1.0;
    }
    true
}
