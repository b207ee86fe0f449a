//! Statements whose reads are never refused, whatever they read.

use std::cell::Cell;
use std::ffi::CStr;

use pgrx::pg_sys;

thread_local! {
    /// Depth of calls of [`exempt`].
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Runs `work` with nothing refused: for commands of the server that read tables by queries of their own, such as
/// ALTER TABLE, which checks a new foreign key by a join.
pub fn exempt<R>(work: impl FnOnce() -> R) -> R {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            DEPTH.set(DEPTH.get().saturating_sub(1));
        }
    }
    DEPTH.set(DEPTH.get() + 1);
    let _leave = Leave;
    work()
}

/// Whether the query that is being planned is of such a statement.
pub fn is_exempt() -> bool {
    // SAFETY: plain variables of the backend; InNoForceRLSOperation reads one.
    unsafe {
        DEPTH.get() > 0
            || pg_sys::InNoForceRLSOperation()
            || pg_sys::creating_extension
            || is_dump()
    }
}

/// Whether the session is pg_dump's, which reads whole tables by SELECT where it cannot use COPY (`--inserts`).
fn is_dump() -> bool {
    // SAFETY: the setting is null or a C string.
    unsafe {
        !pg_sys::application_name.is_null()
            && matches!(
                CStr::from_ptr(pg_sys::application_name).to_bytes(),
                b"pg_dump" | b"pg_dumpall"
            )
    }
}
