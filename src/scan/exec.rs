//! The running custom scan.

use std::mem;
use std::ptr;
use std::rc::Rc;

use cass_storage::merge::Direction;
use pgrx::pg_sys::{self, Datum, Node, NodeTag};
use pgrx::prelude::*;
use pgrx::PgMemoryContexts;

use super::clause::{value_expressions, Target, Test, Value};
use super::explain::explain;
use super::parallel::{self, Share};
use super::plan::Methods;
use super::plan::{palloc_value, PlanInfo, NODE_NAME};
use super::ranges::{key_ranges, token_part, BoundValues};
use super::values::{array_elements, base_type, evaluate, fit, to_i64, Fitted};
use crate::catalog::{table_of, TableKey};
use crate::error::Report;
use crate::pg::nodes::{members, pointers};
use crate::pg::statistics;
use crate::read::{ColumnSet, MergedScan, ScanCounters, ScanSpec};

static EXEC_METHODS: Methods<pg_sys::CustomExecMethods> = Methods::new(pg_sys::CustomExecMethods {
    CustomName: NODE_NAME.as_ptr(),
    BeginCustomScan: Some(begin),
    ExecCustomScan: Some(exec),
    EndCustomScan: Some(end),
    ReScanCustomScan: Some(rescan),
    MarkPosCustomScan: None,
    RestrPosCustomScan: None,
    EstimateDSMCustomScan: Some(parallel::estimate),
    InitializeDSMCustomScan: Some(parallel::initialize),
    ReInitializeDSMCustomScan: Some(parallel::reinitialize),
    InitializeWorkerCustomScan: Some(parallel::initialize_worker),
    ShutdownCustomScan: Some(parallel::shutdown),
    ExplainCustomScan: Some(explain),
});

/// The executor's node: PostgreSQL's part, which must come first, and ours.
#[repr(C)]
pub(super) struct CassScanState {
    pub(super) custom: pg_sys::CustomScanState,
    /// Set by `begin`; lives in a memory context of the query, whose end drops it.
    pub(super) run: *mut Run,
}

/// Our part of the node.
pub(super) struct Run {
    pub(super) info: PlanInfo,
    pub(super) key: Rc<TableKey>,
    /// Compiled values of the bounds with their types; none where the value is the test itself.
    values: Vec<Vec<(*mut pg_sys::ExprState, pg_sys::Oid)>>,
    /// The bounds' clauses, as a test of one row.
    recheck: *mut pg_sys::ExprState,
    columns: ColumnSet,
    scan: Option<MergedScan>,
    /// Whether the scan's ranges are those of the present parameters.
    positioned: bool,
    /// What the scan read, once it is ended.
    read: ScanCounters,
    /// What this process has in common with others, while it takes part in a parallel scan; else null.
    pub(super) share: *mut Share,
    /// How many segments there is room for in it.
    pub(super) shared_segments: usize,
    /// How much of what was read is counted there.
    reported: ScanCounters,
    /// What all processes of a parallel scan have read, once it is over.
    pub(super) of_all: Option<ScanCounters>,
}

impl Run {
    /// What was read so far.
    pub(super) fn counters(&self) -> ScanCounters {
        self.scan.as_ref().map_or_else(|| self.read.clone(), MergedScan::counters)
    }

    /// Adds what was read to what the processes of a parallel scan have read.
    pub(super) fn report(&mut self) {
        if !self.share.is_null() {
            let now = self.counters();
            // SAFETY: shared memory that lives until `parallel::shutdown`.
            unsafe { Share::report(self.share, &self.reported, &now) };
            self.reported = now;
        }
    }
}

/// Makes the executor's node.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn create_state(_scan: *mut pg_sys::CustomScan) -> *mut Node {
    let mut state = CassScanState { custom: pg_sys::CustomScanState::default(), run: ptr::null_mut() };
    state.custom.ss.ps.type_ = NodeTag::T_CustomScanState;
    state.custom.methods = EXEC_METHODS.as_ptr();
    // SAFETY: called with the query's memory context as the current one.
    unsafe { palloc_value(state).cast() }
}

