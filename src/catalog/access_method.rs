//! The access methods `cass` (tables) and `cass_key` (primary keys) of this database, and which relations use them.

use std::cell::Cell;
use std::ffi::CStr;

use pgrx::pg_sys::{self, Oid};
use pgrx::prelude::*;

/// Name of the table access method.
pub const TABLE_ACCESS_METHOD: &CStr = c"cass";
/// Name of the index access method of primary keys.
pub const KEY_ACCESS_METHOD: &CStr = c"cass_key";

/// What a catalog look-up of an access method found, kept until the catalog of access methods changes.
#[derive(Clone, Copy)]
enum Known {
    Unknown,
    Absent,
    Present(Oid),
}

thread_local! {
    static TABLE: Cell<Known> = const { Cell::new(Known::Unknown) };
    static KEY: Cell<Known> = const { Cell::new(Known::Unknown) };
}

/// Registers the callback that forgets the OIDs when access methods are created or dropped.
pub(super) fn init() {
    // SAFETY: called once a process from _PG_init; the callback is a static function.
    unsafe {
        pg_sys::CacheRegisterSyscacheCallback(
            pg_sys::SysCacheIdentifier::AMNAME as i32,
            Some(forget),
            pg_sys::Datum::from(0),
        );
    }
}

/// Cache callback of pg_am. Does nothing that could raise an error.
#[pg_guard]
unsafe extern "C-unwind" fn forget(_argument: pg_sys::Datum, _cache: i32, _hash: u32) {
    TABLE.set(Known::Unknown);
    KEY.set(Known::Unknown);
}

fn look_up(cache: &'static std::thread::LocalKey<Cell<Known>>, find: impl FnOnce() -> Oid) -> Option<Oid> {
    match cache.get() {
        Known::Present(oid) => return Some(oid),
        Known::Absent => return None,
        Known::Unknown => {}
    }
    let oid = find();
    let found = (oid != Oid::INVALID).then_some(oid);
    cache.set(found.map_or(Known::Absent, Known::Present));
    found
}

/// OID of access method `cass`; `None` where this database has not got the extension.
///
/// Needs a running transaction.
pub fn cass_am_oid() -> Option<Oid> {
    // SAFETY: a catalog look-up by name, which raises no error for a missing name.
    look_up(&TABLE, || unsafe { pg_sys::get_table_am_oid(TABLE_ACCESS_METHOD.as_ptr(), true) })
}

/// OID of access method `cass_key`; `None` where this database has not got the extension.
///
/// Needs a running transaction.
pub fn cass_key_am_oid() -> Option<Oid> {
    // SAFETY: a catalog look-up by name, which raises no error for a missing name.
    look_up(&KEY, || unsafe { pg_sys::get_index_am_oid(KEY_ACCESS_METHOD.as_ptr(), true) })
}

/// Whether an open relation is a table of access method `cass`.
///
/// # Safety
/// `rel` is an open relation.
pub unsafe fn is_cass_relation(rel: pg_sys::Relation) -> bool {
    // SAFETY: rd_rel of an open relation points to its pg_class row.
    let form = unsafe { &*(*rel).rd_rel };
    is_table_kind(form.relkind) && cass_am_oid() == Some(form.relam)
}

/// Whether the relation of this OID is a table of access method `cass`; false if there is no such relation.
pub fn is_cass_oid(relid: Oid) -> bool {
    let Some(cass) = cass_am_oid() else {
        return false;
    };
    with_class_row(relid, |form| is_table_kind(form.relkind) && form.relam == cass).unwrap_or(false)
}

/// Whether the relation of this OID is an index of access method `cass_key`; false if there is no such relation.
pub fn is_cass_key_oid(relid: Oid) -> bool {
    let Some(cass_key) = cass_key_am_oid() else {
        return false;
    };
    with_class_row(relid, |form| form.relkind == pg_sys::RELKIND_INDEX as i8 && form.relam == cass_key).unwrap_or(false)
}

fn is_table_kind(relkind: i8) -> bool {
    [pg_sys::RELKIND_RELATION, pg_sys::RELKIND_MATVIEW].contains(&(relkind as u8))
}

/// Runs `read` on the relation's row of pg_class; `None` if there is no such relation.
pub fn with_class_row<R>(relid: Oid, read: impl FnOnce(&pg_sys::FormData_pg_class) -> R) -> Option<R> {
    // SAFETY: the tuple stays pinned until it is released, and GETSTRUCT of a pg_class row is a FormData_pg_class.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::RELOID as i32, relid.into());
        if tuple.is_null() {
            return None;
        }
        let result = read(&*pg_sys::GETSTRUCT(tuple).cast());
        pg_sys::ReleaseSysCache(tuple);
        Some(result)
    }
}
