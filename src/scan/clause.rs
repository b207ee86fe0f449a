//! Which conditions say something about a key column or the token: one clause at a time.
//!
//! A clause binds only if reading the key range it names loses no row that satisfies it: the operator belongs to the
//! btree order of the column's type, its other side is free of the table's own columns, and the value can be
//! brought to the column's type without changing the answer. All others stay filters.

use pgrx::pg_sys::{self, Node, NodeTag, Oid};

use crate::catalog::table_key::TableKey;
use crate::pg::nodes::{downcast, oids, pair, pointers, strip_relabel};
use crate::pg::versions::collations::orders_by_bytes;
use crate::planner::{known_function, KnownFunction};

/// What a clause restricts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The key column of this index in `TableKey::columns`.
    Column(usize),
    /// `cass_token()` of the whole partition key.
    Token,
}

/// How the target is compared with the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Test {
    Less = 1,
    LessOrEqual = 2,
    Equal = 3,
    GreaterOrEqual = 4,
    Greater = 5,
    /// Equal to one of an array's elements.
    Any = 6,
}

impl Test {
    /// The test of a btree strategy number (and of `self as i32`).
    pub fn from_number(number: i32) -> Option<Self> {
        Some(match number {
            1 => Self::Less,
            2 => Self::LessOrEqual,
            3 => Self::Equal,
            4 => Self::GreaterOrEqual,
            5 => Self::Greater,
            6 => Self::Any,
            _ => return None,
        })
    }

    /// Whether it names single values rather than a range.
    pub fn is_equality(self) -> bool {
        matches!(self, Self::Equal | Self::Any)
    }
}

/// Where in the clause the value stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Value {
    Left = 0,
    Right = 1,
    /// A boolean column that stands for itself (`WHERE active`).
    True = 2,
    /// A boolean column under NOT.
    False = 3,
}

impl Value {
    /// The value place of `self as i32`.
    pub fn from_number(number: i32) -> Option<Self> {
        Some(match number {
            0 => Self::Left,
            1 => Self::Right,
            2 => Self::True,
            3 => Self::False,
            _ => return None,
        })
    }
}

/// A clause that restricts a key column or the token.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// In a row comparison, its first column.
    pub target: Target,
    /// How many key columns are compared, from the target on: more than one in a row comparison.
    pub columns: usize,
    pub test: Test,
    pub value: Value,
    /// The whole clause.
    pub clause: *mut Node,
    /// Whether the clause says no more than this bound: false for a row comparison of which only the leading columns are taken.
    pub is_whole: bool,
}

/// The expressions of the values that a clause compares its leading columns with, one for each.
///
/// # Safety
/// `clause` is a live expression.
pub unsafe fn value_expressions(clause: *mut Node, value: Value, columns: usize) -> Vec<*mut Node> {
    // SAFETY: the node type carries the fields read from it.
    if let Some(row) = unsafe { downcast::<pg_sys::RowCompareExpr>(clause, NodeTag::T_RowCompareExpr) } {
        let values = if value == Value::Left { row.largs } else { row.rargs };
        // SAFETY: a list of expressions.
        return unsafe { pointers(values) }.take(columns).collect();
    }
    // SAFETY: passed on.
    unsafe { value_expression(clause, value) }.into_iter().collect()
}

/// The value's expression in a clause that is no row comparison.
unsafe fn value_expression(clause: *mut Node, value: Value) -> Option<*mut Node> {
    // SAFETY: the node types carry the fields read from them.
    unsafe {
        let arguments = if let Some(op) = downcast::<pg_sys::OpExpr>(clause, NodeTag::T_OpExpr) {
            op.args
        } else {
            downcast::<pg_sys::ScalarArrayOpExpr>(clause, NodeTag::T_ScalarArrayOpExpr)?.args
        };
        let (left, right) = pair(arguments)?;
        match value {
            Value::Left => Some(left),
            Value::Right => Some(right),
            Value::True | Value::False => None,
        }
    }
}

/// The relation whose columns clauses are matched with.
pub struct Subject<'a> {
    pub root: *mut pg_sys::PlannerInfo,
    /// Range table index.
    pub relid: pg_sys::Index,
    pub key: &'a TableKey,
    /// Whether inequalities count only on columns whose bytes have the order of their operators.
    pub in_byte_order: bool,
}

