//! Forgetting what a backend keeps of relations when PostgreSQL says that they changed.
//!
//! One relcache callback serves all caches of the segment store, because PostgreSQL 15 has room for ten callbacks in a
//! backend. It runs whenever invalidation messages are taken in, thus inside nearly every call into PostgreSQL: no cache
//! may stay borrowed over such a call.

use std::cell::Cell;

use pgrx::pg_guard;
use pgrx::pg_sys;

use super::{list, map, metapage, visibility_map};

thread_local! {
    static REGISTERED: Cell<bool> = const { Cell::new(false) };
}

/// Makes sure that the callback is registered; called before anything is put into a cache.
pub(super) fn watch_relations() {
    if !REGISTERED.replace(true) {
        // SAFETY: the callback lives as long as the process; no argument is passed.
        unsafe { pg_sys::CacheRegisterRelcacheCallback(Some(relation_changed), pg_sys::Datum::from(0usize)) }
    }
}

/// Forgets everything kept about a relation, or about all of them for `InvalidOid`.
#[pg_guard]
unsafe extern "C-unwind" fn relation_changed(_argument: pg_sys::Datum, relation: pg_sys::Oid) {
    forget((relation != pg_sys::InvalidOid).then_some(relation));
}

/// Forgets everything kept about a relation, or about all of them.
pub(super) fn forget(relation: Option<pg_sys::Oid>) {
    metapage::forget(relation);
    visibility_map::forget(relation);
    list::forget(relation);
    map::forget(relation);
}
