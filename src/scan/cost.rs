//! What a scan costs.

use std::ptr;

use pgrx::pg_sys;

use super::bounds::Bounds;
use super::path::{FullRead, Relation};
use crate::pg::nodes::pointers;

/// Elements assumed in an array whose length is not known at planning.
const USUAL_ARRAY_LENGTH: f64 = 10.0;

/// What a scan is expected to cost, in the planner's units, and to return.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    pub rows: f64,
    pub startup: f64,
    pub total: f64,
    /// How much of `total` is the processor's, which parallel processes share.
    pub processor: f64,
}

impl Cost {
    /// The cost to each of `workers` and the leader, who takes part in what they leave it time for.
    pub fn shared(mut self, workers: i32) -> Self {
        // SAFETY: a planner setting is a plain variable of the backend.
        let leader = if unsafe { pg_sys::parallel_leader_participation } {
            (1.0 - 0.3 * f64::from(workers)).max(0.0)
        } else {
            0.0
        };
        let processes = f64::from(workers) + leader;
        self.total -= self.processor * (1.0 - 1.0 / processes);
        self.rows = (self.rows / processes).round().max(1.0);
        self
    }
}

/// The cost of finding the start of a key range: a page of the B+tree that may have to be fetched, and comparisons.
fn seek_cost() -> f64 {
    // SAFETY: planner settings are plain numbers of the backend.
    unsafe { pg_sys::random_page_cost + 50.0 * pg_sys::cpu_operator_cost }
}

/// What keeps a full read from being chosen while there is another way.
fn disabled(full_read: FullRead) -> f64 {
    // A relation with conditions of its own must not be the one that is read whole, so it costs more.
    // SAFETY: a constant of the planner.
    unsafe { pg_sys::disable_cost * if full_read == FullRead::Refused { 2.0 } else { 1.0 } }
}

impl Relation<'_> {
    /// The cost of a scan of `bounds` that filters by `clauses`, a list of RestrictInfo.
    ///
    /// # Safety
    /// As for `own_bounds`.
    pub(super) unsafe fn cost(
        &self,
        bounds: &Bounds,
        clauses: *mut pg_sys::List,
        parameters: *mut pg_sys::ParamPathInfo,
        full_read: FullRead,
    ) -> Cost {
        // SAFETY: as for `own_bounds`.
        unsafe {
            let rel = &*self.rel;
            let rows = if parameters.is_null() { rel.rows } else { (*parameters).ppi_rows };
            let used = self.restrictions_of(bounds, clauses);
            let share = pg_sys::clauselist_selectivity(
                self.root,
                used,
                rel.relid as i32,
                pg_sys::JoinType::JOIN_INNER,
                ptr::null_mut(),
            );
            let read = pg_sys::clamp_row_est(rel.tuples * share);
            let mut tests = pg_sys::QualCost::default();
            pg_sys::cost_qual_eval(&mut tests, clauses, self.root);
            let target = &(*rel.reltarget).cost;
            let seeks = if bounds.is_bound() { bounds.range_count(USUAL_ARRAY_LENGTH).min(read) } else { 0.0 };
            let startup = tests.startup + target.startup + seeks.min(1.0) * seek_cost();
            let pages = (f64::from(rel.pages) * share).ceil();
            let processor = read * (pg_sys::cpu_tuple_cost + tests.per_tuple) + rows * target.per_tuple;
            let mut total = startup + (seeks - 1.0).max(0.0) * seek_cost() + pages * pg_sys::seq_page_cost + processor;
            if full_read != FullRead::Allowed {
                total += disabled(full_read);
            } else if !bounds.is_bound() && !pg_sys::enable_seqscan {
                total += pg_sys::disable_cost;
            }
            Cost { rows, startup, total, processor }
        }
    }

    /// The RestrictInfos of the clauses that `bounds` uses.
    unsafe fn restrictions_of(&self, bounds: &Bounds, clauses: *mut pg_sys::List) -> *mut pg_sys::List {
        let mut used = ptr::null_mut();
        // SAFETY: as for `own_bounds`.
        unsafe {
            for restriction in pointers::<pg_sys::RestrictInfo>(clauses) {
                if bounds.iter().any(|bound| bound.clause == (*restriction).clause.cast()) {
                    used = pg_sys::lappend(used, restriction.cast());
                }
            }
        }
        used
    }
}
