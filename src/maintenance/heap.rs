//! Vacuum of the heaps behind a table.

use pgrx::pg_sys;

/// Vacuums an open heap, unless somebody else is at it: autovacuum may be. Shrinks its file if that is wanted and the heap is
/// not in use.
///
/// # Safety
/// `heap` is an open heap; `params` are VACUUM's, complete.
pub unsafe fn vacuum_if_free(
    heap: pg_sys::Relation,
    params: &pg_sys::VacuumParams,
    strategy: pg_sys::BufferAccessStrategy,
    shrink: bool,
) {
    let mut params = *params;
    // Shrinking the file takes an exclusive lock for a while, and waits seconds for it where the heap is in use.
    params.truncate = if shrink && is_unused(heap) {
        pg_sys::VacOptValue::VACOPTVALUE_ENABLED
    } else {
        pg_sys::VacOptValue::VACOPTVALUE_DISABLED
    };
    params.log_min_duration = -1;
    params.nworkers = -1;
    params.options &= !pg_sys::VACOPT_VERBOSE;
    // SAFETY: promised by the caller; heap_vacuum_rel is called under the lock that it expects.
    unsafe {
        let lock = pg_sys::ShareUpdateExclusiveLock as pg_sys::LOCKMODE;
        if pg_sys::ConditionalLockRelation(heap, lock) {
            pg_sys::heap_vacuum_rel(heap, &raw mut params, strategy);
            pg_sys::UnlockRelation(heap, lock);
        }
    }
}

/// Whether nobody else has a lock on an open heap at this moment.
fn is_unused(heap: pg_sys::Relation) -> bool {
    let lock = pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE;
    // SAFETY: the heap is open; a lock that was taken is given back at once.
    unsafe {
        let unused = pg_sys::ConditionalLockRelation(heap, lock);
        if unused {
            pg_sys::UnlockRelation(heap, lock);
        }
        unused
    }
}
