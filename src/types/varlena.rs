//! Reading and making PostgreSQL's values of variable length.

use std::ops::Deref;

use pgrx::pg_sys;

/// The bytes of a varlena value, detoasted where needed; a detoasted copy is freed with it.
pub(super) struct Varlena<'a> {
    bytes: &'a [u8],
    copy: *mut pg_sys::varlena,
}

impl Varlena<'_> {
    /// # Safety
    /// `datum` is a live value of a type of variable length, and stays so while the result is used.
    pub(super) unsafe fn new(datum: pg_sys::Datum) -> Self {
        let original = datum.cast_mut_ptr::<pg_sys::varlena>();
        // SAFETY: the caller vouches for the value; a copy made by detoasting is freed in `drop` only.
        unsafe {
            let plain =
                pgrx::varatt_is_4b_u(original) || (pgrx::varatt_is_1b(original) && !pgrx::varatt_is_1b_e(original));
            let value = if plain { original } else { pg_sys::pg_detoast_datum_packed(original) };
            let bytes =
                std::slice::from_raw_parts(pgrx::vardata_any(value).cast::<u8>(), pgrx::varsize_any_exhdr(value));
            Self { bytes, copy: if value == original { std::ptr::null_mut() } else { value } }
        }
    }
}

impl Deref for Varlena<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

impl Drop for Varlena<'_> {
    fn drop(&mut self) {
        if !self.copy.is_null() {
            // SAFETY: the copy was allocated by detoasting in `new` and nothing else holds it.
            unsafe { pg_sys::pfree(self.copy.cast()) };
        }
    }
}

/// A value of variable length with these bytes, in the current memory context.
pub(super) fn make_varlena(bytes: &[u8]) -> pg_sys::Datum {
    let size = bytes.len() + pg_sys::VARHDRSZ;
    // SAFETY: the allocation has room for header and bytes; palloc raises an error rather than give less.
    unsafe {
        let value = pg_sys::palloc(size).cast::<pg_sys::varlena>();
        pgrx::set_varsize_4b(value, size as i32);
        let data = value.cast::<u8>().add(pg_sys::VARHDRSZ);
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), data, bytes.len());
        value.into()
    }
}

/// A value of fixed length passed by reference with these bytes, in the current memory context.
pub(super) fn make_fixed(bytes: &[u8]) -> pg_sys::Datum {
    // SAFETY: the allocation has room for the bytes; palloc raises an error rather than give less.
    unsafe {
        let value = pg_sys::palloc(bytes.len()).cast::<u8>();
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), value, bytes.len());
        value.into()
    }
}
