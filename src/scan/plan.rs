//! From path to plan: the CustomScan node, and what it carries from planning to execution.

use std::ffi::CStr;

use cass_storage::merge::Direction;
use pgrx::pg_sys::{self, Node, NodeTag};
use pgrx::prelude::*;

use super::bounds::{clauses, Bounds};
use super::clause::{Bound, Subject, Target, Test, Value};
use super::exec;
use crate::catalog::TableKey;
use crate::error::Report;
use crate::pg::nodes::{integers, list_of, list_of_integers};

/// Name of the node, as EXPLAIN shows it.
pub const NODE_NAME: &CStr = c"CassScan";

/// A method table that lives as long as the process and is never written.
#[repr(transparent)]
pub struct Methods<T>(T);

// SAFETY: the tables hold constant names and functions, which any thread may read.
unsafe impl<T> Sync for Methods<T> {}

impl<T> Methods<T> {
    /// A table for a static.
    pub const fn new(table: T) -> Self {
        Self(table)
    }

    /// Its address, as nodes carry it.
    pub const fn as_ptr(&self) -> *const T {
        &raw const self.0
    }
}

/// Methods of the path.
pub static PATH_METHODS: Methods<pg_sys::CustomPathMethods> = Methods::new(pg_sys::CustomPathMethods {
    CustomName: NODE_NAME.as_ptr(),
    PlanCustomPath: Some(plan_custom_path),
    ReparameterizeCustomPathByChild: Some(reparameterize),
});

/// Methods of the plan node.
pub static SCAN_METHODS: Methods<pg_sys::CustomScanMethods> = Methods::new(pg_sys::CustomScanMethods {
    CustomName: NODE_NAME.as_ptr(),
    CreateCustomScanState: Some(exec::create_state),
});

/// What a plan node says besides its expressions.
#[derive(Debug)]
pub struct PlanInfo {
    pub direction: Direction,
    /// `TableKey::layout` the plan was made for.
    pub layout: u64,
    /// One for each clause of `custom_exprs`, in the same order.
    pub bounds: Vec<PlannedBound>,
}

/// A bound of a plan; its clause is a member of `custom_exprs`.
#[derive(Clone, Copy, Debug)]
pub struct PlannedBound {
    pub target: Target,
    /// See [`Bound`].
    pub columns: usize,
    pub test: Test,
    pub value: Value,
}

const TOKEN: i32 = -1;
const INTEGERS_PER_BOUND: usize = 4;

impl PlanInfo {
    fn to_list(&self) -> *mut pg_sys::List {
        let head = [
            i32::from(self.direction == Direction::Backward),
            self.layout as u32 as i32,
            (self.layout >> 32) as u32 as i32,
        ];
        let bounds = self.bounds.iter().flat_map(|bound| {
            let target = match bound.target {
                Target::Column(index) => index as i32,
                Target::Token => TOKEN,
            };
            [target, bound.columns as i32, bound.test as i32, bound.value as i32]
        });
        list_of_integers(head.into_iter().chain(bounds))
    }

    /// Reads it off a plan node.
    ///
    /// # Safety
    /// `scan` is a live plan node made by `plan_custom_path`, or a copy.
    pub unsafe fn of(scan: *const pg_sys::CustomScan) -> Self {
        // SAFETY: the caller's promise.
        let numbers: Vec<i32> = unsafe { integers((*scan).custom_private) }.collect();
        let (head, rest) = numbers.split_at_checked(3).unwrap_or_else(|| not_ours());
        let bounds = rest.chunks_exact(INTEGERS_PER_BOUND).map(|bound| {
            let &[target, columns, test, value] = bound else { not_ours() };
            PlannedBound {
                target: if target == TOKEN { Target::Token } else { Target::Column(target as usize) },
                columns: columns as usize,
                test: Test::from_number(test).unwrap_or_else(|| not_ours()),
                value: Value::from_number(value).unwrap_or_else(|| not_ours()),
            }
        });
        let &[backward, low, high] = head else { not_ours() };
        Self {
            direction: if backward != 0 { Direction::Backward } else { Direction::Forward },
            layout: u64::from(low as u32) | u64::from(high as u32) << 32,
            bounds: bounds.collect(),
        }
    }
}

