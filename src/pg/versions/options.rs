//! How options of relations are parsed (`access/reloptions.h`).

use pgrx::pg_sys;
use std::ffi::{c_int, CStr};

/// Says at which offset of the parsed struct the value of an option stands.
pub fn element(name: &'static CStr, opttype: pg_sys::relopt_type::Type, offset: usize) -> pg_sys::relopt_parse_elt {
    pg_sys::relopt_parse_elt {
        optname: name.as_ptr(),
        opttype,
        offset: offset as c_int,
        // 18 can also note whether an option was given.
        #[cfg(feature = "pg18")]
        isset_offset: 0,
    }
}
