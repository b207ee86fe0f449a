//! A delta lies in its table's tablespace.

use super::Delta;
use crate::pg::versions::files;
use pgrx::pg_sys;

/// Moves the delta of `table` and its indexes to another tablespace, as SET TABLESPACE does with a TOAST table. What it holds
/// stays. The caller has locked the table exclusively, and moves it.
pub fn follow(table: pg_sys::Relation, tablespace: pg_sys::Oid) {
    // The storage id is not asked for: rows are copied with their pages.
    let Some(delta) = Delta::open(table, 0, pg_sys::AccessExclusiveLock) else {
        return;
    };
    for rel in [delta.heap, delta.key_index, delta.row_id_index] {
        // SAFETY: all three are open and locked exclusively.
        unsafe { move_relation(rel, tablespace) };
    }
    delta.close();
}

/// # Safety
/// `rel` is an open heap or index, locked exclusively.
unsafe fn move_relation(rel: pg_sys::Relation, tablespace: pg_sys::Oid) {
    // SAFETY: the steps of ATExecSetTableSpace, in its order. Copying the forks of an index is what it does for a heap.
    unsafe {
        if !pg_sys::CheckRelationTableSpaceMove(rel, tablespace) {
            return;
        }
        let node = files::new_in(rel, tablespace);
        let (_, _, file) = files::parts(&node);
        if let Some(copy) = (*pg_sys::GetHeapamTableAmRoutine()).relation_copy_data {
            copy(rel, &node);
        }
        pg_sys::SetRelationTableSpace(rel, tablespace, file);
        files::assume_new(rel);
        pg_sys::CommandCounterIncrement();
    }
}
