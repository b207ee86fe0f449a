//! What a statement says before the planner simplifies it.
//!
//! Planning folds constants and moves conditions, so some of what a verdict rests on is gone when paths are made. This
//! pass over the analysed statement notes, for every cass table in it, whether a condition mentions it; finds
//! `cass_allow_filtering()`; and refuses what cass tables cannot do at all. Each table's entry in the range table is
//! marked with the number of its note, which survives every copy the planner makes.

use std::cell::Cell;
use std::ffi::c_char;

use pgrx::pg_sys::{self, CmdType, Node, NodeTag, Oid, RTEKind};

use super::known_functions::{known_function, KnownFunction};
use super::parameters::ParameterUse;
use super::scopes::{Origin, Scopes};
use super::token_types::unlike_tokens;
use crate::catalog::is_cass_oid;
use crate::error::Report;
use crate::pg::nodes::{conjuncts, downcast, list_of, pair, pointers, strip_relabel, walk, walk_query, Walk};

/// What the statement says of one cass table in its range tables.
#[derive(Debug, Default)]
pub struct RelationNote {
    /// Whether a condition mentions a column of it.
    pub condition: bool,
    /// Columns, by number, that are compared with "=" or IN to something else than a column beside them.
    pub equal_columns: Vec<i16>,
    /// Columns tested by IS NOT NULL, alone or in an OR: their numbers and where they stand. From 17 on PostgreSQL drops such a
    /// test of a NOT NULL column.
    pub not_null: Vec<(i16, i32)>,
    /// Whether its token is compared with something.
    pub token: bool,
    /// Whether a refusal was issued; the planner may look at one read several times.
    pub refused: Cell<bool>,
}

/// What a statement says.
#[derive(Debug)]
pub struct Statement {
    /// Text of the statement, for cursor positions; may be null.
    pub source: *const c_char,
    /// Whether `cass_allow_filtering()` stands in it.
    pub allows_filtering: bool,
    /// How its parameters are used in conditions.
    pub parameters: ParameterUse,
    relations: Vec<RelationNote>,
    /// The range table entry of each note, while the statement is read.
    entries: Vec<*mut pg_sys::RangeTblEntry>,
    /// The first misuse found. It is raised when the walk is over, as its position would not survive the way out.
    fault: Option<Report>,
}

impl Statement {
    /// Reads a statement that is about to be planned, marks its cass tables, and takes `cass_allow_filtering()` out.
    ///
    /// # Safety
    /// `query` is a live analysed and rewritten statement that may be changed; `source` is null or its text, and
    /// outlives the result.
    pub unsafe fn read(query: *mut pg_sys::Query, source: *const c_char) -> Self {
        let mut statement = Self {
            source,
            allows_filtering: false,
            parameters: ParameterUse::default(),
            relations: Vec::new(),
            entries: Vec::new(),
            fault: None,
        };
        let mut scopes = Scopes::default();
        // SAFETY: passed on.
        unsafe { statement.read_query(query, &mut scopes) };
        if let Some(fault) = statement.fault.take() {
            fault.raise();
        }
        statement
    }

    /// Whether there are cass tables in it.
    pub fn has_relations(&self) -> bool {
        !self.relations.is_empty()
    }

    /// The note of a range table entry; `None` if it came into the statement during planning (an inlined function).
    pub fn note(&self, entry: &pg_sys::RangeTblEntry) -> Option<&RelationNote> {
        self.relations.get((entry.enrtuples as usize).checked_sub(1)?)
    }