#[pg_guard]
unsafe extern "C-unwind" fn begin(node: *mut pg_sys::CustomScanState, estate: *mut pg_sys::EState, _flags: i32) {
    // SAFETY: called once by ExecInitCustomScan, with the relation open and the slots made.
    unsafe {
        let plan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
        let info = PlanInfo::of(plan);
        let table = table_of((*node).ss.ss_currentRelation);
        let Some(key) = table.key.clone().filter(|key| key.layout == info.layout) else {
            Report::new("55000", "the key of a table has changed since the query was planned")
                .hint("Repeat the query.")
                .raise()
        };
        let clauses: Vec<*mut Node> = pointers((*plan).custom_exprs).collect();
        let compile = |expression: *mut Node| {
            let type_oid = base_type(pg_sys::exprType(expression));
            (pg_sys::ExecInitExpr(expression.cast(), node.cast()), type_oid)
        };
        let values = clauses
            .iter()
            .zip(&info.bounds)
            .map(|(clause, bound)| value_expressions(*clause, bound.value, bound.columns))
            .map(|expressions| expressions.into_iter().map(compile).collect())
            .collect();
        let run = Run {
            recheck: pg_sys::ExecInitQual((*plan).custom_exprs, node.cast()),
            values,
            columns: wanted_columns(plan),
            scan: None,
            positioned: false,
            read: ScanCounters::default(),
            share: ptr::null_mut(),
            shared_segments: 0,
            reported: ScanCounters::default(),
            of_all: None,
            key,
            info,
        };
        (*node.cast::<CassScanState>()).run =
            PgMemoryContexts::For((*estate).es_query_cxt).leak_and_drop_on_delete(run);
    }
}

/// The columns that the node's output and filter need.
unsafe fn wanted_columns(plan: *mut pg_sys::CustomScan) -> ColumnSet {
    let mut attributes = ptr::null_mut();
    // SAFETY: the plan's expressions are live.
    let numbers: Vec<i32> = unsafe {
        let varno = (*plan).scan.scanrelid;
        pg_sys::pull_varattnos((*plan).scan.plan.targetlist.cast(), varno, &mut attributes);
        pg_sys::pull_varattnos((*plan).scan.plan.qual.cast(), varno, &mut attributes);
        members(attributes).map(|member| member + pg_sys::FirstLowInvalidHeapAttributeNumber).collect()
    };
    if numbers.contains(&0) {
        return ColumnSet::All;
    }
    let last = numbers.iter().copied().max().unwrap_or(0).max(0);
    ColumnSet::Some((1..=last).map(|number| numbers.contains(&number)).collect())
}

/// Returns the next row that passes the filter, projected.
///
/// This is ExecScan, but for calling the scan directly: through its callbacks every row would pay for two error
/// boundaries. EvalPlanQual has a row of its own to test, which is left to ExecScan.
#[pg_guard]
unsafe extern "C-unwind" fn exec(node: *mut pg_sys::CustomScanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: called by the executor with a node that has begun.
    unsafe {
        let ps = &(*node).ss.ps;
        if !(*ps.state).es_epq_active.is_null() {
            return pg_sys::ExecScan(node.cast(), Some(access), Some(recheck));
        }
        let context = ps.ps_ExprContext;
        let slot = (*node).ss.ss_ScanTupleSlot;
        loop {
            reset_per_tuple(context);
            if !next_row(node, slot) {
                return match ps.ps_ProjInfo.as_ref() {
                    Some(projection) => pg_sys::ExecClearTuple(projection.pi_state.resultslot),
                    None => slot,
                };
            }
            (*context).ecxt_scantuple = slot;
            if ps.qual.is_null() || pg_sys::ExecQual(ps.qual, context) {
                return if ps.ps_ProjInfo.is_null() { slot } else { pg_sys::ExecProject(ps.ps_ProjInfo) };
            }
            if let Some(instrument) = ps.instrument.as_mut() {
                instrument.nfiltered1 += 1.0;
            }
        }
    }
}

/// Frees what the last row's expressions allocated.
unsafe fn reset_per_tuple(context: *mut pg_sys::ExprContext) {
    // SAFETY: the context of a live node.
    unsafe {
        let memory = (*context).ecxt_per_tuple_memory;
        if !(*memory).isReset || !(*memory).firstchild.is_null() {
            pg_sys::MemoryContextReset(memory);
        }
    }
}

/// ExecScan's access method: the next row of the scan.
#[pg_guard]
unsafe extern "C-unwind" fn access(node: *mut pg_sys::ScanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: called by ExecScan with our node.
    unsafe {
        let slot = (*node).ss_ScanTupleSlot;
        next_row(node.cast(), slot);
        slot
    }
}

/// ExecScan's recheck: whether a newer version of a row still lies within the bounds.
#[pg_guard]
unsafe extern "C-unwind" fn recheck(node: *mut pg_sys::ScanState, slot: *mut pg_sys::TupleTableSlot) -> bool {
    // SAFETY: called by ExecScan with our node, which has begun, and a filled slot.
    unsafe {
        let run = &*(*node.cast::<CassScanState>()).run;
        let context = (*node).ps.ps_ExprContext;
        (*context).ecxt_scantuple = slot;
        run.recheck.is_null() || pg_sys::ExecQual(run.recheck, context)
    }
}