impl Subject<'_> {
    /// Takes inequalities of every clustering column for what they say, though they may not be readable as a range.
    pub fn in_any_order(mut self) -> Self {
        self.in_byte_order = false;
        self
    }

    /// What `clause` says about a key column or the token, if it does.
    ///
    /// # Safety
    /// `clause` is a live expression of this planner run.
    pub unsafe fn bound(&self, clause: *mut Node) -> Option<Bound> {
        // SAFETY: passed on.
        unsafe {
            match (*clause).type_ {
                NodeTag::T_OpExpr => self.operator_bound(clause),
                NodeTag::T_ScalarArrayOpExpr => self.array_bound(clause),
                NodeTag::T_RowCompareExpr => self.row_bound(clause),
                _ => self.boolean_bound(clause),
            }
        }
    }

    /// The index in `TableKey::columns` of the key column that `node` is.
    ///
    /// # Safety
    /// `node` is null or a live expression.
    pub unsafe fn key_column(&self, node: *mut Node) -> Option<usize> {
        // SAFETY: passed on.
        let var = unsafe { downcast::<pg_sys::Var>(strip_relabel(node), NodeTag::T_Var)? };
        if var.varno as pg_sys::Index != self.relid || var.varlevelsup != 0 {
            return None;
        }
        self.key.columns.iter().position(|column| column.attnum == var.varattno)
    }

    /// Whether `node` is `cass_token(...)` of the whole partition key in its order.
    ///
    /// # Safety
    /// `node` is null or a live expression.
    pub unsafe fn is_token(&self, node: *mut Node) -> bool {
        // SAFETY: passed on.
        unsafe {
            let Some(function) = downcast::<pg_sys::FuncExpr>(node, NodeTag::T_FuncExpr) else {
                return false;
            };
            let arguments = pointers::<Node>(function.args);
            !function.funcvariadic
                && arguments.len() == self.key.partition_columns
                && known_function(function.funcid) == Some(KnownFunction::Token)
                && arguments.enumerate().all(|(index, argument)| self.key_column(argument) == Some(index))
        }
    }

    unsafe fn operator_bound(&self, clause: *mut Node) -> Option<Bound> {
        // SAFETY: children of a live clause live; the catalog look-ups take any OID.
        unsafe {
            let op = downcast::<pg_sys::OpExpr>(clause, NodeTag::T_OpExpr)?;
            let (left, right) = pair(op.args)?;
            let (target, operator, value) = if let Some(target) = self.target(left) {
                (target, op.opno, Value::Right)
            } else {
                (self.target(right)?, pg_sys::get_commutator(op.opno), Value::Left)
            };
            let operand = if value == Value::Right { right } else { left };
            if !self.is_value(operand) {
                return None;
            }
            let test = match target {
                Target::Token => token_test(operator)?,
                Target::Column(index) => self.column_test(index, operator, op.inputcollid)?,
            };
            Some(Bound { target, columns: 1, test, value, clause, is_whole: true })
        }
    }

    unsafe fn array_bound(&self, clause: *mut Node) -> Option<Bound> {
        // SAFETY: as for `operator_bound`.
        unsafe {
            let op = downcast::<pg_sys::ScalarArrayOpExpr>(clause, NodeTag::T_ScalarArrayOpExpr)?;
            let (left, right) = pair(op.args)?;
            let index = self.key_column(left)?;
            let test = self.column_test(index, op.opno, op.inputcollid)?;
            (op.useOr && test == Test::Equal && self.is_value(right)).then_some(Bound {
                target: Target::Column(index),
                columns: 1,
                test: Test::Any,
                value: Value::Right,
                clause,
                is_whole: true,
            })
        }
    }

    /// As many leading columns of a row comparison as follow each other in the key: of `(b, x) > (1, 2)` that is `b >= 1`.
    unsafe fn row_bound(&self, clause: *mut Node) -> Option<Bound> {
        // SAFETY: as for `operator_bound`; a row comparison has an operator and two operands for every column.
        unsafe {
            let row = downcast::<pg_sys::RowCompareExpr>(clause, NodeTag::T_RowCompareExpr)?;
            let operands: Vec<_> = pointers::<Node>(row.largs).zip(pointers::<Node>(row.rargs)).collect();
            let &(left, right) = operands.first()?;
            let (first, value) = match self.key_column(left) {
                Some(index) => (index, Value::Right),
                None => (self.key_column(right)?, Value::Left),
            };
            let operators = oids(row.opnos).zip(oids(row.inputcollids));
            let compared = operands.iter().copied().zip(operators).enumerate();
            let tests: Vec<Test> = compared
                .map_while(|(offset, ((left, right), (operator, collation)))| {
                    let (column, operand, operator) = match value {
                        Value::Right => (left, right, operator),
                        _ => (right, left, pg_sys::get_commutator(operator)),
                    };
                    let index = first + offset;
                    let is_next = self.key_column(column) == Some(index) && self.is_value(operand);
                    is_next.then(|| self.column_test(index, operator, collation)).flatten()
                })
                .collect();
            let is_whole = tests.len() == operands.len();
            let test = match tests.first()? {
                Test::Equal | Test::Any => return None,
                test if is_whole => *test,
                Test::Less | Test::LessOrEqual => Test::LessOrEqual,
                Test::Greater | Test::GreaterOrEqual => Test::GreaterOrEqual,
            };
            Some(Bound { target: Target::Column(first), columns: tests.len(), test, value, clause, is_whole })
        }
    }

    /// The planner turns `flag = true` into `flag`, and `flag = false` into `NOT flag`.
    unsafe fn boolean_bound(&self, clause: *mut Node) -> Option<Bound> {
        // SAFETY: as for `operator_bound`.
        unsafe {
            let (operand, value) = match downcast::<pg_sys::BoolExpr>(clause, NodeTag::T_BoolExpr) {
                Some(not) if not.boolop == pg_sys::BoolExprType::NOT_EXPR => {
                    (pointers::<Node>(not.args).next()?, Value::False)
                }
                _ => (clause, Value::True),
            };
            let index = self.key_column(operand)?;
            Some(Bound { target: Target::Column(index), columns: 1, test: Test::Equal, value, clause, is_whole: true })
        }
    }

    unsafe fn target(&self, node: *mut Node) -> Option<Target> {
        // SAFETY: passed on.
        unsafe {
            match self.key_column(node) {
                Some(index) => Some(Target::Column(index)),
                None => self.is_token(node).then_some(Target::Token),
            }
        }
    }

    /// The test that an operator makes of a key column, if its key range can be read in its stead.
    unsafe fn column_test(&self, index: usize, operator: Oid, collation: Oid) -> Option<Test> {
        let column = self.key.columns.get(index)?;
        // SAFETY: the type cache returns a live entry for every type.
        let family =
            unsafe { (*pg_sys::lookup_type_cache(column.type_oid, pg_sys::TYPECACHE_BTREE_OPFAMILY as i32)).btree_opf };
        let (test, left, right) = btree_test(operator, family)?;
        if left != right && !(is_integer(left) && is_integer(right)) {
            return None;
        }
        if test == Test::Equal {
            // Under a deterministic collation equal texts are equal bytes, whichever collation it is.
            // SAFETY: a catalog look-up by OID.
            return (collation == Oid::INVALID || unsafe { pg_sys::get_collation_isdeterministic(collation) })
                .then_some(test);
        }
        let readable = column.bytewise
            && (collation == column.collation || collation == Oid::INVALID || orders_by_bytes(collation));
        (readable || !self.in_byte_order).then_some(test)
    }

    /// Whether the expression has one value for a whole scan: nothing of this table in it, nothing volatile.
    unsafe fn is_value(&self, node: *mut Node) -> bool {
        // SAFETY: passed on.
        unsafe {
            !pg_sys::bms_is_member(self.relid as i32, pg_sys::pull_varnos(self.root, node))
                && !pg_sys::contain_volatile_functions(node)
        }
    }
}

/// The test that an operator makes of a token: those of bigint with any integer.
fn token_test(operator: Oid) -> Option<Test> {
    let (test, left, right) = btree_test(operator, pg_sys::INTEGER_BTREE_FAM_OID)?;
    (left == pg_sys::INT8OID && is_integer(right)).then_some(test)
}

/// The operator's place in a btree operator family and its two types, if it has one.
fn btree_test(operator: Oid, family: Oid) -> Option<(Test, Oid, Oid)> {
    if operator == Oid::INVALID || family == Oid::INVALID {
        return None;
    }
    let (mut strategy, mut left, mut right) = (0, Oid::INVALID, Oid::INVALID);
    // SAFETY: catalog look-ups; the operator is known to be in the family before its properties are asked for.
    unsafe {
        if !pg_sys::op_in_opfamily(operator, family) {
            return None;
        }
        pg_sys::get_op_opfamily_properties(operator, family, false, &mut strategy, &mut left, &mut right);
    }
    Some((Test::from_number(strategy)?, left, right))
}

/// Whether the type is one of the integers of the core server, which compare across types.
pub fn is_integer(type_oid: Oid) -> bool {
    [pg_sys::INT2OID, pg_sys::INT4OID, pg_sys::INT8OID].contains(&type_oid)
}
