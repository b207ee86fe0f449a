//! The verdict on a query's read of one table: how far its partition key is bound, and what follows from that.

use std::ptr;

use pgrx::pg_sys::{self, CmdType, Node, NodeTag, Relids};

use super::refusal::{Context, Instead};
use super::statement::{RelationNote, Statement};
use super::{cql, exemption};
use crate::catalog::identifier::owned;
use crate::error::Report;
use crate::pg::nodes::{downcast, list_of, members, pointers, walk, Walk};
use crate::scan::bounds::{clauses, collect};
use crate::scan::clause::Target;
use crate::scan::path::{FullRead, Relation};
use crate::settings::{self, Enforcement};

/// The operator `tid = tid`.
const TID_EQUAL: pg_sys::Oid = pg_sys::Oid::from_u32(pg_sys::TIDEqualOperator);

/// One table that a query reads.
pub struct Read<'a> {
    pub relation: Relation<'a>,
    pub entry: &'a pg_sys::RangeTblEntry,
    /// What the statement says; `None` where no statement of ours is being planned.
    pub statement: Option<&'a Statement>,
}

impl Read<'_> {
    /// Judges the read, and issues a refusal. Returns how a full read may be used.
    ///
    /// # Safety
    /// Called while the relation's paths are made, with live nodes.
    pub unsafe fn judge(&self, outer_sets: &[Relids]) -> FullRead {
        let mode = settings::enforcement();
        // SAFETY: the caller's promise.
        unsafe {
            if mode == Enforcement::Off || exemption::is_exempt() || self.is_allowed() {
                return FullRead::Allowed;
            }
            let unconditional = !self.has_condition();
            if pg_sys::is_dummy_rel(self.relation.rel) && self.is_folded() {
                if !unconditional && !self.was_bound() {
                    self.refuse_partition_key();
                }
                return FullRead::Allowed;
            }
            if mode == Enforcement::Cql && !cql::check(self) {
                return FullRead::Allowed;
            }
            if self.relation.own_bounds().is_bound() || self.has_row_condition() {
                return FullRead::Allowed;
            }
            let index = if unconditional { IndexUse::None } else { self.index_use() };
            let lenient = unconditional && !self.is_changed() && mode != Enforcement::Strict;
            if index == IndexUse::OwnConditions {
                FullRead::Allowed
            } else if !outer_sets.is_empty() || index == IndexUse::Join {
                if lenient {
                    FullRead::Discouraged
                } else {
                    FullRead::Refused
                }
            } else {
                if !lenient {
                    self.refuse_partition_key();
                }
                FullRead::Allowed
            }
        }
    }

    /// Issues message A.
    ///
    /// # Safety
    /// As for `judge`.
    pub unsafe fn refuse_partition_key(&self) {
        // SAFETY: as for `judge`.
        unsafe {
            let key = self.relation.key;
            let bound = collect(&self.relation.subject(), (*self.relation.rel).baserestrictinfo);
            let is_missing = |index: usize| {
                !bound.iter().any(|bound| bound.target == Target::Column(index) && bound.test.is_equality())
            };
            let missing: Vec<&str> = key
                .partition()
                .iter()
                .enumerate()
                .filter(|(index, _)| is_missing(*index))
                .map(|(_, column)| column.name.as_str())
                .collect();
            let conditions = self.restricted_columns();
            let instead = if !conditions.is_empty() {
                Instead::Conditions(conditions)
            } else if self.is_changed() {
                let delete = (*(*self.relation.root).parse).commandType == CmdType::CMD_DELETE;
                Instead::Command(if delete { "DELETE" } else { "UPDATE" })
            } else {
                Instead::Nothing
            };
            let context = self.context(self.condition_location());
            self.issue(&context, context.partition_key(&missing, &instead));
        }
    }

    /// Issues a refusal, once for each read.
    pub fn issue(&self, context: &Context<'_>, report: Report) {
        if !self.note().is_some_and(|note| note.refused.replace(true)) {
            context.issue(report);
        }
    }

    /// What messages about this read refer to.
    ///
    /// # Safety
    /// As for `judge`.
    pub unsafe fn context(&self, location: i32) -> Context<'_> {
        Context {
            // SAFETY: the name of an open relation is a palloc'ed C string.
            table: unsafe { owned(pg_sys::get_rel_name(self.entry.relid)) },
            key: self.relation.key,
            source: self.statement.map_or(ptr::null(), |statement| statement.source),
            location,
        }
    }

    /// Whether the table is the target of UPDATE, DELETE or MERGE.
    ///
    /// # Safety
    /// As for `judge`.
    pub unsafe fn is_changed(&self) -> bool {
        // SAFETY: as for `judge`.
        unsafe { pg_sys::bms_is_member((*self.relation.rel).relid as i32, (*self.relation.root).all_result_relids) }
    }

    /// Whether a condition looks like the `IS NOT NULL` that the planner makes for min() and max().
    ///
    /// # Safety
    /// As for `judge`.
    pub unsafe fn is_planners_own(&self, clause: *mut Node) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            !(*self.relation.root).parent_root.is_null()
                && downcast::<pg_sys::NullTest>(clause, NodeTag::T_NullTest)
                    .is_some_and(|test| test.nulltesttype == pg_sys::NullTestType::IS_NOT_NULL && test.location < 0)
        }
    }

    /// Whether an index of the user's finds the rows by the table's own conditions.
    ///
    /// # Safety
    /// As for `judge`.
    pub unsafe fn is_indexed(&self) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.index_use() == IndexUse::OwnConditions }
    }

    /// Whether the statement or the session allows filtering.
    unsafe fn is_allowed(&self) -> bool {
        if settings::allow_filtering() || self.statement.is_some_and(|statement| statement.allows_filtering) {
            return true;
        }
        // A function that was inlined during planning brings its own conditions along.
        // SAFETY: as for `judge`; queries above this one live as long.
        unsafe {
            let mut root = self.relation.root;
            while !(*root).parent_root.is_null() {
                root = (*root).parent_root;
            }
            self.note().is_none() && super::statement::holds_allow_filtering((*root).parse.cast())
        }
    }

    /// What the statement says of the table.
    pub fn note(&self) -> Option<&RelationNote> {
        self.statement.and_then(|statement| statement.note(self.entry))
    }

    /// Whether the statement restricts the table: by a condition of its own that is tested for each row, or was before
    /// it was folded.
    unsafe fn has_condition(&self) -> bool {
        // SAFETY: as for `judge`.
        unsafe {
            let mut tested = clauses((*self.relation.rel).baserestrictinfo);
            match self.note() {
                Some(note) => {
                    note.condition && (tested.next().is_some() || self.is_folded() || !note.not_null.is_empty())
                }
                None => tested.any(|clause| !self.is_planners_own(clause)) || self.is_folded(),
            }
        }
    }

    /// Whether the conditions were folded to one that no row satisfies.
    unsafe fn is_folded(&self) -> bool {
        // SAFETY: as for `judge`.
        unsafe {
            pointers::<pg_sys::RestrictInfo>((*self.relation.rel).baserestrictinfo)
                .any(|restriction| downcast::<pg_sys::Const>((*restriction).clause, NodeTag::T_Const).is_some())
        }
    }

    /// Whether the whole partition key was bound before the conditions were folded.
    fn was_bound(&self) -> bool {
        self.note().is_none_or(|note| {
            let is_equal = |attnum| note.equal_columns.contains(&attnum);
            note.token || self.relation.key.partition().iter().all(|column| is_equal(column.attnum))
        })
    }

    /// Whether single rows are named, by ctid or as a cursor's present row.
    unsafe fn has_row_condition(&self) -> bool {
        // SAFETY: as for `judge`.
        unsafe {
            let rel = &*self.relation.rel;
            let is_ctid = |node: *mut Node| {
                downcast::<pg_sys::Var>(node, NodeTag::T_Var).is_some_and(|var| {
                    var.varno as u32 == rel.relid && i32::from(var.varattno) == pg_sys::SelfItemPointerAttributeNumber
                })
            };
            // What TID scans look up: it is the same for every row.
            let is_fixed =
                |node: *mut Node| !pg_sys::contain_var_clause(node) && !pg_sys::contain_volatile_functions(node);
            clauses(rel.baserestrictinfo).any(|clause| {
                if (*clause).type_ == NodeTag::T_CurrentOfExpr {
                    return true;
                }
                if let Some(comparison) = downcast::<pg_sys::OpExpr>(clause, NodeTag::T_OpExpr) {
                    let mut arguments = pointers(comparison.args);
                    return comparison.opno == TID_EQUAL
                        && matches!((arguments.next(), arguments.next()), (Some(left), Some(right))
                            if is_ctid(left) && is_fixed(right) || is_ctid(right) && is_fixed(left));
                }
                downcast::<pg_sys::ScalarArrayOpExpr>(clause, NodeTag::T_ScalarArrayOpExpr).is_some_and(|any| {
                    let mut arguments = pointers(any.args);
                    any.opno == TID_EQUAL
                        && any.useOr
                        && arguments.next().is_some_and(is_ctid)
                        && arguments.next().is_some_and(is_fixed)
                })
            })
        }
    }

    /// Whether an index of the user's can find the rows: asks the planner for paths by index alone, as the ones it has
    /// made may have lost against a full read by cost.
    unsafe fn index_use(&self) -> IndexUse {
        // SAFETY: as for `judge`; the relation's fields are put back.
        unsafe {
            let rel = &mut *self.relation.rel;
            let key_index = self.relation.key.index_oid;
            let (paths, partial_paths, indexes) = (rel.pathlist, rel.partial_pathlist, rel.indexlist);
            let secondary = pointers::<pg_sys::IndexOptInfo>(indexes).filter(|index| (**index).indexoid != key_index);
            rel.pathlist = ptr::null_mut();
            rel.indexlist = list_of(secondary);
            pg_sys::create_index_paths(self.relation.root, rel);
            let mut found = IndexUse::None;
            for path in pointers::<pg_sys::Path>(rel.pathlist) {
                let uses_condition = match downcast::<pg_sys::IndexPath>(path, NodeTag::T_IndexPath) {
                    Some(index) => !index.indexclauses.is_null(),
                    None => true,
                };
                if uses_condition {
                    found =
                        found.max(if (*path).param_info.is_null() { IndexUse::OwnConditions } else { IndexUse::Join });
                }
            }
            (rel.pathlist, rel.partial_pathlist, rel.indexlist) = (paths, partial_paths, indexes);
            found
        }
    }

    /// Names of the columns that conditions mention.
    unsafe fn restricted_columns(&self) -> Vec<String> {
        // SAFETY: as for `judge`.
        unsafe {
            let rel = &*self.relation.rel;
            if !self.has_condition() {
                return Vec::new();
            }
            let mut attributes = ptr::null_mut();
            for clause in clauses(rel.baserestrictinfo).filter(|clause| !self.is_planners_own(*clause)) {
                pg_sys::pull_varattnos(clause, rel.relid, &mut attributes);
            }
            let mut numbers: Vec<i16> = members(attributes)
                .filter_map(|member| i16::try_from(member + pg_sys::FirstLowInvalidHeapAttributeNumber).ok())
                .filter(|number| *number > 0)
                .collect();
            if numbers.is_empty() {
                numbers = self.note().map_or_else(Vec::new, |note| {
                    let tested = note.not_null.iter().map(|(attnum, _)| *attnum);
                    note.equal_columns.iter().copied().chain(tested).collect()
                });
            }
            numbers.into_iter().map(|number| owned(pg_sys::get_attname(self.entry.relid, number, false))).collect()
        }
    }

    /// Where the first condition on the table mentions a column of it, as a byte offset; -1 if unknown.
    unsafe fn condition_location(&self) -> i32 {
        // SAFETY: as for `judge`.
        unsafe {
            let rel = &*self.relation.rel;
            let tested = self.note().and_then(|note| note.not_null.first());
            let mut location = tested.map_or(-1, |(_, location)| *location);
            for clause in clauses(rel.baserestrictinfo).filter(|clause| !self.is_planners_own(*clause)) {
                let found = walk(clause, &mut |node| match downcast::<pg_sys::Var>(node, NodeTag::T_Var) {
                    Some(var) if var.varno as u32 == rel.relid && var.location >= 0 => {
                        location = var.location;
                        Walk::Stop
                    }
                    _ => Walk::Descend,
                });
                if found {
                    break;
                }
            }
            location
        }
    }
}

/// How a secondary index helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum IndexUse {
    None,
    /// With values from other tables.
    Join,
    /// By the table's own conditions.
    OwnConditions,
}
