//! A table's primary key as the catalogs declare it, whatever its index's access method.

use std::ffi::CStr;

use pgrx::pg_sys::{self, Oid};
use pgrx::{PgList, PgRelation};

use super::access_method::with_class_row;
use super::identifier::owned;
use super::table::index_key_attnums;

/// The declaration of a primary key.
#[derive(Clone, Debug)]
pub struct PrimaryKey {
    /// Its index.
    pub index: Oid,
    /// Its constraint.
    pub constraint: Oid,
    /// The constraint's name, which is the index's too.
    pub name: String,
    /// Numbers of its columns, in key order.
    pub attnums: Vec<i16>,
    /// Names of its columns, in key order.
    pub columns: Vec<String>,
    /// Whether it is checked as each row is written.
    pub immediate: bool,
    /// Whether the index has columns beside the key.
    pub includes: bool,
    /// Whether it identifies rows for logical replication by name (REPLICA IDENTITY USING INDEX).
    pub replica_identity: bool,
}

/// The primary key of a table that the caller has locked.
pub fn primary_key_of(table: Oid) -> Option<PrimaryKey> {
    // SAFETY: the caller holds a lock on the table, so it stays open-able; the list is a copy.
    let indexes: Vec<Oid> = unsafe {
        let rel = PgRelation::with_lock(table, pg_sys::NoLock as i32);
        PgList::<Oid>::from_pg(pg_sys::RelationGetIndexList(rel.as_ptr())).iter_oid().collect()
    };
    indexes.into_iter().find_map(|index| read(table, index))
}

/// The index as a primary key, if it is one.
fn read(table: Oid, index: Oid) -> Option<PrimaryKey> {
    let (primary, immediate, includes, replica_identity) = with_index_row(index, |form| {
        (form.indisprimary, form.indimmediate, form.indnatts > form.indnkeyatts, form.indisreplident)
    })?;
    if !primary {
        return None;
    }
    let attnums = index_key_attnums(index);
    // SAFETY: catalog look-ups by OID and column number.
    let (constraint, name) = unsafe {
        let constraint = pg_sys::get_index_constraint(index);
        (constraint, owned(pg_sys::get_constraint_name(constraint)))
    };
    Some(PrimaryKey {
        index,
        constraint,
        name,
        columns: attnums.iter().map(|attnum| column_name(table, *attnum)).collect(),
        attnums,
        immediate,
        includes,
        replica_identity,
    })
}

/// The name of a table's column; empty if there is no such column.
pub fn column_name(table: Oid, attnum: i16) -> String {
    // SAFETY: a catalog look-up; with missing_ok it gives null where nothing is found.
    unsafe { owned(pg_sys::get_attname(table, attnum, true)) }
}

/// Runs `read` on the index's row of pg_index; `None` if there is no such index.
pub fn with_index_row<R>(index: Oid, read: impl FnOnce(&pg_sys::FormData_pg_index) -> R) -> Option<R> {
    // SAFETY: the tuple stays pinned until it is released, and GETSTRUCT of a pg_index row is a FormData_pg_index.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::INDEXRELID as i32, index.into());
        if tuple.is_null() {
            return None;
        }
        let result = read(&*pg_sys::GETSTRUCT(tuple).cast());
        pg_sys::ReleaseSysCache(tuple);
        Some(result)
    }
}

/// A relation's name, without its schema.
pub fn relation_name(relid: Oid) -> String {
    with_class_row(relid, |form| {
        // SAFETY: relname of a catalog row is NUL-terminated.
        unsafe { CStr::from_ptr(form.relname.data.as_ptr()) }.to_string_lossy().into_owned()
    })
    .unwrap_or_default()
}

/// A relation's name as SQL, with its schema, quoted where needed.
pub fn qualified_name(relid: Oid) -> String {
    let schema = with_class_row(relid, |form| form.relnamespace).unwrap_or(Oid::INVALID);
    // SAFETY: a catalog look-up, whose result is null or a palloc'ed C string.
    let schema = unsafe { owned(pg_sys::get_namespace_name(schema)) };
    format!("{}.{}", super::identifier::quote(&schema), super::identifier::quote(&relation_name(relid)))
}
