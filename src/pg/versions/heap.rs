//! Updates of heap rows, which tell from PostgreSQL 16 on which indexes need an entry, not only whether they do.

use pgrx::pg_sys;

/// What an update tells of the indexes (`TU_UpdateIndexes` of tableam.h).
#[cfg(feature = "pg15")]
pub type UpdateIndexes = bool;
#[cfg(not(feature = "pg15"))]
pub type UpdateIndexes = pg_sys::TU_UpdateIndexes::Type;

/// Every index needs an entry of the new version.
#[cfg(feature = "pg15")]
pub const UPDATE_ALL_INDEXES: UpdateIndexes = true;
#[cfg(not(feature = "pg15"))]
pub const UPDATE_ALL_INDEXES: UpdateIndexes = pg_sys::TU_UpdateIndexes::TU_All;

/// Updates a heap row of which no other transaction can hold the lock.
///
/// # Safety
/// `heap` is open and writable, the row at `tid` is locked by this transaction, and `tuple` was formed for this heap.
pub unsafe fn update(
    heap: pg_sys::Relation,
    tid: &mut pg_sys::ItemPointerData,
    tuple: pg_sys::HeapTuple,
    command: pg_sys::CommandId,
) -> pg_sys::TM_Result::Type {
    let mut failure = pg_sys::TM_FailureData::default();
    let mut mode = pg_sys::LockTupleMode::LockTupleNoKeyExclusive;
    let nobody = std::ptr::null_mut();
    // SAFETY: promised by the caller.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::heap_update(heap, tid, tuple, command, nobody, true, &mut failure, &mut mode);
        #[cfg(not(feature = "pg15"))]
        {
            let mut indexes = pg_sys::TU_UpdateIndexes::TU_None;
            pg_sys::heap_update(heap, tid, tuple, command, nobody, true, &mut failure, &mut mode, &mut indexes)
        }
    }
}
