//! Vacuum of the heaps behind a table.

use pgrx::pg_sys;

/// `LOCKTAG_RELATION` and `DEFAULT_LOCKMETHOD` of PostgreSQL's lock.h.
const LOCKTAG_RELATION: u8 = 0;
const DEFAULT_LOCKMETHOD: u8 = 1;

/// Vacuums an open heap, unless somebody else is at it: autovacuum may be.
///
/// # Safety
/// `heap` is an open heap; `params` are VACUUM's, complete.
pub unsafe fn vacuum_if_free(
    heap: pg_sys::Relation,
    params: &pg_sys::VacuumParams,
    strategy: pg_sys::BufferAccessStrategy,
) {
    // Shrinking the file takes an exclusive lock for a while; the next rows use its space again.
    let params = pg_sys::VacuumParams { truncate: pg_sys::VacOptValue::VACOPTVALUE_DISABLED, ..*params };
    // SAFETY: promised by the caller.
    unsafe { vacuum(heap, params, strategy) }
}

/// As [`vacuum_if_free`], and cuts off the free end of the heap's file, unless `params` say not to or somebody uses the heap:
/// PostgreSQL would try for five seconds to get its lock.
///
/// # Safety
/// As for [`vacuum_if_free`].
pub unsafe fn vacuum_and_cut_if_free(
    heap: pg_sys::Relation,
    params: &pg_sys::VacuumParams,
    strategy: pg_sys::BufferAccessStrategy,
) {
    let mut params = *params;
    // Few dead rows would be left in their blocks to spare the indexes; with them the last blocks could not go.
    if params.index_cleanup != pg_sys::VacOptValue::VACOPTVALUE_DISABLED {
        params.index_cleanup = pg_sys::VacOptValue::VACOPTVALUE_ENABLED;
    }
    // SAFETY: promised by the caller.
    unsafe {
        if is_in_use(heap) {
            params.truncate = pg_sys::VacOptValue::VACOPTVALUE_DISABLED;
        }
        vacuum(heap, params, strategy);
    }
}

/// Whether another session has any lock on a relation.
///
/// # Safety
/// `rel` is an open relation.
unsafe fn is_in_use(rel: pg_sys::Relation) -> bool {
    // SAFETY: promised by the caller; the answer is an array in the current memory context.
    unsafe {
        let id = (*rel).rd_lockInfo.lockRelId;
        let tag = pg_sys::LOCKTAG {
            locktag_field1: id.dbId.to_u32(),
            locktag_field2: id.relId.to_u32(),
            locktag_field3: 0,
            locktag_field4: 0,
            locktag_type: LOCKTAG_RELATION,
            locktag_lockmethodid: DEFAULT_LOCKMETHOD,
        };
        let mut count = 0;
        pg_sys::GetLockConflicts(&raw const tag, pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE, &raw mut count);
        count > 0
    }
}

/// # Safety
/// As for [`vacuum_if_free`].
unsafe fn vacuum(heap: pg_sys::Relation, mut params: pg_sys::VacuumParams, strategy: pg_sys::BufferAccessStrategy) {
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
