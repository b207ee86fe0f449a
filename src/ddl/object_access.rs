//! The object access hook: sees every index, table and inheritance link that is created, by whatever path, and refuses
//! what would leave a cass table with a key that is not `cass_key`, or another table with one that is.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

use pgrx::pg_sys::{self, ObjectAccessType, Oid};
use pgrx::{pg_guard, PgRelation};

use super::{alter_table, frame, key_index};
use crate::catalog::primary_key::{self, relation_name, with_index_row};
use crate::catalog::{self, access_method};
use crate::error::Report;

/// OID of the catalog pg_inherits, which pgrx's bindings leave out.
const INHERITS_RELATION_ID: u32 = 2611;

static PREVIOUS: OnceLock<pg_sys::object_access_hook_type> = OnceLock::new();

/// Installs the hook.
pub(super) fn init() {
    // SAFETY: called once a process, from _PG_init.
    unsafe {
        PREVIOUS.get_or_init(|| pg_sys::object_access_hook);
        pg_sys::object_access_hook = Some(object_access);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn object_access(
    access: ObjectAccessType::Type,
    class: Oid,
    object: Oid,
    part: c_int,
    argument: *mut c_void,
) {
    // SAFETY: the arguments are those of the hook; for this kind of access the argument is an ObjectAccessPostAlter.
    unsafe {
        if let Some(Some(previous)) = PREVIOUS.get() {
            pg_sys::ffi::pg_guard_ffi_boundary(|| previous(access, class, object, part, argument));
        }
        match access {
            ObjectAccessType::OAT_POST_CREATE if class == pg_sys::RelationRelationId && part == 0 => created(object),
            ObjectAccessType::OAT_POST_ALTER if class == pg_sys::RelationRelationId && part > 0 => {
                column_altered(object, part);
            }
            ObjectAccessType::OAT_POST_ALTER if class.to_u32() == INHERITS_RELATION_ID && !argument.is_null() => {
                let parent = (*argument.cast::<pg_sys::ObjectAccessPostAlter>()).auxiliary_id;
                check_inheritance(object, parent);
            }
            ObjectAccessType::OAT_DROP if class == pg_sys::RelationRelationId && part == 0 => dropped(object),
            _ => {}
        }
    }
}

/// A relation has been created; its catalog rows are not yet visible, but its relcache entry is there.
fn created(relid: Oid) {
    let Some(cass) = catalog::cass_am_oid() else {
        return;
    };
    // SAFETY: the relation was created by this command and is locked by it.
    let rel = unsafe { PgRelation::with_lock(relid, pg_sys::NoLock as i32) };
    // SAFETY: the relation is open.
    let (kind, method, rewrites) = unsafe {
        let form = &*(*rel.as_ptr()).rd_rel;
        (form.relkind as u8, form.relam, form.relrewrite)
    };
    match kind {
        pg_sys::RELKIND_INDEX => {
            // PostgreSQL does the same as soon as the hook is back.
            // SAFETY: within a command that writes.
            unsafe { pg_sys::CommandCounterIncrement() };
            index_created(relid, method);
        }
        pg_sys::RELKIND_MATVIEW if method == cass => {
            Report::new("0A000", "a materialized view cannot use access method cass")
                .detail("It can have no primary key, which places the rows of a cass table.")
                .hint("Write USING heap, or create a table with CREATE TABLE AS and add its primary key.")
                .raise();
        }
        pg_sys::RELKIND_RELATION if method == cass && rewrites == Oid::INVALID => {
            frame::note_created(relid);
            // pg_upgrade brings no OID for a delta; the first write makes it then.
            // SAFETY: reads a variable of this process.
            if !unsafe { pg_sys::IsBinaryUpgrade } {
                crate::delta::create::create(rel.as_ptr());
            }
        }
        _ => {}
    }
}

/// An index has been created, and the catalogs show it.
fn index_created(index: Oid, method: Oid) {
    let Some((table, primary)) = with_index_row(index, |form| (form.indrelid, form.indisprimary)) else {
        return;
    };
    let is_key = access_method::cass_key_am_oid() == Some(method);
    match (catalog::is_cass_oid(table), is_key) {
        (true, true) if primary => key_index::complete(index, table),
        // The copy that REINDEX CONCURRENTLY makes becomes primary when it takes the old one's place.
        (true, true) if frame::in_reindex() => {}
        (_, true) => refuse_misplaced_key(table),
        (true, false) if primary => {
            Report::new("0A000", format!("the primary key of table \"{}\" must be cass_key", relation_name(table)))
                .detail("The table's access method is cass, and this command would give its key another kind of index.")
                .hint("Add the key by ALTER TABLE ... ADD PRIMARY KEY (...), in a command of its own.")
                .raise();
        }
        (true, false) if method == pg_sys::BRIN_AM_OID => refuse_brin(table),
        _ => {}
    }
}

fn refuse_misplaced_key(table: Oid) -> ! {
    Report::new("0A000", "access method cass_key is for primary keys of cass tables only")
        .detail(format!("The index is on table \"{}\".", relation_name(table)))
        .hint("Use btree.")
        .raise()
}

/// Refuses an index of blocks, which a cass table's row identifiers do not have.
pub(super) fn refuse_brin(table: Oid) -> ! {
    Report::new("0A000", format!("table \"{}\" cannot have a BRIN index", relation_name(table)))
        .detail("A BRIN index summarises blocks of a table, and rows of a cass table do not stay in one.")
        .hint("Use btree, or a clustering column.")
        .raise()
}

/// A column has been altered: perhaps renamed, as the options of the key name its columns; perhaps given another type,
/// which ALTER TABLE refuses for key columns, but ALTER TYPE ... CASCADE brings to the tables of a composite type.
fn column_altered(table: Oid, column: c_int) {
    if !catalog::is_cass_oid(table) {
        return;
    }
    let Some(key) = primary_key::primary_key_of(table) else {
        return;
    };
    let Some(position) = key.attnums.iter().position(|attnum| c_int::from(*attnum) == column) else {
        return;
    };
    if !catalog::is_cass_key_oid(key.index) {
        return;
    }
    // SAFETY: within a command that writes; shows the column as it is now.
    unsafe { pg_sys::CommandCounterIncrement() };
    if column_type(table, column) != column_type(key.index, position as c_int + 1) {
        let name = key.columns.get(position).map_or("", String::as_str);
        alter_table::refuse_column_change(&key, name, "change the type of");
    }
    key_index::follow_rename(key.index, table);
}

/// Type, type modifier and collation of a relation's column.
fn column_type(relid: Oid, column: c_int) -> (Oid, i32, Oid) {
    let (mut type_oid, mut typmod, mut collation) = (Oid::INVALID, -1, Oid::INVALID);
    // SAFETY: a catalog look-up of a column that exists.
    unsafe {
        pg_sys::get_atttypetypmodcoll(relid, column as i16, &mut type_oid, &mut typmod, &mut collation);
    }
    (type_oid, typmod, collation)
}

/// A table has become another's child or partition.
fn check_inheritance(child: Oid, parent: Oid) {
    let table = if catalog::is_cass_oid(child) {
        child
    } else if catalog::is_cass_oid(parent) {
        parent
    } else {
        return;
    };
    let is_partition = catalog::access_method::with_class_row(parent, |form| form.relkind)
        == Some(pg_sys::RELKIND_PARTITIONED_TABLE as _);
    let hint = if is_partition {
        "Partition by the partition key of one cass table, or create the partition USING heap."
    } else {
        "Create the table with LIKE, which copies columns and key without inheriting."
    };
    Report::new(
        "0A000",
        format!("table \"{}\" cannot be part of an inheritance tree or a partition", relation_name(table)),
    )
    .detail("A parent's primary key is no key of access method cass_key.")
    .hint(hint)
    .raise()
}

/// A relation is about to be dropped.
fn dropped(relid: Oid) {
    if catalog::is_cass_key_oid(relid) {
        // SAFETY: a catalog look-up, which gives an invalid OID where nothing is found.
        let table = unsafe { pg_sys::IndexGetRelation(relid, true) };
        frame::note_lost_key(table);
    }
}
