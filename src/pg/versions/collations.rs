//! Collations (`pg_locale.h`).

use pgrx::pg_sys;
use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;

// Left out of pgrx's bindings.
#[cfg(not(feature = "pg18"))]
unsafe extern "C-unwind" {
    fn lc_collate_is_c(collation: pg_sys::Oid) -> bool;
}

// Left out of pgrx's bindings.
#[cfg(feature = "pg18")]
unsafe extern "C-unwind" {
    fn pg_newlocale_from_collation(collation: pg_sys::Oid) -> *const Locale;
}

/// The beginning of `pg_locale_struct`.
#[cfg(feature = "pg18")]
#[repr(C)]
struct Locale {
    _provider: std::ffi::c_char,
    _deterministic: bool,
    collate_is_c: bool,
}

/// Whether text of this collation is ordered by its bytes (C, POSIX, ucs_basic, or a database default that is one).
pub fn orders_by_bytes(collation: pg_sys::Oid) -> bool {
    if collation == pg_sys::InvalidOid {
        return false;
    }
    // SAFETY: a catalog look-up of a column's collation; the boundary turns an error into an unwinding one. What is found stays for
    // the life of the process.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        return pg_guard_ffi_boundary(|| lc_collate_is_c(collation));
        #[cfg(feature = "pg18")]
        return (*pg_guard_ffi_boundary(|| pg_newlocale_from_collation(collation))).collate_is_c;
    }
}