/// Puts the next row of the scan into `slot`; false at the end.
unsafe fn next_row(node: *mut pg_sys::CustomScanState, slot: *mut pg_sys::TupleTableSlot) -> bool {
    // SAFETY: the node has begun.
    unsafe {
        let run = &mut *(*node.cast::<CassScanState>()).run;
        loop {
            if !run.positioned && !position(node, run) {
                pg_sys::ExecClearTuple(slot);
                return false;
            }
            if run.scan.as_mut().is_some_and(|scan| scan.next(slot)) {
                if run.info.bounds.is_empty() {
                    statistics::count_scanned_row((*node).ss.ss_currentRelation);
                }
                return true;
            }
            if run.share.is_null() {
                return false;
            }
            run.report();
            run.positioned = false;
        }
    }
}

/// Evaluates the bounds and starts the scan of their ranges, or of the next part of them in a parallel scan; false if
/// there is no part left.
unsafe fn position(node: *mut pg_sys::CustomScanState, run: &mut Run) -> bool {
    // SAFETY: the node has begun; its expression contexts and relation are live. The scan is made in the query's
    // memory context, as it outlives the row.
    unsafe {
        let part = match run.share.as_ref().map(Share::take_part) {
            Some(None) => return false,
            Some(part) => part,
            None => None,
        };
        let estate = (*node).ss.ps.state;
        let context = (*node).ss.ps.ps_ExprContext;
        let outer = pg_sys::MemoryContextSwitchTo((*context).ecxt_per_tuple_memory);
        let bounds: Vec<BoundValues> = run
            .info
            .bounds
            .iter()
            .zip(&run.values)
            .map(|(bound, expressions)| BoundValues {
                target: bound.target,
                columns: bound.columns,
                test: bound.test,
                values: bound_values(&run.key, bound, expressions, context),
            })
            .collect();
        let ranges = match part {
            Some(part) => token_part(&bounds, part, parallel::PARTS).into_iter().collect(),
            None => key_ranges(&run.key, &bounds, run.info.direction),
        };
        pg_sys::MemoryContextSwitchTo((*estate).es_query_cxt);
        // The parts that a process takes of a parallel scan are one scan.
        if run.info.bounds.is_empty() && (part.is_none() || run.scan.is_none()) {
            statistics::count_full_scan((*node).ss.ss_currentRelation);
        }
        let spec = ScanSpec { ranges, direction: run.info.direction, columns: run.columns.clone() };
        match &mut run.scan {
            Some(scan) => scan.restart(spec),
            None => {
                run.scan = Some(MergedScan::begin((*node).ss.ss_currentRelation, (*estate).es_snapshot, spec));
            }
        }
        pg_sys::MemoryContextSwitchTo(outer);
        run.positioned = true;
    }
    true
}

/// A bound's values in the columns' types; see [`BoundValues`].
unsafe fn bound_values(
    key: &TableKey,
    bound: &super::plan::PlannedBound,
    expressions: &[(*mut pg_sys::ExprState, pg_sys::Oid)],
    context: *mut pg_sys::ExprContext,
) -> Vec<Fitted> {
    let fitted = |offset: usize, value: Datum, from: pg_sys::Oid| match bound.target {
        Target::Token => Fitted::Value(to_i64(value, from).into()),
        Target::Column(index) => {
            let to = key.columns.get(index + offset).map_or(from, |column| base_type(column.type_oid));
            fit(value, from, to)
        }
    };
    match bound.value {
        Value::True => return vec![Fitted::Value(true.into())],
        Value::False => return vec![Fitted::Value(false.into())],
        Value::Left | Value::Right => {}
    }
    // SAFETY: the expressions were compiled for this node; an array's datum is of an array type.
    let value = |state: *mut pg_sys::ExprState| unsafe { evaluate(state, context) };
    if bound.test == Test::Any {
        let Some(array) = expressions.first().and_then(|(state, _)| value(*state)) else {
            return Vec::new();
        };
        // SAFETY: as above.
        let (elements, from) = unsafe { array_elements(array) };
        let from = base_type(from);
        return elements.into_iter().map(|element| fitted(0, element, from)).collect();
    }
    let values = expressions.iter().enumerate();
    values.map_while(|(offset, (state, from))| Some(fitted(offset, value(*state)?, *from))).collect()
}

#[pg_guard]
unsafe extern "C-unwind" fn rescan(node: *mut pg_sys::CustomScanState) {
    // SAFETY: called by the executor with a node that has begun.
    unsafe {
        (*(*node.cast::<CassScanState>()).run).positioned = false;
        pg_sys::ExecScanReScan(node.cast());
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn end(node: *mut pg_sys::CustomScanState) {
    // SAFETY: called by the executor once, while the relation is open.
    unsafe {
        if let Some(run) = (*node.cast::<CassScanState>()).run.as_mut() {
            if let Some(scan) = mem::take(&mut run.scan) {
                run.read = scan.end();
            }
            run.report();
        }
    }
}

/// Whether the scan reads against the declared order.
pub(super) fn is_backward(info: &PlanInfo) -> bool {
    info.direction == Direction::Backward
}
