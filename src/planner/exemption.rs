//! Statements whose reads are never refused, whatever they read.

use std::ffi::CStr;

use pgrx::pg_sys;

/// Whether the query that is being planned is of such a statement: of ALTER TABLE, which checks a new foreign key by a
/// join, of a check of a foreign key, of an extension's script, of pg_dump.
pub fn is_exempt() -> bool {
    // SAFETY: plain variables of the backend; InNoForceRLSOperation reads one.
    unsafe {
        crate::ddl::in_alter_table() || pg_sys::InNoForceRLSOperation() || pg_sys::creating_extension || is_dump()
    }
}

/// Whether the session is pg_dump's, which reads whole tables by SELECT where it cannot use COPY (`--inserts`).
fn is_dump() -> bool {
    // SAFETY: the setting is null or a C string.
    unsafe {
        !pg_sys::application_name.is_null()
            && matches!(CStr::from_ptr(pg_sys::application_name).to_bytes(), b"pg_dump" | b"pg_dumpall")
    }
}
