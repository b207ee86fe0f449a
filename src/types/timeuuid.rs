//! `timeuuid`: a version 1 UUID, ordered by its time, then by its low bytes as Cassandra's TimeUUIDType
//! orders them; SQL declarations in sql/types.sql.

use std::cmp::Ordering;
use std::ffi::CStr;

use cass_storage::key::timeuuid_sort_bytes;
use pgrx::pg_sys::{self, Datum, FunctionCallInfo};
use pgrx::{direct_function_call, pg_extern, pg_getarg_datum_raw, Uuid};

use crate::error::Report;

/// The value, if it is of version 1.
fn version_1(uuid: Uuid) -> Uuid {
    if uuid.get(6).is_some_and(|byte| byte >> 4 == 1) {
        return uuid;
    }
    Report::new("22P02", format!("invalid input syntax for type timeuuid: \"{uuid}\""))
        .detail("A timeuuid is a UUID of version 1, which holds a time.")
        .hint("Use type uuid for other UUIDs.")
        .raise()
}

#[pg_extern(sql = false)]
fn timeuuid_in(text: &CStr) -> Uuid {
    // SAFETY: uuid_in takes one C string, and gives a uuid or raises an error.
    let uuid = unsafe { direct_function_call::<Uuid>(pg_sys::uuid_in, &[Some(Datum::from(text.as_ptr()))]) };
    uuid.map_or_else(|| Report::new("XX000", "uuid_in gave no value").raise(), version_1)
}

#[pg_extern(sql = false)]
fn timeuuid_recv(fcinfo: FunctionCallInfo) -> Uuid {
    // SAFETY: PostgreSQL calls a receive function with the message's StringInfo as first argument, which
    // is what uuid_recv takes.
    let uuid = unsafe { direct_function_call::<Uuid>(pg_sys::uuid_recv, &[Some(pg_getarg_datum_raw(fcinfo, 0))]) };
    uuid.map_or_else(|| Report::new("XX000", "uuid_recv gave no value").raise(), version_1)
}

#[pg_extern(sql = false)]
fn timeuuid_from_uuid(uuid: Uuid) -> Uuid {
    version_1(uuid)
}

fn compare(a: &Uuid, b: &Uuid) -> Ordering {
    timeuuid_sort_bytes(a).cmp(&timeuuid_sort_bytes(b))
}

#[pg_extern(sql = false)]
fn timeuuid_lt(a: Uuid, b: Uuid) -> bool {
    compare(&a, &b).is_lt()
}

#[pg_extern(sql = false)]
fn timeuuid_le(a: Uuid, b: Uuid) -> bool {
    compare(&a, &b).is_le()
}

#[pg_extern(sql = false)]
fn timeuuid_ge(a: Uuid, b: Uuid) -> bool {
    compare(&a, &b).is_ge()
}

#[pg_extern(sql = false)]
fn timeuuid_gt(a: Uuid, b: Uuid) -> bool {
    compare(&a, &b).is_gt()
}

#[pg_extern(sql = false)]
fn timeuuid_cmp(a: Uuid, b: Uuid) -> i32 {
    match compare(&a, &b) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }
}
