//! What EXPLAIN says of the custom scan.

use std::ffi::CStr;

use pgrx::pg_sys::{self, Node};
use pgrx::prelude::*;

use super::clause::Target;
use super::exec::{is_backward, CassScanState};
use crate::pg::nodes::{list_of, pointers};
use crate::read::ScanCounters;

/// Adds the bounds, and with ANALYZE what was read.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn explain(
    node: *mut pg_sys::CustomScanState,
    ancestors: *mut pg_sys::List,
    es: *mut pg_sys::ExplainState,
) {
    // SAFETY: called by EXPLAIN with a node that has begun.
    unsafe {
        let Some(run) = (*node.cast::<CassScanState>()).run.as_ref() else {
            return;
        };
        let plan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
        let partition_columns = run.key.partition_columns;
        let clauses: Vec<(Target, *mut Node)> =
            run.info.bounds.iter().map(|bound| bound.target).zip(pointers((*plan).custom_exprs)).collect();
        let show = |label: &CStr, wanted: &dyn Fn(Target) -> bool| {
            let chosen = clauses.iter().filter(|(target, _)| wanted(*target)).map(|(_, clause)| *clause);
            show_clauses(label, list_of(chosen), plan, ancestors, es);
        };
        let is_partition = |target| matches!(target, Target::Column(index) if index < partition_columns);
        show(c"Partition Key", &is_partition);
        show(c"Clustering", &|target| target != Target::Token && !is_partition(target));
        show(c"Token Range", &|target| target == Target::Token);
        if is_backward(&run.info) {
            pg_sys::ExplainPropertyText(c"Scan Direction".as_ptr(), c"Backward".as_ptr(), es);
        }
        // Workers that run a whole scan each do not report what they read.
        let counters = match &run.of_all {
            Some(counters) => Some(counters.clone()),
            None => (*node).ss.ps.worker_instrument.is_null().then(|| run.counters()),
        };
        if let Some(counters) = counters.filter(|_| (*es).analyze) {
            show_counters(&counters, es);
        }
    }
}

unsafe fn show_counters(counters: &ScanCounters, es: *mut pg_sys::ExplainState) {
    let lines = [
        (c"Segments Read", counters.segments.count_read()),
        (c"Segments Skipped", counters.segments.count_skipped()),
        (c"Delta Rows", counters.delta_rows),
        (c"Pages", counters.pages),
    ];
    for (label, number) in lines {
        // SAFETY: labels are static; `es` is EXPLAIN's live state.
        unsafe { pg_sys::ExplainPropertyInteger(label.as_ptr(), std::ptr::null(), number as i64, es) };
    }
}

/// Shows clauses of the plan joined by AND, if there are any.
unsafe fn show_clauses(
    label: &CStr,
    clauses: *mut pg_sys::List,
    plan: *mut pg_sys::CustomScan,
    ancestors: *mut pg_sys::List,
    es: *mut pg_sys::ExplainState,
) {
    if clauses.is_null() {
        return;
    }
    // SAFETY: as core's show_qual does, with the plan's own clauses.
    unsafe {
        let context = pg_sys::set_deparse_context_plan((*es).deparse_cxt, plan.cast(), ancestors);
        let text =
            pg_sys::deparse_expression(pg_sys::make_ands_explicit(clauses).cast(), context, (*es).verbose, false);
        pg_sys::ExplainPropertyText(label.as_ptr(), text, es);
    }
}
