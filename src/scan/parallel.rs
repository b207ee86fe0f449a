//! Full scans shared by parallel workers: each process takes the next part of the ring until none is left.

use std::ffi::c_void;
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::exec::{CassScanState, Run};
use crate::read::looked_at::words_for;
use crate::read::ScanCounters;
use crate::segment::list;

/// Parts of the ring. Enough that processes end at about the same time, though partitions differ in size; few enough
/// that finding the start of each costs nothing.
pub(super) const PARTS: u64 = 128;

/// What the processes of a parallel scan have in common, in dynamic shared memory. Words behind it say which segments were
/// looked at: first those read, then those passed over.
#[repr(C)]
pub(super) struct Share {
    /// The part to read next.
    next_part: AtomicU64,
    /// What was read, of all processes.
    delta_rows: AtomicU64,
    rows: AtomicU64,
    pages: AtomicU64,
    /// Words for the segments read, and as many for those passed over.
    words: usize,
}

/// What must be reserved for a scan of so many segments.
fn size_for(segments: usize) -> usize {
    size_of::<Share>() + 2 * words_for(segments) * size_of::<AtomicU64>()
}

impl Share {
    /// Makes it ready in memory as long as [`size_for`] says.
    ///
    /// # Safety
    /// `share` is that memory, aligned for u64, and nobody else uses it yet.
    unsafe fn write(share: *mut Share, segments: usize) {
        let zero = || AtomicU64::new(0);
        let words = words_for(segments);
        // SAFETY: promised by the caller.
        unsafe {
            share.write(Share { next_part: zero(), delta_rows: zero(), rows: zero(), pages: zero(), words });
            share.add(1).cast::<AtomicU64>().write_bytes(0, 2 * words);
        }
    }

    /// The words for the segments read, and those for the segments passed over.
    ///
    /// # Safety
    /// `share` was made ready by [`Share::write`], and its memory outlives the words.
    unsafe fn looked_at<'a>(share: *const Share) -> (&'a [AtomicU64], &'a [AtomicU64]) {
        // SAFETY: promised by the caller; the memory goes on with this many words.
        unsafe {
            let words = (*share).words;
            slice::from_raw_parts(share.add(1).cast::<AtomicU64>(), 2 * words).split_at(words)
        }
    }

    /// Takes the next part; `None` if all are taken.
    pub(super) fn take_part(&self) -> Option<u64> {
        let part = self.next_part.fetch_add(1, Ordering::Relaxed);
        (part < PARTS).then_some(part)
    }

    /// Adds what a process has read since `before`.
    ///
    /// # Safety
    /// `share` is that of a running scan.
    pub(super) unsafe fn report(share: *const Share, before: &ScanCounters, now: &ScanCounters) {
        // SAFETY: promised by the caller.
        let (counters, (read, passed)) = unsafe { (&*share, Self::looked_at(share)) };
        let add = |counter: &AtomicU64, before: u64, now: u64| {
            counter.fetch_add(now.saturating_sub(before), Ordering::Relaxed);
        };
        add(&counters.delta_rows, before.delta_rows, now.delta_rows);
        add(&counters.rows, before.rows, now.rows);
        add(&counters.pages, before.pages, now.pages);
        for ((in_read, in_passed), (now_read, now_passed)) in read.iter().zip(passed).zip(now.segments.words()) {
            in_read.fetch_or(now_read, Ordering::Relaxed);
            in_passed.fetch_or(now_passed, Ordering::Relaxed);
        }
    }

    /// What all processes have read, and `before` what they had read when they last had nothing in common.
    ///
    /// # Safety
    /// As for [`Share::report`].
    unsafe fn counters(share: *const Share, before: ScanCounters) -> ScanCounters {
        // SAFETY: promised by the caller.
        let (counters, (read, passed)) = unsafe { (&*share, Self::looked_at(share)) };
        let total = |counter: &AtomicU64, before: u64| counter.load(Ordering::Relaxed) + before;
        let mut segments = before.segments;
        for (index, (read, passed)) in read.iter().zip(passed).enumerate() {
            segments.add(index, read.load(Ordering::Relaxed), passed.load(Ordering::Relaxed));
        }
        ScanCounters {
            segments,
            delta_rows: total(&counters.delta_rows, before.delta_rows),
            rows: total(&counters.rows, before.rows),
            pages: total(&counters.pages, before.pages),
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
    node: *mut pg_sys::CustomScanState,
    _context: *mut pg_sys::ParallelContext,
) -> pg_sys::Size {
    // SAFETY: called by the executor with a node that has begun: its table is open and its query has a snapshot.
    let segments = unsafe {
        let segments = list::visible((*node).ss.ss_currentRelation, (*(*node).ss.ps.state).es_snapshot).len();
        run_of(node).map_or(0, |run| {
            run.shared_segments = segments;
            segments
        })
    };
    size_for(segments)
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
        if let Some(run) = run_of(node) {
            Share::write(share, run.shared_segments);
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
            if !run.share.is_null() {
                run.of_all = Some(Share::counters(run.share, run.of_all.take().unwrap_or_default()));
            }
            run.share = ptr::null_mut();
        }
    }
}
