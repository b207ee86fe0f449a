//! Paths: the ways to read a cass table that the planner may choose from, with their costs and order.

use std::ptr;

use cass_storage::merge::Direction;
use pgrx::pg_sys::{self, NodeTag, Relids};
use pgrx::prelude::*;

use super::bounds::Bounds;
use super::clause::Subject;
use super::cost::Cost;
use super::plan::{palloc_value, PATH_METHODS};
use crate::catalog::TableKey;
use crate::pg::nodes::{downcast, list_of_integers, pointers};

/// Rows of a heap page that parallel workers are counted by.
const USUAL_ROWS_PER_HEAP_PAGE: f64 = 100.0;
/// Most sets of outer relations for which parameterised paths are considered.
const MOST_OUTER_SETS: usize = 32;

/// What the verdict on the query says about reading the whole table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullRead {
    /// As good as any other path.
    Allowed,
    /// The last resort: a join can name the partition.
    Discouraged,
    /// A last resort that is refused when it is chosen, because the relation has a condition of its own.
    Refused,
}

/// One relation to build paths for.
pub struct Relation<'a> {
    pub root: *mut pg_sys::PlannerInfo,
    pub rel: *mut pg_sys::RelOptInfo,
    pub key: &'a TableKey,
}

impl Relation<'_> {
    /// The view of this relation that clauses are matched with.
    ///
    /// # Safety
    /// `self.rel` is live.
    pub unsafe fn subject(&self) -> Subject<'_> {
        // SAFETY: the caller's promise.
        Subject { root: self.root, relid: unsafe { (*self.rel).relid }, key: self.key, in_byte_order: true }
    }

    /// The bounds that the relation's own conditions give.
    ///
    /// # Safety
    /// The relation's fields are live nodes of this planner run.
    pub unsafe fn own_bounds(&self) -> Bounds {
        // SAFETY: the caller's promise.
        unsafe { Bounds::choose(&self.subject(), (*self.rel).baserestrictinfo) }
    }

    /// The sets of outer relations with whose help the whole partition key is bound, smallest first.
    ///
    /// # Safety
    /// As for `own_bounds`.
    pub unsafe fn binding_outer_sets(&self) -> Vec<Relids> {
        // SAFETY: the caller's promise; sets made here live in the planner's context.
        unsafe {
            let mut sets: Vec<Relids> = Vec::new();
            for outer in self.join_outer_sets() {
                for index in 0..sets.len() {
                    if let Some(&set) = sets.get(index) {
                        add_set(&mut sets, pg_sys::bms_union(set, outer));
                    }
                }
                add_set(&mut sets, outer);
            }
            sets.sort_by_key(|set| pg_sys::bms_num_members(*set));
            sets.retain(|set| self.parameterised(*set).is_some_and(|(_, bounds)| bounds.has_partition()));
            sets
        }
    }

    /// Adds paths for the relation's own bounds, or of a full read where there are none.
    ///
    /// # Safety
    /// As for `own_bounds`; called while the relation's paths are made.
    pub unsafe fn add_own_paths(&self, full_read: FullRead) {
        // SAFETY: the caller's promise.
        unsafe {
            let bounds = self.own_bounds();
            let required = (*self.rel).lateral_relids;
            let parameters = pg_sys::get_baserel_parampathinfo(self.root, self.rel, required);
            let full_read = if bounds.is_bound() { FullRead::Allowed } else { full_read };
            self.add_paths(&bounds, (*self.rel).baserestrictinfo, parameters, full_read);
        }
    }

    /// Adds paths that take the partition from outer relations.
    ///
    /// # Safety
    /// As for `add_own_paths`.
    pub unsafe fn add_parameterised_paths(&self, outer_sets: &[Relids]) {
        for &set in outer_sets {
            // SAFETY: the caller's promise.
            unsafe {
                if let Some((parameters, bounds)) = self.parameterised(set) {
                    let clauses = self.clauses_with(parameters);
                    self.add_paths(&bounds, clauses, parameters, FullRead::Allowed);
                }
            }
        }
    }

    /// The sets of outer relations that single join clauses on key columns name.
    unsafe fn join_outer_sets(&self) -> Vec<Relids> {
        let mut sets = Vec::new();
        // SAFETY: as for `own_bounds`.
        unsafe {
            let subject = self.subject();
            let rel = &*self.rel;
            for index in 0..self.key.columns.len() {
                for clause in pointers::<pg_sys::RestrictInfo>(self.implied_equalities(index)) {
                    if subject.bound((*clause).clause.cast()).is_some() {
                        add_set(&mut sets, pg_sys::bms_difference((*clause).clause_relids, rel.relids));
                    }
                }
            }
            for clause in pointers::<pg_sys::RestrictInfo>(rel.joininfo) {
                if pg_sys::join_clause_is_movable_to(clause, self.rel)
                    && subject.bound((*clause).clause.cast()).is_some()
                {
                    add_set(&mut sets, pg_sys::bms_difference((*clause).clause_relids, rel.relids));
                }
            }
        }
        sets
    }

    /// Join clauses that equivalence classes imply for the key column of this index.
    unsafe fn implied_equalities(&self, index: usize) -> *mut pg_sys::List {
        // SAFETY: the callback reads `member` only during the call.
        unsafe {
            if !(*self.rel).has_eclass_joins {
                return ptr::null_mut();
            }
            let subject = self.subject();
            let mut member = ColumnMember { subject: &subject, index };
            pg_sys::generate_implied_equalities_for_column(
                self.root,
                self.rel,
                Some(is_column_member),
                (&raw mut member).cast(),
                (*self.rel).lateral_referencers,
            )
        }
    }

    /// Parameters and bounds of a scan inside a loop over these outer relations.
    unsafe fn parameterised(&self, outer: Relids) -> Option<(*mut pg_sys::ParamPathInfo, Bounds)> {
        // SAFETY: as for `own_bounds`.
        unsafe {
            let required = pg_sys::bms_union(outer, (*self.rel).lateral_relids);
            let parameters = pg_sys::get_baserel_parampathinfo(self.root, self.rel, required);
            if parameters.is_null() {
                return None;
            }
            let bounds = Bounds::choose(&self.subject(), self.clauses_with(parameters));
            Some((parameters, bounds))
        }
    }

    unsafe fn clauses_with(&self, parameters: *mut pg_sys::ParamPathInfo) -> *mut pg_sys::List {
        // SAFETY: as for `own_bounds`.
        unsafe { pg_sys::list_concat_copy((*self.rel).baserestrictinfo, (*parameters).ppi_clauses) }
    }

    unsafe fn add_paths(
        &self,
        bounds: &Bounds,
        clauses: *mut pg_sys::List,
        parameters: *mut pg_sys::ParamPathInfo,
        full_read: FullRead,
    ) {
        // SAFETY: as for `add_own_paths`.
        unsafe {
            let (forward, backward) = if bounds.has_partition() {
                let ordered = bounds.ordered_columns(self.key);
                (self.pathkeys(&ordered, Direction::Forward), self.pathkeys(&ordered, Direction::Backward))
            } else {
                (self.token_pathkeys(Direction::Forward), self.token_pathkeys(Direction::Backward))
            };
            let cost = self.cost(bounds, clauses, parameters, full_read);
            pg_sys::add_path(self.rel, self.path(forward, Direction::Forward, parameters, full_read, &cost).cast());
            if !backward.is_null() {
                let path = self.path(backward, Direction::Backward, parameters, full_read, &cost);
                pg_sys::add_path(self.rel, path.cast());
            }
            if parameters.is_null() && !bounds.has_partition() && full_read == FullRead::Allowed {
                self.add_parallel_path(&cost);
            }
        }
    }

    /// Adds a path that several processes take together, each a part of the ring at a time.
    unsafe fn add_parallel_path(&self, cost: &Cost) {
        // SAFETY: as for `add_own_paths`.
        unsafe {
            let rel = &*self.rel;
            if !rel.consider_parallel {
                return;
            }
            let most = pg_sys::max_parallel_workers_per_gather;
            // A page of a segment holds many more rows than a heap's, and the work is in the rows.
            let pages = f64::from(rel.pages).max(rel.tuples / USUAL_ROWS_PER_HEAP_PAGE);
            let workers = pg_sys::compute_parallel_worker(self.rel, pages, -1.0, most);
            if workers > 0 {
                let (none, cost) = (ptr::null_mut(), cost.shared(workers));
                let path = self.path(none, Direction::Forward, ptr::null_mut(), FullRead::Allowed, &cost);
                (*path).path.parallel_aware = true;
                (*path).path.parallel_workers = workers;
                pg_sys::add_partial_path(self.rel, path.cast());
            }
        }
    }

    /// A path of these properties, in planner memory.
    unsafe fn path(
        &self,
        pathkeys: *mut pg_sys::List,
        direction: Direction,
        parameters: *mut pg_sys::ParamPathInfo,
        full_read: FullRead,
        cost: &Cost,
    ) -> *mut pg_sys::CustomPath {
        let path = pg_sys::CustomPath {
            path: pg_sys::Path {
                type_: NodeTag::T_CustomPath,
                pathtype: NodeTag::T_CustomScan,
                parent: self.rel,
                // SAFETY: the relation is live.
                pathtarget: unsafe { (*self.rel).reltarget },
                param_info: parameters,
                // SAFETY: as above.
                parallel_safe: unsafe { (*self.rel).consider_parallel },
                rows: cost.rows,
                startup_cost: cost.startup,
                total_cost: cost.total,
                pathkeys,
                ..Default::default()
            },
            flags: pg_sys::CUSTOMPATH_SUPPORT_PROJECTION,
            custom_private: list_of_integers([
                i32::from(direction == Direction::Backward),
                i32::from(full_read == FullRead::Refused),
            ]),
            methods: PATH_METHODS.as_ptr(),
            ..Default::default()
        };
        // SAFETY: the planner's memory context is the current one.
        unsafe { palloc_value(path) }
    }
}

