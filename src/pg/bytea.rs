//! Rust bytes as PostgreSQL varlena values and back.

use pgrx::pg_sys;

/// Bytes of a varlena's header in its long form.
pub const HEADER: usize = 4;

/// Copies `bytes` into a new varlena in the current memory context.
pub fn from_bytes(bytes: &[u8]) -> pg_sys::Datum {
    let size = bytes.len() + HEADER;
    // SAFETY: palloc returns at least `size` bytes (or raises), which holds the header and all of `bytes`.
    unsafe {
        let target = pg_sys::palloc(size).cast::<u8>();
        pgrx::set_varsize_4b(target.cast(), size as i32);
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), target.add(HEADER), bytes.len());
        pg_sys::Datum::from(target)
    }
}

/// The bytes of a plain (neither compressed nor external) varlena.
///
/// # Safety
/// `datum` points to such a varlena, which outlives `'a` and is not written meanwhile.
pub unsafe fn bytes_of<'a>(datum: pg_sys::Datum) -> &'a [u8] {
    let varlena = datum.cast_mut_ptr::<pg_sys::varlena>();
    // SAFETY: promised by the caller.
    unsafe { std::slice::from_raw_parts(pgrx::vardata_any(varlena).cast::<u8>(), pgrx::varsize_any_exhdr(varlena)) }
}