    unsafe fn read_query(&mut self, query: *mut pg_sys::Query, scopes: &mut Scopes) {
        // SAFETY: the parts of a live query are live.
        unsafe {
            self.mark_relations(query);
            scopes.enter(query);
            self.read_join_tree((*query).jointree.cast(), scopes);
            for entry in pointers::<pg_sys::RangeTblEntry>((*query).rtable) {
                let mut quals = (*entry).securityQuals.cast();
                self.read_condition(&mut quals, scopes);
                (*entry).securityQuals = quals.cast();
            }
            // Conditions of HAVING that hold no aggregate are moved to WHERE.
            for member in conjuncts((*query).havingQual) {
                self.read_member(member, scopes);
            }
            // Common table expressions are walked from here, so that the tables behind them are marked first.
            walk_query(query, 0, &mut |node| {
                if let Some(subquery) = downcast::<pg_sys::Query>(node, NodeTag::T_Query) {
                    self.read_query(subquery, scopes);
                    return Walk::Skip;
                }
                if self.fault.is_none() {
                    self.fault = self.misuse(node).or_else(|| self.transaction_column(node, scopes));
                }
                Walk::Descend
            });
            scopes.leave();
        }
    }

    /// Marks the cass tables of the query and of the subqueries in its FROM, so that conditions find them.
    unsafe fn mark_relations(&mut self, query: *mut pg_sys::Query) {
        // SAFETY: the entries of a live query are live.
        unsafe {
            for (index, entry) in pointers::<pg_sys::RangeTblEntry>((*query).rtable).enumerate() {
                match (*entry).rtekind {
                    RTEKind::RTE_RELATION if !self.entries.contains(&entry) && is_cass_oid((*entry).relid) => {
                        check_use(&*query, index + 1, &*entry);
                        self.relations.push(RelationNote::default());
                        self.entries.push(entry);
                        // Nothing else uses this field of a table's entry.
                        (*entry).enrtuples = self.relations.len() as f64;
                    }
                    RTEKind::RTE_SUBQUERY => self.mark_relations((*entry).subquery),
                    _ => {}
                }
            }
            for expression in pointers::<pg_sys::CommonTableExpr>((*query).cteList) {
                if let Some(subquery) = downcast((*expression).ctequery, NodeTag::T_Query) {
                    self.mark_relations(subquery);
                }
            }
        }
    }

    /// Reads WHERE and ON conditions.
    unsafe fn read_join_tree(&mut self, node: *mut Node, scopes: &Scopes) {
        // SAFETY: the parts of a live join tree are live.
        unsafe {
            if let Some(from) = downcast::<pg_sys::FromExpr>(node, NodeTag::T_FromExpr) {
                pointers(from.fromlist).for_each(|item| self.read_join_tree(item, scopes));
                self.read_condition(&mut from.quals, scopes);
            } else if let Some(join) = downcast::<pg_sys::JoinExpr>(node, NodeTag::T_JoinExpr) {
                self.read_join_tree(join.larg, scopes);
                self.read_join_tree(join.rarg, scopes);
                self.read_condition(&mut join.quals, scopes);
            }
        }
    }

    /// Reads one condition member by member, and takes `cass_allow_filtering()` out of it.
    unsafe fn read_condition(&mut self, condition: &mut *mut Node, scopes: &Scopes) {
        // SAFETY: the members of a live condition are live.
        unsafe {
            let members = conjuncts(*condition);
            let count = members.len();
            let kept: Vec<*mut Node> = members.into_iter().filter(|member| !allows_filtering(*member)).collect();
            if kept.len() < count {
                self.allows_filtering = true;
                let is_list = downcast::<pg_sys::List>(*condition, NodeTag::T_List).is_some();
                *condition = match kept.as_slice() {
                    [] => std::ptr::null_mut(),
                    [only] if !is_list => *only,
                    several if is_list => list_of(several.iter().copied()).cast(),
                    several => pg_sys::make_andclause(list_of(several.iter().copied())).cast(),
                };
            }
            for member in kept {
                self.read_member(member, scopes);
            }
        }
    }

