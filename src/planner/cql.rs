//! Mode `cql`: what Cassandra refuses beyond a missing partition key (`oracle/cassandra-behaviour.md`, A to D).
//!
//! A read must be one slice of whole partitions, or of the ring, in stored order: no condition beside the key, no gap
//! and no slice before the last restricted clustering column, no order but the declared one and its reverse.

use cass_storage::key::Order;
use pgrx::pg_sys::{self, CmdType, Node, NodeTag};

use super::refusal::{names, ordered_names, CLUSTERING, ORDER, PARTITION_KEY};
use super::verdict::Read;
use crate::catalog::identifier::owned;
use crate::catalog::KeyColumn;
use crate::error::Report;
use crate::pg::nodes::{downcast, pointers, walk, Walk};
use crate::scan::bounds::clauses;
use crate::scan::clause::{Bound, Target, Test};

/// Checks a read, and issues the refusal of the first rule it breaks; false if it breaks one.
///
/// # Safety
/// As for [`Read::judge`].
pub unsafe fn check(read: &Read<'_>) -> bool {
    // SAFETY: passed on.
    unsafe {
        let Some(bounds) = conditions(read) else {
            return false;
        };
        restrictions(read, &bounds) && changes(read, &bounds) && order(read, &bounds) && groups(read)
    }
}

unsafe fn refuse(read: &Read<'_>, location: i32, report: Report) -> bool {
    // SAFETY: as for `check`.
    unsafe { read.issue(&read.context(location), report) };
    false
}

/// The conditions as restrictions of key columns and the token; `None` if one is something else.
unsafe fn conditions(read: &Read<'_>) -> Option<Vec<Bound>> {
    // SAFETY: as for `check`.
    unsafe {
        let subject = read.relation.subject().in_any_order();
        let mut bounds = Vec::new();
        for clause in clauses((*read.relation.rel).baserestrictinfo) {
            match subject.bound(clause) {
                Some(bound) if bound.is_whole => bounds.push(bound),
                _ if read.is_planners_own(clause) || read.is_indexed() => {}
                _ => {
                    let (attnum, location) = first_column(read, clause).unwrap_or((0, -1));
                    refuse_condition(read, attnum, location);
                    return None;
                }
            }
        }
        if let Some((attnum, location)) = read.note().and_then(|note| note.not_null.first()) {
            if !read.is_indexed() {
                refuse_condition(read, *attnum, *location);
                return None;
            }
        }
        Some(bounds)
    }
}

/// Number and place of the first column that a condition mentions.
unsafe fn first_column(read: &Read<'_>, clause: *mut Node) -> Option<(i16, i32)> {
    // SAFETY: as for `check`.
    unsafe {
        let rel = &*read.relation.rel;
        let mut column = None;
        walk(clause, &mut |node| match downcast::<pg_sys::Var>(node, NodeTag::T_Var) {
            Some(var) if var.varno as u32 == rel.relid && var.varattno > 0 => {
                column = Some((var.varattno, var.location));
                Walk::Stop
            }
            _ => Walk::Descend,
        });
        column
    }
}

/// Refuses a condition that no key range answers, which mentions a column first.
unsafe fn refuse_condition(read: &Read<'_>, attnum: i16, location: i32) {
    // SAFETY: as for `check`.
    unsafe {
        let context = read.context(location);
        let key = read.relation.key;
        let name = if attnum > 0 { owned(pg_sys::get_attname(read.entry.relid, attnum, true)) } else { String::new() };
        let report = if attnum > 0 && !key.is_key_column(attnum) {
            Report::new(
                PARTITION_KEY,
                format!("column \"{name}\" cannot be restricted, because it is not part of the primary key"),
            )
            .hint(format!("Create an index on ({name}), or add AND cass_allow_filtering() (ALLOW FILTERING in CQL)."))
        } else {
            Report::new(
                PARTITION_KEY,
                format!("condition on column \"{name}\" does not name a part of the stored order"),
            )
            .hint(
                "Restrict key columns by \"=\", IN, or a slice of the last restricted clustering column; or add AND \
                     cass_allow_filtering() (ALLOW FILTERING in CQL).",
            )
        };
        let report = report.detail(format!(
            "The primary key of \"{}\" is (({}), {}).",
            context.table,
            names(key.partition()),
            ordered_names(key.clustering())
        ));
        read.issue(&context, report);
    }
}

