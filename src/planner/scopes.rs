//! Which columns of which tables an expression of a statement goes back to, through subqueries, joins and CTEs.

use std::ffi::CStr;

use pgrx::pg_sys::{self, Node, NodeTag, RTEKind};

use crate::pg::nodes::{downcast, pointers, walk_query, Walk};

/// A column of a table in a range table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    pub entry: *mut pg_sys::RangeTblEntry,
    /// Number of the column; 0 for the whole row.
    pub attnum: i16,
}

/// The queries around the present place of a statement, the outermost first.
#[derive(Default)]
pub struct Scopes {
    queries: Vec<*mut pg_sys::Query>,
}

impl Scopes {
    /// Goes into a query.
    pub fn enter(&mut self, query: *mut pg_sys::Query) {
        self.queries.push(query);
    }

    /// Leaves the query entered last.
    pub fn leave(&mut self) {
        self.queries.pop();
    }

    /// The table columns that the expression's columns go back to.
    ///
    /// # Safety
    /// The queries entered and `expression`, part of the innermost, are live.
    pub unsafe fn origins(&self, expression: *mut Node) -> Vec<Origin> {
        let mut found = Vec::new();
        // SAFETY: the caller's promise.
        unsafe { collect(&self.queries, expression, &mut found) };
        found
    }
}

/// Adds the origins of the columns in an expression whose query is the last of `queries`.
unsafe fn collect(queries: &[*mut pg_sys::Query], expression: *mut Node, found: &mut Vec<Origin>) {
    // SAFETY: as for `Scopes::origins`.
    unsafe { collect_below(queries, expression, 0, found) }
}

/// As `collect`, for an expression `depth` queries below the last of `queries`, entered by sublinks.
unsafe fn collect_below(queries: &[*mut pg_sys::Query], node: *mut Node, depth: u32, found: &mut Vec<Origin>) {
    // SAFETY: as for `Scopes::origins`.
    unsafe {
        crate::pg::nodes::walk(node, &mut |node| {
            if let Some(query) = downcast::<pg_sys::Query>(node, NodeTag::T_Query) {
                walk_query(query, 0, &mut |part| {
                    collect_below(queries, part, depth + 1, found);
                    Walk::Skip
                });
                return Walk::Skip;
            }
            if let Some(var) = downcast::<pg_sys::Var>(node, NodeTag::T_Var) {
                if let Some(levels_up) = var.varlevelsup.checked_sub(depth) {
                    let scope = queries.len().saturating_sub(levels_up as usize);
                    resolve(&queries[..scope], var.varno, var.varattno, found);
                }
            }
            Walk::Descend
        });
    }
}

/// Adds the origins of a column of an entry in the range table of the last of `queries`.
unsafe fn resolve(queries: &[*mut pg_sys::Query], varno: i32, attnum: i16, found: &mut Vec<Origin>) {
    // SAFETY: as for `Scopes::origins`; column lists are as long as the entry has columns.
    unsafe {
        let Some(&query) = queries.last() else { return };
        let index = (varno as usize).wrapping_sub(1);
        let Some(entry) = pointers::<pg_sys::RangeTblEntry>((*query).rtable).nth(index) else {
            return;
        };
        match (*entry).rtekind {
            RTEKind::RTE_RELATION => {
                let origin = Origin { entry, attnum };
                if !found.contains(&origin) {
                    found.push(origin);
                }
            }
            RTEKind::RTE_JOIN => {
                let columns = pointers::<Node>((*entry).joinaliasvars);
                wanted(columns, attnum).for_each(|column| collect(queries, column, found));
            }
            RTEKind::RTE_SUBQUERY => resolve_output(queries, (*entry).subquery, attnum, found),
            RTEKind::RTE_CTE if !(*entry).self_reference => {
                let outer = queries.len().saturating_sub((*entry).ctelevelsup as usize);
                let queries = &queries[..outer];
                let Some(&owner) = queries.last() else { return };
                let name = CStr::from_ptr((*entry).ctename);
                let definition = pointers::<pg_sys::CommonTableExpr>((*owner).cteList)
                    .find(|expression| CStr::from_ptr((**expression).ctename) == name);
                let subquery = definition.and_then(|definition| downcast((*definition).ctequery, NodeTag::T_Query));
                if let Some(subquery) = subquery {
                    resolve_output(queries, subquery, attnum, found);
                }
            }
            _ => {}
        }
    }
}

/// Adds the origins of an output column of a subquery, of every branch of a UNION.
unsafe fn resolve_output(
    queries: &[*mut pg_sys::Query],
    subquery: *mut pg_sys::Query,
    attnum: i16,
    found: &mut Vec<Origin>,
) {
    // SAFETY: as for `Scopes::origins`.
    unsafe {
        let mut inner = queries.to_vec();
        inner.push(subquery);
        if !(*subquery).setOperations.is_null() {
            for entry in pointers::<pg_sys::RangeTblEntry>((*subquery).rtable) {
                if (*entry).rtekind == RTEKind::RTE_SUBQUERY {
                    resolve_output(&inner, (*entry).subquery, attnum, found);
                }
            }
            return;
        }
        let columns = pointers::<pg_sys::TargetEntry>((*subquery).targetList)
            .filter(|column| !(**column).resjunk)
            .map(|column| (*column).expr.cast::<Node>());
        wanted(columns, attnum).for_each(|column| collect(&inner, column, found));
    }
}

/// The column of this number, or all of them for the whole row.
fn wanted(columns: impl Iterator<Item = *mut Node>, attnum: i16) -> impl Iterator<Item = *mut Node> {
    columns.zip(1..).filter(move |(_, number)| attnum == 0 || *number == attnum).map(|(column, _)| column)
}