fn not_ours() -> ! {
    Report::new("XX000", "plan node CassScan has unreadable private data").raise()
}

/// Makes the plan node of a chosen path. The clauses that the bounds enforce exactly are taken out of the filter.
#[pg_guard]
unsafe extern "C-unwind" fn plan_custom_path(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    best_path: *mut pg_sys::CustomPath,
    target_list: *mut pg_sys::List,
    restrictions: *mut pg_sys::List,
    _custom_plans: *mut pg_sys::List,
) -> *mut pg_sys::Plan {
    // SAFETY: called by the planner with live nodes; the path is one of ours.
    unsafe {
        let mut choices = integers((*best_path).custom_private);
        let backward = choices.next() == Some(1);
        let refused = choices.next() == Some(1);
        if refused {
            crate::planner::refuse_chosen(root, rel);
        }
        let relation_oid = (**(*root).simple_rte_array.add((*rel).relid as usize)).relid;
        let Some(key) = crate::planner::key_of(relation_oid) else { not_ours() };
        let subject = Subject { root, relid: (*rel).relid, key: &key, in_byte_order: true };
        let bounds = Bounds::choose(&subject, restrictions);
        let chosen: Vec<Bound> = bounds.iter().copied().collect();
        let enforced = |clause: *mut Node| chosen.iter().any(|bound| bound.clause == clause && is_exact(&key, bound));
        let info = PlanInfo {
            direction: if backward { Direction::Backward } else { Direction::Forward },
            layout: key.layout,
            bounds: chosen
                .iter()
                .map(|bound| PlannedBound {
                    target: bound.target,
                    columns: bound.columns,
                    test: bound.test,
                    value: bound.value,
                })
                .collect(),
        };
        let scan = pg_sys::CustomScan {
            scan: pg_sys::Scan {
                plan: pg_sys::Plan {
                    type_: NodeTag::T_CustomScan,
                    targetlist: target_list,
                    qual: list_of(clauses(restrictions).filter(|clause| !enforced(*clause))),
                    ..Default::default()
                },
                scanrelid: (*rel).relid,
            },
            flags: (*best_path).flags,
            custom_exprs: list_of(chosen.iter().map(|bound| bound.clause)),
            custom_private: info.to_list(),
            methods: SCAN_METHODS.as_ptr(),
            ..Default::default()
        };
        palloc_value(scan).cast()
    }
}

/// Whether reading the bound's key range leaves no row that the clause would reject: the encoding of an exact type
/// tells its values apart as "=" does, and orders them as the bound's operators do.
fn is_exact(key: &TableKey, bound: &Bound) -> bool {
    if !bound.is_whole {
        return false;
    }
    match bound.target {
        Target::Token => true,
        Target::Column(index) => {
            key.columns.iter().skip(index).take(bound.columns).all(|column| column.key_type.is_exact())
        }
    }
}

/// Nothing in the private list depends on which child of an appended table is scanned.
#[pg_guard]
unsafe extern "C-unwind" fn reparameterize(
    _root: *mut pg_sys::PlannerInfo,
    custom_private: *mut pg_sys::List,
    _child: *mut pg_sys::RelOptInfo,
) -> *mut pg_sys::List {
    custom_private
}

/// Copies a node into memory of the current context.
///
/// # Safety
/// There is a current memory context.
pub unsafe fn palloc_value<T>(value: T) -> *mut T {
    // SAFETY: the memory is fresh, large enough and aligned for any node (MAXALIGN).
    unsafe {
        let place = pg_sys::palloc(size_of::<T>()).cast::<T>();
        place.write(value);
        place
    }
}
