//! Paths: the ways to read a cass table that the planner may choose from, with their costs and order.

use std::ptr;

use cass_storage::merge::Direction;
use pgrx::pg_sys::{self, NodeTag, Relids};
use pgrx::prelude::*;

use super::bounds::Bounds;
use super::clause::Subject;
use super::plan::{palloc_value, PATH_METHODS};
use crate::catalog::TableKey;
use crate::pg::nodes::{downcast, list_of, list_of_integers, pointers};

/// Elements assumed in an array whose length is not known at planning.
const USUAL_ARRAY_LENGTH: f64 = 10.0;
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
            self.add_path(forward, Direction::Forward, parameters, full_read, &cost);
            if !backward.is_null() {
                self.add_path(backward, Direction::Backward, parameters, full_read, &cost);
            }
        }
    }

    unsafe fn add_path(
        &self,
        pathkeys: *mut pg_sys::List,
        direction: Direction,
        parameters: *mut pg_sys::ParamPathInfo,
        full_read: FullRead,
        cost: &Cost,
    ) {
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
        // SAFETY: the path is copied into planner memory, which outlives the relation's list of paths.
        unsafe { pg_sys::add_path(self.rel, palloc_value(path).cast()) };
    }

    /// Whether the rows of the partitions that the relation's own conditions name have this order, or its reverse,
    /// within each partition.
    ///
    /// # Safety
    /// As for `own_bounds`.
    pub unsafe fn has_order(&self, wanted: *mut pg_sys::List) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            let ordered = self.own_bounds().ordered_clustering(self.key);
            [Direction::Forward, Direction::Backward]
                .into_iter()
                .any(|direction| pg_sys::pathkeys_contained_in(wanted, self.order(&ordered, direction)))
        }
    }

    /// The order of the scan as far as the query can use it.
    unsafe fn pathkeys(&self, columns: &[usize], direction: Direction) -> *mut pg_sys::List {
        // SAFETY: as for `own_bounds`.
        unsafe { pg_sys::truncate_useless_pathkeys(self.root, self.rel, self.order(columns, direction)) }
    }

    /// The order by token, if the query wants that first.
    unsafe fn token_pathkeys(&self, direction: Direction) -> *mut pg_sys::List {
        // SAFETY: as for `own_bounds`.
        unsafe {
            let subject = self.subject();
            let Some(wanted) = pointers::<pg_sys::PathKey>((*self.root).query_pathkeys).next() else {
                return ptr::null_mut();
            };
            let strategy = match direction {
                Direction::Forward => pg_sys::BTLessStrategyNumber,
                Direction::Backward => pg_sys::BTGreaterStrategyNumber,
            };
            let is_token = pointers::<pg_sys::EquivalenceMember>((*(*wanted).pk_eclass).ec_members)
                .any(|member| subject.is_token((*member).em_expr.cast()));
            if is_token && (*wanted).pk_strategy as u32 == strategy {
                list_of([wanted])
            } else {
                ptr::null_mut()
            }
        }
    }

    /// The order by these key columns, as far as some part of the query knows of it.
    unsafe fn order(&self, columns: &[usize], direction: Direction) -> *mut pg_sys::List {
        let mut pathkeys = ptr::null_mut();
        // SAFETY: as for `own_bounds`.
        unsafe {
            for &index in columns {
                let Some(column) = self.key.columns.get(index) else {
                    break;
                };
                let reverse = direction == Direction::Backward;
                let descending = (column.order == cass_storage::key::Order::Descending) != reverse;
                let kind = if descending { pg_sys::TYPECACHE_GT_OPR } else { pg_sys::TYPECACHE_LT_OPR };
                let entry = &*pg_sys::lookup_type_cache(column.type_oid, kind as i32);
                let operator = if descending { entry.gt_opr } else { entry.lt_opr };
                if operator == pg_sys::Oid::INVALID {
                    break;
                }
                let variable = pg_sys::makeVar(
                    (*self.rel).relid as i32,
                    column.attnum,
                    column.type_oid,
                    column.typmod,
                    column.collation,
                    0,
                );
                let found = pg_sys::build_expression_pathkey(
                    self.root,
                    variable.cast(),
                    ptr::null_mut(),
                    operator,
                    (*self.rel).relids,
                    false,
                );
                let Some(pathkey) = pointers::<pg_sys::PathKey>(found).next() else {
                    break;
                };
                // A key that a condition makes constant, or that is there already, orders nothing more.
                if !is_redundant(pathkey, pathkeys) {
                    pathkeys = pg_sys::lappend(pathkeys, pathkey.cast());
                }
            }
        }
        pathkeys
    }

    unsafe fn cost(
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
            let mut total = startup
                + (seeks - 1.0).max(0.0) * seek_cost()
                + pages * pg_sys::seq_page_cost
                + read * (pg_sys::cpu_tuple_cost + tests.per_tuple)
                + rows * target.per_tuple;
            if full_read != FullRead::Allowed {
                total += disabled(full_read);
            } else if !bounds.is_bound() && !pg_sys::enable_seqscan {
                total += pg_sys::disable_cost;
            }
            Cost { rows, startup, total }
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

struct Cost {
    rows: f64,
    startup: f64,
    total: f64,
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

/// Adds a set of outer relations that is not there yet, up to a number.
unsafe fn add_set(sets: &mut Vec<Relids>, set: Relids) {
    // SAFETY: the sets are live.
    unsafe {
        if sets.len() < MOST_OUTER_SETS && !set.is_null() && !sets.iter().any(|known| pg_sys::bms_equal(*known, set)) {
            sets.push(set);
        }
    }
}

/// Whether a path key adds nothing to those before it: its class is constant or among them.
unsafe fn is_redundant(pathkey: *mut pg_sys::PathKey, before: *mut pg_sys::List) -> bool {
    // SAFETY: path keys of this planner run.
    unsafe {
        let class = (*pathkey).pk_eclass;
        ((*class).ec_has_const && !(*class).ec_below_outer_join)
            || pointers::<pg_sys::PathKey>(before).any(|other| (*other).pk_eclass == class)
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
