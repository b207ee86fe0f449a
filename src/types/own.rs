//! Which type OIDs are the extension's own types.

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, CStr};

use pgrx::{pg_guard, pg_sys};

use super::KeyType;

/// The extension's name, as in its control file.
const EXTENSION: &CStr = c"cass";

thread_local! {
    /// Own types looked up so far in this session.
    static KNOWN: RefCell<Vec<(pg_sys::Oid, KeyType)>> = const { RefCell::new(Vec::new()) };
    static REGISTERED: Cell<bool> = const { Cell::new(false) };
}

/// The key type of an own type; `None` for every other type, also of the same name.
pub(super) fn own_type(oid: pg_sys::Oid) -> Option<KeyType> {
    let known = KNOWN.with_borrow(|known| known.iter().find(|(known, _)| *known == oid).map(|(_, own)| *own));
    if known.is_some() {
        return known;
    }
    let own = by_name(oid)?;
    if !is_member(oid) {
        return None;
    }
    if !REGISTERED.replace(true) {
        // SAFETY: the callback only touches this session's list, and stays registered as long as the library is loaded.
        unsafe {
            pg_sys::CacheRegisterSyscacheCallback(
                pg_sys::SysCacheIdentifier::TYPEOID as c_int,
                Some(forget),
                pg_sys::Datum::from(0),
            );
        }
    }
    KNOWN.with_borrow_mut(|known| known.push((oid, own)));
    Some(own)
}

/// Called when any row of pg_type may have changed.
#[pg_guard]
unsafe extern "C-unwind" fn forget(_argument: pg_sys::Datum, _cache: c_int, _hash: u32) {
    KNOWN.with_borrow_mut(Vec::clear);
}

/// The own type that a type has the name of.
fn by_name(oid: pg_sys::Oid) -> Option<KeyType> {
    // SAFETY: a tuple of this cache is a pg_type row, and is not used after its release.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::TYPEOID as c_int, oid.into());
        if tuple.is_null() {
            return None;
        }
        let row = pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_type>();
        let own = match CStr::from_ptr((*row).typname.data.as_ptr()).to_bytes() {
            b"timeuuid" => Some(KeyType::TimeUuid),
            b"varint" => Some(KeyType::VarInt),
            b"tinyint" => Some(KeyType::TinyInt),
            _ => None,
        };
        pg_sys::ReleaseSysCache(tuple);
        own
    }
}

/// Whether a type belongs to this extension.
fn is_member(oid: pg_sys::Oid) -> bool {
    // SAFETY: both look-ups only read catalogs.
    unsafe {
        let extension = pg_sys::get_extension_oid(EXTENSION.as_ptr(), true);
        extension != pg_sys::InvalidOid && pg_sys::getExtensionOfObject(pg_sys::TypeRelationId, oid) == extension
    }
}