/// Every column at most once by "=" or IN, or by one slice; clustering columns without a gap.
unsafe fn restrictions(read: &Read<'_>, bounds: &[Bound]) -> bool {
    let key = read.relation.key;
    // SAFETY: as for `check`.
    unsafe {
        let by_token = bounds.iter().any(|bound| bound.target == Target::Token);
        if by_token && bounds.iter().any(|bound| bound.target != Target::Token) {
            return refuse(
                read,
                -1,
                Report::new(CLUSTERING, "a token range cannot be restricted further")
                    .detail("A range of tokens is read as a whole.")
                    .hint("Leave the other conditions out, or add AND cass_allow_filtering()."),
            );
        }
        for (index, column) in key.columns.iter().enumerate() {
            let on: Vec<Test> =
                bounds.iter().filter(|bound| bound.target == Target::Column(index)).map(|bound| bound.test).collect();
            let count = |wanted: fn(&Test) -> bool| on.iter().filter(|test| wanted(test)).count();
            let lower = count(|test| matches!(test, Test::Greater | Test::GreaterOrEqual));
            let upper = count(|test| matches!(test, Test::Less | Test::LessOrEqual));
            let equal = count(|test| test.is_equality());
            if equal > 1 || lower > 1 || upper > 1 || (equal > 0 && lower + upper > 0) {
                return refuse(
                    read,
                    -1,
                    Report::new(CLUSTERING, format!("column \"{}\" is restricted more than once", column.name))
                        .hint("Give each key column one \"=\" or IN, or one lower and one upper bound."),
                );
            }
        }
        let mut before: Option<&KeyColumn> = None;
        for (index, column) in key.columns.iter().enumerate().skip(key.partition_columns) {
            let mut on = bounds.iter().filter(|bound| bound.target == Target::Column(index)).peekable();
            match (on.peek(), before) {
                (Some(_), Some(before)) => {
                    let context = read.context(-1);
                    read.issue(&context, context.clustering(&column.name, &before.name));
                    return false;
                }
                (Some(bound), None) if bound.test.is_equality() => {}
                (_, before_this) => before = before_this.or(Some(column)),
            }
        }
    }
    true
}

/// UPDATE names whole rows, DELETE rows or a slice; neither takes tokens.
unsafe fn changes(read: &Read<'_>, bounds: &[Bound]) -> bool {
    let key = read.relation.key;
    // SAFETY: as for `check`.
    unsafe {
        if !read.is_changed() {
            return true;
        }
        if bounds.iter().any(|bound| bound.target == Target::Token) {
            read.refuse_partition_key();
            return false;
        }
        let is_equal =
            |index: usize| bounds.iter().any(|bound| bound.target == Target::Column(index) && bound.test.is_equality());
        let missing: Vec<&KeyColumn> = key
            .columns
            .iter()
            .enumerate()
            .skip(key.partition_columns)
            .filter(|(index, _)| !is_equal(*index))
            .map(|(_, column)| column)
            .collect();
        if (*(*read.relation.root).parse).commandType == CmdType::CMD_UPDATE && !missing.is_empty() {
            let missing: Vec<KeyColumn> = missing.into_iter().cloned().collect();
            return refuse(
                read,
                -1,
                Report::new(CLUSTERING, "UPDATE must restrict every clustering column by \"=\" or IN")
                    .detail(format!("No such condition was found for {}.", names(&missing)))
                    .hint("Add the conditions, or add AND cass_allow_filtering()."),
            );
        }
    }
    true
}

