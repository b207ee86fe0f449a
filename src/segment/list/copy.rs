//! Noting a table's part of the list in its visibility map, so that reads need not open the list.

use std::rc::Rc;

use pgrx::pg_sys;

use super::{listed, List, SegmentEntry};
use crate::segment::{metapage, visibility_map};

/// Notes the segments of an open, locked table in its visibility map, unless they are there already or somebody is changing
/// them. `with_latest_snapshot` calls what it is given with a snapshot of that moment.
pub fn note(rel: pg_sys::Relation, with_latest_snapshot: impl FnOnce(&dyn Fn(pg_sys::Snapshot))) {
    let version = visibility_map::version(rel);
    let storage_id = metapage::identity(rel).storage_id;
    if visibility_map::knows_segments(rel) || is_changing(storage_id) {
        return;
    }
    with_latest_snapshot(&|snapshot| {
        let entries: Rc<[SegmentEntry]> = listed(storage_id, snapshot).into_iter().map(|listed| listed.entry).collect();
        // SAFETY: the snapshot is valid while this runs.
        visibility_map::note_segments(rel, version, unsafe { (*snapshot).xmax }, entries);
    });
}

/// Whether somebody is writing or deleting rows of a life of a table.
fn is_changing(storage_id: u64) -> bool {
    let mut changing = false;
    let list = List::open(pg_sys::AccessShareLock);
    list.scan_physical(storage_id, |row| changing |= row.is_changing());
    list.close(pg_sys::AccessShareLock);
    changing
}
