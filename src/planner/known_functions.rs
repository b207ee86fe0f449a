//! Telling the extension's own functions from others in expressions.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::CStr;

use pgrx::pg_sys::{self, Oid};

/// A function of the extension that the planner treats specially.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownFunction {
    /// `cass_token(VARIADIC "any")`
    Token,
    /// `cass_allow_filtering()`
    AllowFiltering,
}

thread_local! {
    /// Functions seen so far, by OID, with what they are; emptied when pg_proc changes.
    static SEEN: RefCell<HashMap<Oid, Option<KnownFunction>>> = RefCell::new(HashMap::new());
}

/// Registers the callback that forgets what functions are when pg_proc changes.
pub(super) fn init() {
    // SAFETY: called once a process from _PG_init; the callback is a static function.
    unsafe {
        pg_sys::CacheRegisterSyscacheCallback(
            pg_sys::SysCacheIdentifier::PROCOID as i32,
            Some(forget),
            pg_sys::Datum::from(0),
        );
    }
}

/// Cache callback of pg_proc. Raises no error: where the cache is in use, the look-up in progress is of a live function.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn forget(_argument: pg_sys::Datum, _cache: i32, _hash: u32) {
    SEEN.with(|seen| {
        if let Ok(mut seen) = seen.try_borrow_mut() {
            seen.clear();
        }
    });
}

/// What the function of this OID is, if the planner treats it specially. Needs a running transaction.
pub fn known_function(function: Oid) -> Option<KnownFunction> {
    if function.to_u32() < pg_sys::FirstNormalObjectId {
        return None;
    }
    if let Some(known) = SEEN.with_borrow(|seen| seen.get(&function).copied()) {
        return known;
    }
    let known = look_up(function);
    SEEN.with_borrow_mut(|seen| seen.insert(function, known));
    known
}

fn look_up(function: Oid) -> Option<KnownFunction> {
    // SAFETY: catalog look-ups by OID; a name that is found is a palloc'ed C string.
    unsafe {
        let name = pg_sys::get_func_name(function);
        if name.is_null() {
            return None;
        }
        let known = match CStr::from_ptr(name).to_bytes() {
            b"cass_token" => KnownFunction::Token,
            b"cass_allow_filtering" => KnownFunction::AllowFiltering,
            _ => return None,
        };
        let extension = pg_sys::get_extension_oid(c"cass".as_ptr(), true);
        let owner = pg_sys::getExtensionOfObject(pg_sys::ProcedureRelationId, function);
        (owner != Oid::INVALID && owner == extension).then_some(known)
    }
}