    unsafe fn read_member(&mut self, member: *mut Node, scopes: &Scopes) {
        // SAFETY: the parts of a live condition are live.
        unsafe {
            self.parameters.read(member);
            for origin in scopes.origins(member) {
                if let Some(note) = self.note_mut(origin) {
                    note.condition = true;
                }
            }
            for origin in token_columns(member, scopes) {
                if let Some(note) = self.note_mut(origin) {
                    note.token = true;
                }
            }
            for (origin, location) in not_null_columns(member, scopes) {
                if let Some(note) = self.note_mut(origin) {
                    note.not_null.push((origin.attnum, location));
                }
            }
            if let Some(origin) = equal_column(member, scopes) {
                if let Some(note) = self.note_mut(origin) {
                    note.equal_columns.push(origin.attnum);
                }
            }
        }
    }

    fn note_mut(&mut self, origin: Origin) -> Option<&mut RelationNote> {
        let index = self.entries.iter().position(|entry| *entry == origin.entry)?;
        self.relations.get_mut(index)
    }

    /// The error of `cass_allow_filtering()` where it would allow nothing, and of tokens of different types compared.
    unsafe fn misuse(&self, node: *mut Node) -> Option<Report> {
        // SAFETY: the node is live.
        unsafe {
            if allows_filtering(node) {
                let location = (*node.cast::<pg_sys::FuncExpr>()).location;
                let report =
                    Report::new("42601", "cass_allow_filtering() must stand alone or be joined by AND in WHERE or ON")
                        .hint("Write WHERE ... AND cass_allow_filtering().");
                return Some(report.location(self.source, location));
            }
            unlike_tokens(node, self.source)
        }
    }

    /// The error of a column that tells a version's transaction. A flush would change it under a program that takes it for
    /// the version's name, which would then overwrite what it has not read.
    unsafe fn transaction_column(&self, node: *mut Node, scopes: &Scopes) -> Option<Report> {
        // SAFETY: the node is live, and part of the query entered last; the name of a live relation's entry is a C string.
        unsafe {
            let var = downcast::<pg_sys::Var>(node, NodeTag::T_Var)?;
            let column = match i32::from(var.varattno) {
                pg_sys::MinTransactionIdAttributeNumber => "xmin",
                pg_sys::MinCommandIdAttributeNumber => "cmin",
                pg_sys::MaxTransactionIdAttributeNumber => "xmax",
                pg_sys::MaxCommandIdAttributeNumber => "cmax",
                _ => return None,
            };
            let origin = scopes.origins(node).into_iter().find(|origin| self.entries.contains(&origin.entry))?;
            let table = crate::catalog::identifier::owned(pg_sys::get_rel_name((*origin.entry).relid));
            let report = Report::new(
                "0A000",
                format!("system column \"{column}\" is not supported for table \"{table}\""),
            )
            .detail("VACUUM moves rows of access method cass to where no transaction is noted beside them.")
            .hint("To notice changes of a row compare its ctid, which every UPDATE changes, or a column of your own.");
            Some(report.location(self.source, var.location))
        }
    }
}

/// Whether `statement_part` holds `cass_allow_filtering()` anywhere below it.
///
/// # Safety
/// `statement_part` is a live tree.
pub unsafe fn holds_allow_filtering(statement_part: *mut Node) -> bool {
    // SAFETY: passed on.
    unsafe {
        walk(statement_part, &mut |node| {
            if allows_filtering(node) {
                Walk::Stop
            } else {
                Walk::Descend
            }
        })
    }
}

unsafe fn allows_filtering(node: *mut Node) -> bool {
    // SAFETY: the caller's node is live.
    unsafe { downcast::<pg_sys::FuncExpr>(node, NodeTag::T_FuncExpr) }
        .is_some_and(|function| known_function(function.funcid) == Some(KnownFunction::AllowFiltering))
}

