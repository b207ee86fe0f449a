//! Full scans shared by parallel workers: each process takes the next part of the ring until none is left.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::exec::{CassScanState, Run};
use crate::read::ScanCounters;

/// Parts of the ring. Enough that processes end at about the same time, though partitions differ in size; few enough
/// that finding the start of each costs nothing.
pub(super) const PARTS: u64 = 128;

/// What the processes of a parallel scan have in common, in dynamic shared memory.
pub(super) struct Share {
    /// The part to read next.
    next_part: AtomicU64,
    /// What was read, of all processes.
    segments_read: AtomicU64,
    segments_skipped_by_range: AtomicU64,
    segments_skipped_by_filter: AtomicU64,
    delta_rows: AtomicU64,
    rows: AtomicU64,
    pages: AtomicU64,
}

impl Share {
    fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            next_part: zero(),
            segments_read: zero(),
            segments_skipped_by_range: zero(),
            segments_skipped_by_filter: zero(),
            delta_rows: zero(),
            rows: zero(),
            pages: zero(),
        }
    }

    /// Takes the next part; `None` if all are taken.
    pub(super) fn take_part(&self) -> Option<u64> {
        let part = self.next_part.fetch_add(1, Ordering::Relaxed);
        (part < PARTS).then_some(part)
    }

    /// Adds what a process has read since `before`.
    pub(super) fn report(&self, before: &ScanCounters, now: &ScanCounters) {
        let add = |counter: &AtomicU64, before: u64, now: u64| {
            counter.fetch_add(now.saturating_sub(before), Ordering::Relaxed);
        };
        add(&self.segments_read, before.segments_read, now.segments_read);
        add(&self.segments_skipped_by_range, before.segments_skipped_by_range, now.segments_skipped_by_range);
        add(&self.segments_skipped_by_filter, before.segments_skipped_by_filter, now.segments_skipped_by_filter);
        add(&self.delta_rows, before.delta_rows, now.delta_rows);
        add(&self.rows, before.rows, now.rows);
        add(&self.pages, before.pages, now.pages);
    }

    /// What all processes have read, and `before` what they had read when they last had nothing in common.
    fn counters(&self, before: &ScanCounters) -> ScanCounters {
        let total = |counter: &AtomicU64, before: u64| counter.load(Ordering::Relaxed) + before;
        ScanCounters {
            segments_read: total(&self.segments_read, before.segments_read),
            segments_skipped_by_range: total(&self.segments_skipped_by_range, before.segments_skipped_by_range),
            segments_skipped_by_filter: total(&self.segments_skipped_by_filter, before.segments_skipped_by_filter),
            delta_rows: total(&self.delta_rows, before.delta_rows),
            rows: total(&self.rows, before.rows),
            pages: total(&self.pages, before.pages),
        }
    }
}

/// Our part of a node that has begun.
unsafe fn run_of<'a>(node: *mut pg_sys::CustomScanState) -> Option<&'a mut Run> {
    // SAFETY: the executor calls the methods of our nodes with our nodes.
    unsafe { (*node.cast::<CassScanState>()).run.as_mut() }
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn estimate(
    _node: *mut pg_sys::CustomScanState,
    _context: *mut pg_sys::ParallelContext,
) -> pg_sys::Size {
    size_of::<Share>()
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn initialize(
    node: *mut pg_sys::CustomScanState,
    _context: *mut pg_sys::ParallelContext,
    coordinate: *mut c_void,
) {
    let share = coordinate.cast::<Share>();
    // SAFETY: the memory is as long as `estimate` said and aligned for any type (MAXALIGN).
    unsafe {
        share.write(Share::new());
        if let Some(run) = run_of(node) {
            run.share = share;
        }
    }
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn reinitialize(
    _node: *mut pg_sys::CustomScanState,
    _context: *mut pg_sys::ParallelContext,
    coordinate: *mut c_void,
) {
    // SAFETY: written by `initialize`; no worker runs now.
    unsafe { (*coordinate.cast::<Share>()).next_part.store(0, Ordering::Relaxed) };
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn initialize_worker(
    node: *mut pg_sys::CustomScanState,
    _toc: *mut pg_sys::shm_toc,
    coordinate: *mut c_void,
) {
    // SAFETY: written by `initialize` in the leader, before the worker was started.
    unsafe {
        if let Some(run) = run_of(node) {
            run.share = coordinate.cast();
        }
    }
}

/// Called before the shared memory goes away.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn shutdown(node: *mut pg_sys::CustomScanState) {
    // SAFETY: as for `run_of`.
    unsafe {
        if let Some(run) = run_of(node) {
            run.report();
            if let Some(share) = run.share.as_ref() {
                run.of_all = Some(share.counters(&run.of_all.unwrap_or_default()));
            }
            run.share = ptr::null_mut();
        }
    }
}
