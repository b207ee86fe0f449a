//! The options of a `WITH (...)` or `SET (...)`, split between the table and its primary key.

use pgrx::pg_sys;

use super::nodes;
use crate::catalog::identifier::owned;
use crate::catalog::options::{self, NAMES};
use crate::error::Report;

/// Whether the option is one of a cass table's own.
fn is_own(name: &str) -> bool {
    NAMES.contains(&name)
}

/// Whether PostgreSQL keeps the option with the table.
fn is_core(name: &str) -> bool {
    const CORE: [&str; 7] = [
        "fillfactor",
        "oids",
        "parallel_workers",
        "toast_tuple_target",
        "user_catalog_table",
        "vacuum_index_cleanup",
        "vacuum_truncate",
    ];
    name.starts_with("autovacuum_") || name.starts_with("log_autovacuum_") || CORE.contains(&name)
}

/// Takes the cass table's own options out of a list of DefElem; gives what stays, and them.
///
/// An option that neither PostgreSQL nor cass knows is an error.
///
/// # Safety
/// `list` is a list of DefElem.
pub unsafe fn split(list: *mut pg_sys::List) -> (*mut pg_sys::List, Vec<(String, String)>) {
    let mut core = Vec::new();
    let mut own = Vec::new();
    // SAFETY: the caller vouches for the list.
    for option in unsafe { nodes::members::<pg_sys::DefElem>(list) } {
        // SAFETY: a member of the list; names are NUL-terminated.
        let (name, namespaced) = unsafe { (owned((*option).defname), !(*option).defnamespace.is_null()) };
        if namespaced || is_core(&name) {
            core.push(option);
        } else if is_own(&name) {
            own.push(option);
        } else {
            refuse_unknown(&name);
        }
    }
    // SAFETY: the members are DefElem.
    let own = unsafe { options::pairs_of(nodes::list(own)) };
    (nodes::list(core), own)
}

/// The options of a primary key's own `WITH`, all of which must be a cass table's own.
///
/// # Safety
/// `list` is a list of DefElem.
pub unsafe fn of_constraint(list: *mut pg_sys::List) -> Vec<(String, String)> {
    // SAFETY: the caller vouches for the list.
    let pairs = unsafe { options::pairs_of(list) };
    if let Some((name, _)) = pairs.iter().find(|(name, _)| !is_own(name)) {
        refuse_unknown(name);
    }
    pairs
}

/// The cass table's own options among those of a cloned index.
///
/// # Safety
/// `list` is a list of DefElem.
pub unsafe fn own_of(list: *mut pg_sys::List) -> Vec<(String, String)> {
    // SAFETY: the caller vouches for the list.
    let mut pairs = unsafe { options::pairs_of(list) };
    pairs.retain(|(name, _)| is_own(name));
    pairs
}

fn refuse_unknown(name: &str) -> ! {
    Report::new("22023", format!("unrecognized parameter \"{name}\""))
        .hint(format!("The options of a cass table are {}.", NAMES.join(", ")))
        .raise()
}

/// Joins the options given to a table with those given to its primary key; one given to both is an error.
pub fn join(mut table: Vec<(String, String)>, key: Vec<(String, String)>) -> Vec<(String, String)> {
    if let Some((name, _)) = key.iter().find(|(name, _)| options::value(&table, name).is_some()) {
        Report::new("42601", format!("parameter \"{name}\" specified more than once"))
            .hint("Give it either to the table or to its primary key.")
            .raise();
    }
    table.extend(key);
    table
}

/// Options as a list of DefElem.
pub fn to_list(pairs: &[(String, String)]) -> *mut pg_sys::List {
    nodes::list(pairs.iter().map(|(name, value)| {
        // SAFETY: makes nodes in the current memory context.
        unsafe {
            let argument = pg_sys::makeString(nodes::c_string(value));
            pg_sys::makeDefElem(nodes::c_string(name), argument.cast(), -1)
        }
    }))
}

/// Options as SQL: `WITH (partition_key = 'a, b')`, with that keyword; nothing if there are none.
pub fn to_sql(keyword: &str, pairs: &[(String, String)]) -> String {
    if pairs.is_empty() {
        return String::new();
    }
    let options: Vec<String> = pairs.iter().map(|(name, value)| format!("{name} = {}", quote_literal(value))).collect();
    format!(" {keyword} ({})", options.join(", "))
}

/// A text as an SQL literal.
pub fn quote_literal(text: &str) -> String {
    // SAFETY: the argument is NUL-terminated; the result is a palloc'ed C string.
    unsafe { owned(pg_sys::quote_literal_cstr(nodes::c_string(text))) }
}

/// The error of options without a primary key that could carry them.
pub fn refuse_without_key(table: &str, pairs: &[(String, String)]) -> ! {
    let (name, value) = pairs.first().map_or(("partition_key", ""), |(name, value)| (name, value));
    Report::new("42P16", format!("option \"{name}\" needs a primary key, which table \"{table}\" has not got"))
        .detail("The options of a cass table are kept with its primary key.")
        .hint(format!(
            "Add the key with its options: ALTER TABLE {table} ADD PRIMARY KEY (...) WITH ({name} = {}).",
            quote_literal(value)
        ))
        .raise()
}