/// The columns whose token a member compares with something.
unsafe fn token_columns(member: *mut Node, scopes: &Scopes) -> Vec<Origin> {
    // SAFETY: the parts of a live condition are live.
    unsafe {
        let operands = downcast::<pg_sys::OpExpr>(member, NodeTag::T_OpExpr).and_then(|op| pair(op.args));
        let is_token = |operand: &*mut Node| {
            downcast::<pg_sys::FuncExpr>(*operand, NodeTag::T_FuncExpr)
                .is_some_and(|function| known_function(function.funcid) == Some(KnownFunction::Token))
        };
        let tokens = operands.into_iter().flat_map(|(left, right)| [left, right]).filter(is_token);
        tokens.flat_map(|token| scopes.origins(token)).collect()
    }
}

/// The columns that a member, or a part of it joined by OR, tests by IS NOT NULL, and where they stand.
unsafe fn not_null_columns(member: *mut Node, scopes: &Scopes) -> Vec<(Origin, i32)> {
    // SAFETY: the parts of a live condition are live.
    unsafe {
        if let Some(parts) = downcast::<pg_sys::BoolExpr>(member, NodeTag::T_BoolExpr) {
            let is_or = parts.boolop == pg_sys::BoolExprType::OR_EXPR;
            return pointers(parts.args).filter(|_| is_or).flat_map(|part| not_null_columns(part, scopes)).collect();
        }
        let Some(test) = downcast::<pg_sys::NullTest>(member, NodeTag::T_NullTest) else { return Vec::new() };
        let column = downcast::<pg_sys::Var>(test.arg.cast::<Node>(), NodeTag::T_Var);
        match column.filter(|_| test.nulltesttype == pg_sys::NullTestType::IS_NOT_NULL) {
            Some(column) => {
                scopes.origins(test.arg.cast()).into_iter().map(|origin| (origin, column.location)).collect()
            }
            None => Vec::new(),
        }
    }
}

/// The column that a member compares with "=" or IN to something without columns of the same query.
unsafe fn equal_column(member: *mut Node, scopes: &Scopes) -> Option<Origin> {
    // SAFETY: the parts of a live condition are live.
    unsafe {
        let (operator, arguments) = match downcast::<pg_sys::OpExpr>(member, NodeTag::T_OpExpr) {
            Some(op) => (op.opno, op.args),
            None => {
                let op = downcast::<pg_sys::ScalarArrayOpExpr>(member, NodeTag::T_ScalarArrayOpExpr)?;
                (if op.useOr { op.opno } else { Oid::INVALID }, op.args)
            }
        };
        let (left, right) = pair(arguments)?;
        let mut is_equality = false;
        for operand in [left, right] {
            is_equality |= operator != Oid::INVALID && pg_sys::op_mergejoinable(operator, pg_sys::exprType(operand));
        }
        if !is_equality {
            return None;
        }
        let column = |operand, other| {
            let is_column = downcast::<pg_sys::Var>(strip_relabel(operand), NodeTag::T_Var).is_some();
            (is_column && !pg_sys::contain_vars_of_level(other, 0)).then(|| scopes.origins(operand)).map(|origins| {
                match origins.as_slice() {
                    [origin] => Some(*origin),
                    _ => None,
                }
            })
        };
        column(left, right).or_else(|| column(right, left)).flatten()
    }
}

/// Refuses uses of a cass table that its storage has no meaning for.
unsafe fn check_use(query: &pg_sys::Query, index: usize, entry: &pg_sys::RangeTblEntry) {
    // SAFETY: the name of a live relation's entry is a C string.
    let name = || unsafe { crate::catalog::identifier::owned(pg_sys::get_rel_name(entry.relid)) };
    if query.commandType == CmdType::CMD_INSERT && !query.onConflict.is_null() && query.resultRelation as usize == index
    {
        Report::new("0A000", format!("ON CONFLICT is not supported for table \"{}\"", name()))
            .detail("Tables of access method cass have no conflicts of the primary key.")
            .hint("INSERT already writes over a row with the same primary key; leave ON CONFLICT out.")
            .raise();
    }
}
