//! CREATE TABLE and CREATE TABLE AS, and the index statements that they are made of.

use std::ffi::CStr;

use pgrx::pg_sys::{self, ObjectType};

use super::frame::{self, Outcome, Statement};
use super::utility::{Call, Remainder};
use super::{key_index, nodes, option_list, publication};
use crate::catalog::access_method::{KEY_ACCESS_METHOD, TABLE_ACCESS_METHOD};
use crate::catalog::identifier::{owned, quote};
use crate::catalog::{self, primary_key};
use crate::error::Report;

/// Whether a statement that names this access method, or none, makes a cass table.
///
/// # Safety
/// `name` is null or NUL-terminated.
unsafe fn names_cass(name: *const std::ffi::c_char) -> bool {
    // SAFETY: the caller vouches for `name`; the setting is a C string of the server or null.
    unsafe {
        let name = if name.is_null() { pg_sys::default_table_access_method } else { name.cast_mut() };
        !name.is_null() && CStr::from_ptr(name) == TABLE_ACCESS_METHOD
    }
}

/// CREATE TABLE.
pub(super) fn create(call: &mut Call) -> Remainder {
    let statement: *mut pg_sys::CreateStmt = call.take_copy();
    // SAFETY: the hook dispatches by the node's tag.
    let options = unsafe {
        // A partitioned table has no access method, whatever the default is.
        if !(*statement).partspec.is_null() || !names_cass((*statement).accessMethod) {
            return Remainder::Run;
        }
        check_logged((*statement).relation);
        let (rest, options) = option_list::split((*statement).options);
        (*statement).options = rest;
        options
    };
    frame::begin(Statement::CreateTable, options, report_missing_key);
    Remainder::RunFrame
}

/// CREATE TABLE AS, SELECT INTO.
pub(super) fn create_as(call: &mut Call) -> Remainder {
    let statement: *mut pg_sys::CreateTableAsStmt = call.take_copy();
    // SAFETY: the hook dispatches by the node's tag; a CREATE TABLE AS has an INTO clause.
    let options = unsafe {
        let into = (*statement).into;
        if (*statement).objtype != ObjectType::OBJECT_TABLE || !names_cass((*into).accessMethod) {
            return Remainder::Run;
        }
        check_logged((*into).rel);
        let (rest, options) = option_list::split((*into).options);
        (*into).options = rest;
        if !options.is_empty() {
            option_list::refuse_without_key(&quote(&owned((*(*into).rel).relname)), &options);
        }
        options
    };
    frame::begin(Statement::CreateTable, options, report_missing_key);
    Remainder::RunFrame
}

/// Refuses UNLOGGED.
///
/// # Safety
/// `relation` is a valid node.
unsafe fn check_logged(relation: *mut pg_sys::RangeVar) {
    // SAFETY: the caller vouches for the node.
    unsafe {
        if (*relation).relpersistence as u8 == pg_sys::RELPERSISTENCE_UNLOGGED {
            refuse_unlogged(&owned((*relation).relname));
        }
    }
}

/// Refuses a table whose files a crash empties.
pub(super) fn refuse_unlogged(table: &str) -> ! {
    Report::new("0A000", format!("cass table \"{}\" cannot be unlogged", table))
        .detail("A crash empties an unlogged table's files, and what tells of its segments would stay.")
        .hint("Leave UNLOGGED out, or use TEMPORARY for data that need not last.")
        .raise()
}

/// Says what a cass table without a primary key is; options that a key should have taken are an error.
fn report_missing_key(outcome: Outcome) {
    let Some(table) = outcome.created else { return };
    publication::warn_of_publications(table);
    if primary_key::primary_key_of(table).is_some() {
        return;
    }
    let name = quote(&primary_key::relation_name(table));
    if !outcome.options.is_empty() {
        option_list::refuse_without_key(&name, &outcome.options);
    }
    unplaced_notice(&name);
}

/// Says that rows are kept unplaced.
pub(super) fn unplaced_notice(name: &str) {
    Report::new("00000", format!("table {name} has no primary key yet, so its rows are kept unplaced and unchecked"))
        .hint(format!("Place them with ALTER TABLE {name} ADD PRIMARY KEY (...) WITH (partition_key = '...')."))
        .notice();
}

/// CREATE INDEX, also as the part of CREATE TABLE that makes the primary key's index.
pub(super) fn create_index(call: &mut Call) -> Remainder {
    if !call.is_part() {
        return Remainder::Run;
    }
    let statement: *mut pg_sys::IndexStmt = call.take_copy();
    // SAFETY: the hook dispatches by the node's tag; names are C strings.
    unsafe {
        if !(*statement).primary {
            return Remainder::Run;
        }
        let Some(table) = nodes::find_relation((*statement).relation) else {
            return Remainder::Run;
        };
        let method = (*statement).accessMethod;
        let is_key = !method.is_null() && CStr::from_ptr(method) == KEY_ACCESS_METHOD;
        if catalog::is_cass_oid(table) {
            make_key(statement, table, is_key);
        } else if is_key {
            make_btree(statement);
        }
    }
    Remainder::Run
}

/// Makes the primary key of a cass table, which may be cloned from another table's (LIKE INCLUDING INDEXES).
///
/// # Safety
/// `statement` is an IndexStmt in memory of our own.
unsafe fn make_key(statement: *mut pg_sys::IndexStmt, table: pg_sys::Oid, clones_key: bool) {
    // SAFETY: the caller vouches for the node; the members of its lists have their fixed kinds.
    unsafe {
        let given = frame::take_options(table);
        let options = if (*statement).transformed {
            let mut options = if clones_key { option_list::own_of((*statement).options) } else { Vec::new() };
            // The layout of a key is one whole: options of the new table replace both of the old one's.
            if given.iter().any(|(name, _)| key_index::shapes_key(name)) {
                options.retain(|(name, _)| !key_index::shapes_key(name));
            }
            options.retain(|(name, _)| catalog::options::value(&given, name).is_none());
            option_list::join(given, options)
        } else {
            option_list::join(given, option_list::of_constraint((*statement).options))
        };
        key_index::check_declaration((*statement).deferrable, !(*statement).indexIncludingParams.is_null());
        for column in nodes::members::<pg_sys::IndexElem>((*statement).indexParams) {
            let name = owned((*column).name);
            key_index::check_named_column(table, &name);
            reset_order(column);
        }
        (*statement).accessMethod = nodes::c_string(&KEY_ACCESS_METHOD.to_string_lossy());
        (*statement).options = option_list::to_list(&options);
    }
}

/// Makes a primary key cloned from a cass table's into what a heap table has.
///
/// # Safety
/// `statement` is an IndexStmt in memory of our own.
unsafe fn make_btree(statement: *mut pg_sys::IndexStmt) {
    // SAFETY: the caller vouches for the node.
    unsafe {
        for column in nodes::members::<pg_sys::IndexElem>((*statement).indexParams) {
            reset_order(column);
        }
        (*statement).accessMethod = nodes::c_string("btree");
        (*statement).options = std::ptr::null_mut();
    }
}

/// Forgets a column's operator class and order: a primary key has the default of both.
///
/// # Safety
/// `column` is an IndexElem in memory of our own.
unsafe fn reset_order(column: *mut pg_sys::IndexElem) {
    // SAFETY: the caller vouches for the node.
    unsafe {
        (*column).opclass = std::ptr::null_mut();
        (*column).ordering = pg_sys::SortByDir::SORTBY_DEFAULT;
        (*column).nulls_ordering = pg_sys::SortByNulls::SORTBY_NULLS_DEFAULT;
    }
}
