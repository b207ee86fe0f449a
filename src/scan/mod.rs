//! The custom scan `CassScan`: reads a cass table by partition, by a range of tokens, or as a whole.
//!
//! `clause` tells what one condition says about the key, `bounds` which conditions narrow a scan, `path` offers scans to
//! the planner with their `cost` and `order`, `plan` carries the chosen one to the executor, where `values`, `slice` and `ranges` turn bounds into key ranges
//! and `exec` reads them, in `parallel` by several processes. `bitmap` looks after PostgreSQL's own scans of secondary indexes.

pub mod bitmap;
pub mod bounds;
pub mod clause;
mod cost;
mod exec;
mod explain;
mod order;
mod parallel;
pub mod path;
mod plan;
mod ranges;
mod slice;
mod values;

/// Registers the plan node, so that parallel workers can read it, and installs the hook of bitmap scans. Called once a process
/// from `_PG_init`.
pub fn init() {
    bitmap::init();
    // SAFETY: the table is static.
    unsafe { pgrx::pg_sys::RegisterCustomScanMethods(plan::SCAN_METHODS.as_ptr()) };
}
