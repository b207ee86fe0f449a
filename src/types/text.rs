//! Text in the database's encoding as UTF-8.

use std::borrow::Cow;
use std::cell::Cell;
use std::ffi::CStr;

use pgrx::pg_sys;

thread_local! {
    /// Whether the database's encoding is UTF-8; it never changes in a session's life.
    static IS_UTF8: Cell<Option<bool>> = const { Cell::new(None) };
}

/// The text's bytes in UTF-8. In a database of encoding SQL_ASCII they must be UTF-8 already.
pub(super) fn to_utf8(text: &[u8]) -> Cow<'_, [u8]> {
    const UTF8: i32 = pg_sys::pg_enc::PG_UTF8 as i32;
    // SAFETY: the function reads a setting.
    let is_utf8 = IS_UTF8.get().unwrap_or_else(|| unsafe { pg_sys::GetDatabaseEncoding() } == UTF8);
    IS_UTF8.set(Some(is_utf8));
    if is_utf8 || text.is_ascii() {
        return Cow::Borrowed(text);
    }
    // SAFETY: the length is that of the text; the result is the text itself or a NUL-terminated copy.
    unsafe {
        let source = text.as_ptr().cast();
        let converted = pg_sys::pg_server_to_any(source, text.len() as i32, UTF8);
        if std::ptr::eq(converted, source) {
            return Cow::Borrowed(text);
        }
        let bytes = CStr::from_ptr(converted).to_bytes().to_vec();
        pg_sys::pfree(converted.cast());
        Cow::Owned(bytes)
    }
}