/// Adds a set of outer relations that is not there yet, up to a number.
unsafe fn add_set(sets: &mut Vec<Relids>, set: Relids) {
    // SAFETY: the sets are live.
    unsafe {
        if sets.len() < MOST_OUTER_SETS && !set.is_null() && !sets.iter().any(|known| pg_sys::bms_equal(*known, set)) {
            sets.push(set);
        }
    }
}

/// Which member of an equivalence class is looked for.
struct ColumnMember<'a> {
    subject: &'a Subject<'a>,
    index: usize,
}

#[pg_guard]
unsafe extern "C-unwind" fn is_column_member(
    _root: *mut pg_sys::PlannerInfo,
    _rel: *mut pg_sys::RelOptInfo,
    _class: *mut pg_sys::EquivalenceClass,
    member: *mut pg_sys::EquivalenceMember,
    argument: *mut std::ffi::c_void,
) -> bool {
    // SAFETY: `argument` is the ColumnMember of `implied_equalities`, the member is live.
    unsafe {
        let wanted = &*argument.cast::<ColumnMember<'_>>();
        wanted.subject.key_column((*member).em_expr.cast()) == Some(wanted.index)
    }
}

/// Whether the path reads rows of the table by its own key order or as a whole: what the custom scan replaces.
///
/// # Safety
/// `path` is a live path.
pub unsafe fn is_replaced(path: *mut pg_sys::Path, key_access_method: pg_sys::Oid) -> bool {
    // SAFETY: every path type starts with a Path, its node type tells which it is.
    unsafe {
        let by_key = |path: *mut pg_sys::Path| {
            downcast::<pg_sys::IndexPath>(path, NodeTag::T_IndexPath)
                .is_some_and(|index| (*index.indexinfo).relam == key_access_method)
        };
        if let Some(bitmap) = downcast::<pg_sys::BitmapHeapPath>(path, NodeTag::T_BitmapHeapPath) {
            return bitmap_uses(bitmap.bitmapqual, &by_key);
        }
        (*path).pathtype == NodeTag::T_SeqScan || by_key(path)
    }
}

unsafe fn bitmap_uses(path: *mut pg_sys::Path, by_key: &dyn Fn(*mut pg_sys::Path) -> bool) -> bool {
    // SAFETY: the inputs of a live bitmap path are live.
    unsafe {
        if let Some(and) = downcast::<pg_sys::BitmapAndPath>(path, NodeTag::T_BitmapAndPath) {
            return pointers(and.bitmapquals).any(|input| bitmap_uses(input, by_key));
        }
        if let Some(or) = downcast::<pg_sys::BitmapOrPath>(path, NodeTag::T_BitmapOrPath) {
            return pointers(or.bitmapquals).any(|input| bitmap_uses(input, by_key));
        }
        by_key(path)
    }
}
