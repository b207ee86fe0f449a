//! Giving back what nobody can see any more: rows of the list, and with them their runs, and rows of the delta.

use pgrx::pg_sys;

use super::{flush, note_delta_if_empty};
use crate::delta::relation::column;
use crate::delta::Delta;
use crate::pg::injection::point;
use crate::read::segments::with_latest_snapshot;
use crate::read::TableState;
use crate::segment::list::{self, List};
use crate::segment::{relation, visibility_map};

/// `oideq`, `int8lt` and `int8gt` of pg_proc.dat.
const OIDEQ: u32 = 184;
const INT8LT: u32 = 469;
const INT8GT: u32 = 470;

/// Vacuums the list by `vacuum`, and takes out rows of earlier lives of the table and of tables that are gone.
pub fn list(state: &TableState, vacuum: impl FnOnce(pg_sys::Relation)) {
    let list = List::open(pg_sys::RowExclusiveLock);
    vacuum(list.heap);
    point("list-vacuumed");
    let own = relation::table_oid(state.rel);
    let mut stale = Vec::new();
    with_latest_snapshot(|snapshot| {
        list.scan_tables(snapshot, |row| {
            let table = row.table();
            if (table == own && row.storage_id() != state.storage_id) || !exists(table, snapshot) {
                stale.push(row.tid());
            }
        });
    });
    for tid in stale {
        list.remove_if_free(tid);
    }
    list.close(pg_sys::RowExclusiveLock);
    note_segments(state);
}

/// Notes in the visibility map which segments newer snapshots see, unless somebody is changing it, this transaction included.
pub fn note_segments(state: &TableState) {
    list::note_in_map(state.rel, |work| with_latest_snapshot(work));
}

/// Whether `snapshot` sees a relation of this OID. The catalog caches would not do: they hear of a new table a moment after
/// snapshots see it, and its rows in the list.
fn exists(table: pg_sys::Oid, snapshot: pg_sys::Snapshot) -> bool {
    let mut key = pg_sys::ScanKeyData::default();
    // SAFETY: the key names the first column of the index, of type oid, and lives until the scan ends.
    unsafe {
        pg_sys::ScanKeyInit(
            &raw mut key,
            pg_sys::Anum_pg_class_oid as pg_sys::AttrNumber,
            pg_sys::BTEqualStrategyNumber as pg_sys::StrategyNumber,
            pg_sys::Oid::from(OIDEQ),
            pg_sys::Datum::from(table),
        );
        let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
        let class = pg_sys::table_open(pg_sys::RelationRelationId, lock);
        let scan = pg_sys::systable_beginscan(
            class,
            pg_sys::Oid::from(pg_sys::ClassOidIndexId),
            true,
            snapshot,
            1,
            &raw mut key,
        );
        let found = !pg_sys::systable_getnext(scan).is_null();
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(class, lock);
        found
    }
}

/// Vacuums the delta by `vacuum`, takes out rows of earlier lives of the table, and notes that the delta is empty if it is: what a
/// flush of this transaction deletes is not gone until it commits, so that is noted by a later transaction. Whether it took
/// out rows, whose space is yet to be given back.
pub fn delta(state: &TableState, vacuum: impl FnOnce(pg_sys::Relation)) -> bool {
    let Some(delta) = Delta::open(state.rel, state.storage_id, pg_sys::RowExclusiveLock) else {
        return false;
    };
    vacuum(delta.heap);
    let (stale, in_use) = with_latest_snapshot(|snapshot| {
        let mut stale = Vec::new();
        for (strategy, procedure) in [(pg_sys::BTLessStrategyNumber, INT8LT), (pg_sys::BTGreaterStrategyNumber, INT8GT)]
        {
            find_other_lives(&delta, snapshot, strategy, procedure, &mut stale);
        }
        (stale.len() as u64, flush::delete_rows(&delta, stale))
    });
    if in_use == 0 && !visibility_map::knows_delta_empty(state.rel) {
        // One that is in use is looked at by the next VACUUM.
        let _ = note_delta_if_empty(state.rel);
    }
    delta.close();
    stale > in_use
}

/// Finds rows whose storage id is not the table's, on one side of it.
fn find_other_lives(
    delta: &Delta,
    snapshot: pg_sys::Snapshot,
    strategy: u32,
    procedure: u32,
    found: &mut Vec<pg_sys::ItemPointerData>,
) {
    let mut key = pg_sys::ScanKeyData::default();
    // SAFETY: delta and index are open; the key lives until the scan ends; each tuple is looked at before the scan moves on.
    unsafe {
        pg_sys::ScanKeyInit(
            &raw mut key,
            column::STORAGE_ID,
            strategy as pg_sys::StrategyNumber,
            pg_sys::Oid::from(procedure),
            pg_sys::Datum::from(delta.storage_id as i64),
        );
        let index = (*delta.key_index).rd_id;
        let scan = pg_sys::systable_beginscan(delta.heap, index, true, snapshot, 1, &raw mut key);
        loop {
            let tuple = pg_sys::systable_getnext(scan);
            if tuple.is_null() {
                break;
            }
            found.push((*tuple).t_self);
        }
        pg_sys::systable_endscan(scan);
    }
}
