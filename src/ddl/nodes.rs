//! Reading and writing parse nodes.

use std::ffi::{c_char, CString};

use pgrx::pg_sys::{self, Oid};
use pgrx::PgList;

use crate::catalog::identifier::owned;

/// A palloc'ed copy of a text.
pub fn c_string(text: &str) -> *mut c_char {
    let text = CString::new(text.replace('\0', "")).unwrap_or_default();
    // SAFETY: copies a NUL-terminated string into the current memory context.
    unsafe { pg_sys::pstrdup(text.as_ptr()) }
}

/// A copy of the nodes of a statement, in which anything may be changed.
///
/// # Safety
/// `statement` is a valid planned statement.
pub unsafe fn copy(statement: *mut pg_sys::PlannedStmt) -> *mut pg_sys::PlannedStmt {
    // SAFETY: the caller vouches for the node.
    unsafe { pg_sys::copyObjectImpl(statement.cast()).cast() }
}

/// The members of a list of nodes.
///
/// # Safety
/// `list` is a list whose members are all of type `T`.
pub unsafe fn members<T>(list: *mut pg_sys::List) -> Vec<*mut T> {
    // SAFETY: the caller vouches for the list.
    unsafe { PgList::<T>::from_pg(list) }.iter_ptr().collect()
}

/// A list of nodes.
pub fn list<T>(members: impl IntoIterator<Item = *mut T>) -> *mut pg_sys::List {
    let mut list = PgList::<T>::new();
    for member in members {
        list.push(member);
    }
    list.into_pg()
}

/// Whether a node is of this kind.
///
/// # Safety
/// `node` is null or a valid node.
pub unsafe fn is(node: *mut pg_sys::Node, tag: pg_sys::NodeTag) -> bool {
    // SAFETY: the caller vouches for the node.
    !node.is_null() && unsafe { (*node).type_ } == tag
}

/// The names in a list of String nodes.
///
/// # Safety
/// `list` is a list of String nodes.
pub unsafe fn names(list: *mut pg_sys::List) -> Vec<String> {
    // SAFETY: the caller vouches for the list.
    unsafe { members::<pg_sys::String>(list).into_iter().map(|name| owned((*name).sval)).collect() }
}

/// The relation that a RangeVar names; `None` if there is none. Takes no lock.
///
/// # Safety
/// `relation` is null or a valid RangeVar.
pub unsafe fn find_relation(relation: *mut pg_sys::RangeVar) -> Option<Oid> {
    if relation.is_null() {
        return None;
    }
    // SAFETY: the caller vouches for the node; a missing relation gives an invalid OID.
    let relid = unsafe {
        pg_sys::RangeVarGetRelidExtended(
            relation,
            pg_sys::NoLock as pg_sys::LOCKMODE,
            pg_sys::RVROption::RVR_MISSING_OK,
            None,
            std::ptr::null_mut(),
        )
    };
    (relid != Oid::INVALID).then_some(relid)
}
