//! Vacuum of the heaps behind a table.

use pgrx::pg_sys;

/// Vacuums an open heap, unless somebody else is at it: autovacuum may be.
///
/// # Safety
/// `heap` is an open heap; `params` are VACUUM's, complete.
pub unsafe fn vacuum_if_free(
    heap: pg_sys::Relation,
    params: &pg_sys::VacuumParams,
    strategy: pg_sys::BufferAccessStrategy,
) {
    let mut params = *params;
    // Shrinking the file takes an exclusive lock for a while; the next rows use its space again.
    params.truncate = pg_sys::VacOptValue::VACOPTVALUE_DISABLED;
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
