//! Reloptions of the primary key's index, which are the options of its table.

use std::ffi::{c_char, c_int, CStr};
use std::mem::{offset_of, size_of};
use std::sync::OnceLock;

use pgrx::pg_sys::{self, Datum};
use pgrx::prelude::*;

use crate::catalog::{identifier, Compaction, InsertMode};
use crate::error::Report;
use crate::pg::versions::options::element;

/// Parsed options, as PostgreSQL keeps them in a relation's `rd_options`; strings are offsets from its start.
#[repr(C)]
struct Parsed {
    varlena_header: i32,
    partition_key: c_int,
    clustering_order: c_int,
    default_time_to_live: c_int,
    compaction: c_int,
    insert: c_int,
}

static KIND: OnceLock<pg_sys::relopt_kind::Type> = OnceLock::new();

/// Makes the options known to PostgreSQL.
pub(super) fn init() {
    KIND.get_or_init(|| {
        let exclusive = pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE;
        let shared = pg_sys::ShareUpdateExclusiveLock as pg_sys::LOCKMODE;
        // SAFETY: called once a process, from _PG_init; names and descriptions are static.
        unsafe {
            let kind = pg_sys::add_reloption_kind();
            let string = |name: &'static CStr, description: &'static CStr, validate, lock| {
                pg_sys::add_string_reloption(
                    kind,
                    name.as_ptr(),
                    description.as_ptr(),
                    std::ptr::null(),
                    Some(validate),
                    lock,
                );
            };
            string(c"partition_key", c"leading columns of the primary key that place a row", check_list, exclusive);
            string(c"clustering_order", c"order of rows within a partition", check_list, exclusive);
            string(c"compaction", c"which segments VACUUM merges", check_compaction, shared);
            string(c"insert", c"what an INSERT does to the columns it does not name", check_insert, shared);
            pg_sys::add_int_reloption(
                kind,
                c"default_time_to_live".as_ptr(),
                c"seconds until a row expires, 0 for never".as_ptr(),
                0,
                0,
                i32::MAX,
                shared,
            );
            kind
        }
    });
}

/// `amoptions`: parses an index's reloptions; an unknown one is PostgreSQL's error.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn parse(reloptions: Datum, validate: bool) -> *mut pg_sys::bytea {
    use pg_sys::relopt_type::{RELOPT_TYPE_INT, RELOPT_TYPE_STRING};
    let Some(kind) = KIND.get() else {
        return std::ptr::null_mut();
    };
    let elements = [
        element(c"partition_key", RELOPT_TYPE_STRING, offset_of!(Parsed, partition_key)),
        element(c"clustering_order", RELOPT_TYPE_STRING, offset_of!(Parsed, clustering_order)),
        element(c"default_time_to_live", RELOPT_TYPE_INT, offset_of!(Parsed, default_time_to_live)),
        element(c"compaction", RELOPT_TYPE_STRING, offset_of!(Parsed, compaction)),
        element(c"insert", RELOPT_TYPE_STRING, offset_of!(Parsed, insert)),
    ];
    // SAFETY: the offsets are those of the struct whose size is passed; the result is null or such a struct.
    unsafe {
        let parsed = pg_sys::build_reloptions(
            reloptions,
            validate,
            *kind,
            size_of::<Parsed>(),
            elements.as_ptr(),
            elements.len() as c_int,
        );
        if validate && !parsed.is_null() && (*parsed.cast::<Parsed>()).default_time_to_live != 0 {
            Report::new("0A000", "default_time_to_live other than 0 is not supported yet")
                .hint("Delete old rows, or drop whole tables by time.")
                .raise();
        }
        parsed.cast()
    }
}

/// Text of an option's value.
///
/// # Safety
/// `value` is null or NUL-terminated.
unsafe fn text(value: *const c_char) -> Option<String> {
    // SAFETY: the caller vouches for `value`.
    (!value.is_null()).then(|| unsafe { identifier::owned(value) })
}

/// Checks that a value is a list of identifiers. Whether they name the right columns is checked against the key.
#[pg_guard]
unsafe extern "C-unwind" fn check_list(value: *const c_char) {
    // SAFETY: PostgreSQL passes the value, or null for a missing default.
    let Some(value) = (unsafe { text(value) }) else {
        return;
    };
    if let Err(reason) = identifier::parse_list(&value) {
        Report::new("22023", format!("invalid list of columns: \"{value}\""))
            .detail(format!("It cannot be read: {reason}."))
            .hint("Write column names separated by commas, as in SQL.")
            .raise();
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn check_compaction(value: *const c_char) {
    // SAFETY: as in check_list.
    let Some(value) = (unsafe { text(value) }) else {
        return;
    };
    if Compaction::from_name(&value).is_none() {
        let known = ["size_tiered", "leveled", "time_window"].contains(&value.as_str());
        let (sqlstate, message) = if known {
            ("0A000", format!("compaction \"{value}\" is not supported yet"))
        } else {
            ("22023", format!("invalid value for option \"compaction\": \"{value}\""))
        };
        Report::new(sqlstate, message).hint("The only policy is \"unified\".").raise();
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn check_insert(value: *const c_char) {
    // SAFETY: as in check_list.
    let Some(value) = (unsafe { text(value) }) else {
        return;
    };
    if InsertMode::from_name(&value).is_none() {
        Report::new("22023", format!("invalid value for option \"insert\": \"{value}\""))
            .hint("Valid values are \"cells\" (keep the columns that an INSERT does not name) and \"row\" (replace the whole row).")
            .raise();
    }
}
