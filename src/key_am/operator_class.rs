//! Operator classes of `cass_key`: one for each type that a key column may have.

use std::ffi::{c_char, c_int};

use pgrx::pg_sys::{self, Oid};
use pgrx::prelude::*;

extension_sql_file!(
    "../../sql/operator_classes.sql",
    name = "cass_key_operator_classes",
    requires = [cass_key_handler, "cass_types"]
);

/// Answers questions of `pg_index_column_has_property` that core cannot: none.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn property(
    _index: Oid,
    _column: c_int,
    _property: pg_sys::IndexAMProperty::Type,
    _name: *const c_char,
    _result: *mut bool,
    _is_null: *mut bool,
) -> bool {
    false
}

/// Number of the support function that compares two values (btree's BTORDER_PROC).
const ORDER_PROC: i16 = 1;

/// Whether an operator class has btree's five operators and its comparison function.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn validate(class: Oid) -> bool {
    // SAFETY: catalog look-ups by OID, which give an invalid OID where nothing is found.
    unsafe {
        let family = pg_sys::get_opclass_family(class);
        let input = pg_sys::get_opclass_input_type(class);
        let operators = (pg_sys::BTLessStrategyNumber..=pg_sys::BTGreaterStrategyNumber)
            .all(|strategy| pg_sys::get_opfamily_member(family, input, input, strategy as i16) != Oid::INVALID);
        operators && pg_sys::get_opfamily_proc(family, input, input, ORDER_PROC) != Oid::INVALID
    }
}

/// Adjusts dependencies of members being added to a family: core's are right.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn adjust_members(
    _family: Oid,
    _class: Oid,
    _operators: *mut pg_sys::List,
    _functions: *mut pg_sys::List,
) {
}

/// `amtranslatestrategy`: btree's strategies, which PostgreSQL's comparison types are numbered as.
#[cfg(feature = "pg18")]
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn compare_type(
    strategy: pg_sys::StrategyNumber,
    _family: pg_sys::Oid,
) -> pg_sys::CompareType::Type {
    match strategy {
        1..=5 => pg_sys::CompareType::Type::from(strategy),
        _ => pg_sys::CompareType::COMPARE_INVALID,
    }
}

/// `amtranslatecmptype`
#[cfg(feature = "pg18")]
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn strategy(
    comparison: pg_sys::CompareType::Type,
    _family: pg_sys::Oid,
) -> pg_sys::StrategyNumber {
    match comparison {
        pg_sys::CompareType::COMPARE_LT..=pg_sys::CompareType::COMPARE_GT => comparison as pg_sys::StrategyNumber,
        // InvalidStrategy
        _ => 0,
    }
}
