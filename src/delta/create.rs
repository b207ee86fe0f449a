//! Making a table's delta.

use crate::pg;
use crate::pg::versions::tables::btree_info;
use crate::pg::versions::{descriptors, tables::btree_create};
use pgrx::pg_sys;
use std::ffi::CString;

/// The delta's name: it follows the table's OID, so that renames do not touch it.
pub fn name_of(table: pg_sys::Oid) -> CString {
    // A decimal number holds no NUL byte, so the conversion cannot fail.
    CString::new(format!("cass_delta_{}", table.to_u32())).unwrap_or_default()
}

/// The schema deltas live in: that of TOAST tables, so that dumps and publications pass them by.
pub fn namespace_of(table: pg_sys::Relation) -> pg_sys::Oid {
    // SAFETY: the caller holds `table` open, so its pg_class row is there.
    unsafe {
        if pg_sys::isTempOrTempToastNamespace((*(*table).rd_rel).relnamespace) {
            pg_sys::GetTempToastNamespace()
        } else {
            pg_sys::Oid::from(pg_sys::PG_TOAST_NAMESPACE)
        }
    }
}

/// Makes the delta of `table`: a heap of relkind 't' with `relrewrite` = the table's OID (logical decoding then skips it),
/// its two btrees, and an internal dependency, so that it goes with the table.
pub fn create(table: pg_sys::Relation) -> pg_sys::Oid {
    pg::scratch::in_scratch(|| {
        // SAFETY: `table` is open; all structures handed over are made here, in memory that outlives the calls.
        unsafe {
            let class = (*table).rd_rel;
            let table_oid = (*table).rd_id;
            let name = name_of(table_oid);
            let delta = pg_sys::heap_create_with_catalog(
                name.as_ptr(),
                namespace_of(table),
                (*class).reltablespace,
                pg_sys::InvalidOid,
                pg_sys::InvalidOid,
                pg_sys::InvalidOid,
                pg_sys::Oid::from(pg_sys::BOOTSTRAP_SUPERUSERID),
                pg_sys::HEAP_TABLE_AM_OID,
                columns(),
                std::ptr::null_mut(),
                pg_sys::RELKIND_TOASTVALUE as std::ffi::c_char,
                (*class).relpersistence,
                false,
                false,
                pg_sys::OnCommitAction::ONCOMMIT_NOOP,
                pg_sys::Datum::from(0),
                false,
                true,
                true,
                table_oid,
                std::ptr::null_mut(),
            );
            pg_sys::CommandCounterIncrement();
            let heap = pg_sys::table_open(delta, pg_sys::AccessExclusiveLock as i32);
            index(heap, "key", &[1, 2], &[pg_sys::INT8OID, pg_sys::BYTEAOID], true);
            index(heap, "row", &[3], &[pg_sys::INT8OID], false);
            pg_sys::table_close(heap, pg_sys::NoLock as i32);
            let depender =
                pg_sys::ObjectAddress { classId: pg_sys::RelationRelationId, objectId: delta, objectSubId: 0 };
            let referenced =
                pg_sys::ObjectAddress { classId: pg_sys::RelationRelationId, objectId: table_oid, objectSubId: 0 };
            pg_sys::recordDependencyOn(&depender, &referenced, pg_sys::DependencyType::DEPENDENCY_INTERNAL);
            pg_sys::CommandCounterIncrement();
            delta
        }
    })
}

unsafe fn columns() -> pg_sys::TupleDesc {
    const COLUMNS: [(&std::ffi::CStr, pg_sys::Oid); 5] = [
        (c"storage_id", pg_sys::INT8OID),
        (c"key", pg_sys::BYTEAOID),
        (c"row_id", pg_sys::INT8OID),
        (c"kind", pg_sys::INT2OID),
        (c"row", pg_sys::BYTEAOID),
    ];
    // SAFETY: the descriptor has room for the five columns that are then filled in.
    unsafe {
        let descriptor = pg_sys::CreateTemplateTupleDesc(COLUMNS.len() as i32);
        for (position, (name, type_oid)) in COLUMNS.iter().enumerate() {
            let attnum = position as i16 + 1;
            pg_sys::TupleDescInitEntry(descriptor, attnum, name.as_ptr(), *type_oid, -1, 0);
            descriptors::change(descriptor, position, |attribute| {
                attribute.attstorage = b'p' as std::ffi::c_char;
                attribute.attnotnull = true;
            });
        }
        descriptor
    }
}

unsafe fn index(heap: pg_sys::Relation, suffix: &str, columns: &[i16], types: &[pg_sys::Oid], unique: bool) {
    // SAFETY: `heap` is open with an exclusive lock; arrays live to the end of the call.
    unsafe {
        let name = std::ffi::CStr::from_ptr((*(*heap).rd_rel).relname.data.as_ptr()).to_string_lossy();
        let name = CString::new(format!("{name}_{suffix}")).unwrap_or_default();
        let info = btree_info(columns.len(), unique);
        let mut names: *mut pg_sys::List = std::ptr::null_mut();
        let mut classes = Vec::with_capacity(columns.len());
        for (column, type_oid) in columns.iter().zip(types) {
            let info_columns = (*info).ii_IndexAttrNumbers.as_mut_ptr();
            *info_columns.add(classes.len()) = *column;
            let attribute = &descriptors::attributes((*heap).rd_att)[*column as usize - 1];
            names = pg_sys::lappend(names, attribute.attname.data.as_ptr().cast_mut().cast());
            classes.push(pg_sys::GetDefaultOpClass(*type_oid, pg_sys::BTREE_AM_OID));
        }
        btree_create(heap, &name, info, names, &classes);
    }
}