/// ORDER BY follows the declared order or its exact reverse, within partitions that are named.
unsafe fn order(read: &Read<'_>, bounds: &[Bound]) -> bool {
    let key = read.relation.key;
    // SAFETY: as for `check`.
    unsafe {
        let root = &*read.relation.root;
        let wanted = root.sort_pathkeys;
        if wanted.is_null() || pg_sys::bms_num_members(root.all_baserels) != 1 {
            return true;
        }
        let is_named =
            |index: usize| bounds.iter().any(|bound| bound.target == Target::Column(index) && bound.test.is_equality());
        if !(0..key.partition_columns).all(is_named) {
            return refuse(
                read,
                -1,
                Report::new(ORDER, "ORDER BY is only possible when the partition key is restricted by \"=\" or IN")
                    .detail(format!(
                        "The partition key of \"{}\" is ({}).",
                        read.context(-1).table,
                        names(key.partition())
                    ))
                    .hint("Restrict it, or sort elsewhere; or add AND cass_allow_filtering()."),
            );
        }
        if read.relation.has_order(wanted) {
            return true;
        }
        let reversed: Vec<KeyColumn> = key.clustering().iter().cloned().map(reverse).collect();
        refuse(
            read,
            -1,
            Report::new(ORDER, "ORDER BY does not follow the clustering order")
                .detail(format!("The clustering columns are ({}).", ordered_names(key.clustering())))
                .hint(format!(
                    "Order by ({}) or by ({}), or a leading part; or add AND cass_allow_filtering().",
                    ordered_names(key.clustering()),
                    ordered_names(&reversed)
                )),
        )
    }
}

fn reverse(mut column: KeyColumn) -> KeyColumn {
    column.order = match column.order {
        Order::Ascending => Order::Descending,
        Order::Descending => Order::Ascending,
    };
    column
}

/// GROUP BY takes key columns in key order; DISTINCT exactly the partition key.
unsafe fn groups(read: &Read<'_>) -> bool {
    let key = read.relation.key;
    // SAFETY: as for `check`.
    unsafe {
        let root = &*read.relation.root;
        let query = &*root.parse;
        if pg_sys::bms_num_members(root.all_baserels) != 1 {
            return true;
        }
        let column_of = |clause: *mut pg_sys::SortGroupClause| {
            let expression = pg_sys::get_sortgroupclause_expr(clause, query.targetList);
            read.relation.subject().key_column(expression)
        };
        let fixed = |index: usize| {
            clauses((*read.relation.rel).baserestrictinfo).any(|clause| {
                let bound = read.relation.subject().bound(clause);
                bound.is_some_and(|bound| bound.target == Target::Column(index) && bound.test == Test::Equal)
            })
        };
        let mut next = 0;
        for clause in pointers::<pg_sys::SortGroupClause>(query.groupClause) {
            let column = column_of(clause);
            while column != Some(next) && next < key.columns.len() && fixed(next) {
                next += 1;
            }
            if column != Some(next) {
                return refuse(
                    read,
                    -1,
                    Report::new(ORDER, "GROUP BY must list columns of the primary key in its order")
                        .detail(format!(
                            "The primary key is (({}), {}).",
                            names(key.partition()),
                            ordered_names(key.clustering())
                        ))
                        .hint("Group by a leading part of it, or add AND cass_allow_filtering()."),
                );
            }
            next += 1;
        }
        let mut distinct: Vec<Option<usize>> =
            pointers::<pg_sys::SortGroupClause>(query.distinctClause).map(column_of).collect();
        distinct.sort_unstable();
        if !distinct.is_empty() && !distinct.into_iter().eq((0..key.partition_columns).map(Some)) {
            return refuse(
                read,
                -1,
                Report::new(ORDER, "SELECT DISTINCT must name the partition key and nothing else")
                    .detail(format!("The partition key is ({}).", names(key.partition())))
                    .hint("Select its columns, or add AND cass_allow_filtering()."),
            );
        }
    }
    true
}
