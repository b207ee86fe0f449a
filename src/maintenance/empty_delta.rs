//! Whether a delta is empty, and noting that it is.

use cass_storage::merge::Cursor;
use pgrx::pg_sys;

use crate::delta::{Delta, DeltaCursor};
use crate::read::segments::with_latest_snapshot;
use crate::segment::{metapage, relation, source, visibility_map};

/// Why a delta was not noted as empty.
pub enum InUse {
    /// Somebody holds a lock that lets him write rows or lock them.
    Written,
    /// It holds rows.
    HoldsRows,
}

/// Whether `snapshot` sees a row, a tombstone or an anchor in the delta of an open table.
pub fn delta_holds_rows(rel: pg_sys::Relation, snapshot: pg_sys::Snapshot) -> bool {
    let Some(delta) = Delta::open(rel, metapage::identity(rel).storage_id, pg_sys::AccessShareLock) else {
        return false;
    };
    let cursor =
        DeltaCursor::open_all(&delta, snapshot).unwrap_or_else(|error| source::raise(&relation::name(rel), &error));
    let holds_rows = cursor.key().is_some();
    cursor.close();
    delta.close();
    holds_rows
}

/// Notes in metapage and visibility map that the delta of an open table holds nothing, if that is so. Writers are kept out
/// meanwhile, if none is at work, and so are those who lock rows, since they write anchors: each takes the note back once it has
/// its lock, before it writes. Nobody is waited for.
pub fn note_delta_if_empty(rel: pg_sys::Relation) -> Result<(), InUse> {
    // The weakest that conflicts with the RowShareLock of SELECT ... FOR UPDATE.
    let lock = pg_sys::ExclusiveLock as pg_sys::LOCKMODE;
    // SAFETY: the table is open.
    if !unsafe { pg_sys::ConditionalLockRelation(rel, lock) } {
        return Err(InUse::Written);
    }
    let result = with_latest_snapshot(|snapshot| {
        if delta_holds_rows(rel, snapshot) {
            return Err(InUse::HoldsRows);
        }
        // SAFETY: the snapshot is registered while this runs.
        visibility_map::note_delta_empty(rel, unsafe { (*snapshot).xmax });
        Ok(())
    });
    // SAFETY: gives back the lock taken above.
    unsafe { pg_sys::UnlockRelation(rel, lock) };
    result
}
