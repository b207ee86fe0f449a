//! The order of a scan's rows, as path keys.

use std::ptr;

use cass_storage::merge::Direction;
use pgrx::pg_sys;

use super::path::Relation;
use crate::pg::nodes::{list_of, pointers};
use crate::pg::versions::plans;

impl Relation<'_> {
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
    pub(super) unsafe fn pathkeys(&self, columns: &[usize], direction: Direction) -> *mut pg_sys::List {
        // SAFETY: as for `own_bounds`.
        unsafe { pg_sys::truncate_useless_pathkeys(self.root, self.rel, self.order(columns, direction)) }
    }

    /// The order by token, if the query wants that first.
    pub(super) unsafe fn token_pathkeys(&self, direction: Direction) -> *mut pg_sys::List {
        // SAFETY: as for `own_bounds`.
        unsafe {
            let subject = self.subject();
            let Some(wanted) = pointers::<pg_sys::PathKey>((*self.root).query_pathkeys).next() else {
                return ptr::null_mut();
            };
            let is_token = pointers::<pg_sys::EquivalenceMember>((*(*wanted).pk_eclass).ec_members)
                .any(|member| subject.is_token((*member).em_expr.cast()));
            if is_token && plans::is_ascending(wanted) == matches!(direction, Direction::Forward) {
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
                let found = plans::known_pathkeys(self.root, variable.cast(), operator, (*self.rel).relids);
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
}

/// Whether a path key adds nothing to those before it: its class is constant or among them.
unsafe fn is_redundant(pathkey: *mut pg_sys::PathKey, before: *mut pg_sys::List) -> bool {
    // SAFETY: path keys of this planner run.
    unsafe {
        let class = (*pathkey).pk_eclass;
        plans::is_constant(class) || pointers::<pg_sys::PathKey>(before).any(|other| (*other).pk_eclass == class)
    }
}
