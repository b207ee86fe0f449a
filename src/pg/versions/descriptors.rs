//! Descriptions of rows (`tupdesc.h`).

use pgrx::pg_sys;

/// The columns of a descriptor, dropped ones too.
///
/// # Safety
/// `descriptor` is one, which outlives `'a` and is not written meanwhile.
pub unsafe fn attributes<'a>(descriptor: pg_sys::TupleDesc) -> &'a [pg_sys::FormData_pg_attribute] {
    // SAFETY: promised by the caller; a descriptor has `natts` attributes, one behind the other.
    unsafe {
        let count = usize::try_from((*descriptor).natts).unwrap_or(0);
        std::slice::from_raw_parts(first(descriptor), count)
    }
}

/// Changes a column of a descriptor.
///
/// # Safety
/// `descriptor` is one that nobody else uses, and has a column at `position`, counted from 0.
pub unsafe fn change(
    descriptor: pg_sys::TupleDesc,
    position: usize,
    change: impl FnOnce(&mut pg_sys::FormData_pg_attribute),
) {
    // SAFETY: promised by the caller.
    unsafe {
        change(&mut *first(descriptor).add(position));
        #[cfg(feature = "pg18")]
        pg_sys::populate_compact_attribute(descriptor, position as i32);
    }
}

/// # Safety
/// `descriptor` is one.
unsafe fn first(descriptor: pg_sys::TupleDesc) -> *mut pg_sys::FormData_pg_attribute {
    // SAFETY: promised by the caller. 18 keeps the attributes behind an array of short forms (`TupleDescAttrAddress`).
    unsafe {
        #[cfg(not(feature = "pg18"))]
        return (*descriptor).attrs.as_mut_ptr();
        #[cfg(feature = "pg18")]
        return (&raw mut (*descriptor).compact_attrs)
            .cast::<pg_sys::CompactAttribute>()
            .add(usize::try_from((*descriptor).natts).unwrap_or(0))
            .cast();
    }
}
