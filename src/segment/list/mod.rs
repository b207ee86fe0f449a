//! The list of segments: the heap table `cass_catalog.segment`, read with the query's snapshot.
//!
//! A row's own visibility is its segment's: whoever sees the row sees the segment. Rows carry the storage id of one life of
//! a table, so that rows of an older life, and rows that logical replication brings from elsewhere, count for nothing. They
//! are written as catalog rows are, whatever the user's privileges.
//!
//! Most reads need not open it: `copy` notes in the table's visibility map what all recent snapshots see.

use std::cell::Cell;
use std::rc::Rc;

use pgrx::pg_sys::{self, Datum};

use super::{cache, metapage, relation, visibility_map};
use crate::error::Report;
use crate::pg::snapshot::committed_after;
use crate::pg::versions::tables;

mod change;
mod copy;
mod row;

pub use super::entry::{ListedSegment, SegmentEntry};
pub use copy::note as note_in_map;
use row::column;
pub use row::ListRow;

/// `int8eq` of pg_proc.dat.
const INT8EQ: u32 = 467;

/// The open list. Without `Drop`: what an error leaves open, PostgreSQL's resource owner closes.
pub struct List {
    pub heap: pg_sys::Relation,
    index: pg_sys::Oid,
}

thread_local! {
    /// OIDs of the list and its primary key's index.
    static OIDS: Cell<Option<(pg_sys::Oid, pg_sys::Oid)>> = const { Cell::new(None) };
}

/// Forgets where the list is, if `relation` (or any, for `None`) may be it.
pub(super) fn forget(relation: Option<pg_sys::Oid>) {
    if let Some((heap, index)) = OIDS.get() {
        if relation.is_none_or(|oid| oid == heap || oid == index) {
            OIDS.set(None);
        }
    }
}

fn missing() -> ! {
    Report::new("55000", "table cass_catalog.segment, the list of segments, is missing")
        .hint("Install extension \"cass\" in this database.")
        .raise()
}

impl List {
    /// Opens the list.
    ///
    /// # Errors
    /// 55000 where the extension is not installed in this database.
    pub fn open(lock_mode: u32) -> List {
        let lock_mode = lock_mode as pg_sys::LOCKMODE;
        if let Some((heap, index)) = OIDS.get() {
            // SAFETY: the OIDs are forgotten when the list is dropped, and table_open raises if there is no such table.
            return List { heap: unsafe { pg_sys::table_open(heap, lock_mode) }, index };
        }
        cache::watch_relations();
        // SAFETY: the names are NUL-terminated; the relation is opened before it is looked into.
        unsafe {
            let schema = pg_sys::get_namespace_oid(c"cass_catalog".as_ptr(), true);
            if schema == pg_sys::InvalidOid {
                missing()
            }
            let oid = pg_sys::get_relname_relid(c"segment".as_ptr(), schema);
            if oid == pg_sys::InvalidOid {
                missing()
            }
            let heap = pg_sys::table_open(oid, lock_mode);
            let index = tables::primary_key_index(heap);
            if index == pg_sys::InvalidOid || (*(*heap).rd_att).natts != column::COUNT as i32 {
                missing()
            }
            OIDS.set(Some((oid, index)));
            List { heap, index }
        }
    }

    /// Closes the list, giving up a reader's lock and keeping a writer's to the transaction's end.
    pub fn close(self, lock_mode: u32) {
        let kept = if lock_mode == pg_sys::AccessShareLock { lock_mode } else { pg_sys::NoLock };
        // SAFETY: opened by `open` and closed once, since `self` is consumed.
        unsafe { pg_sys::table_close(self.heap, kept as pg_sys::LOCKMODE) }
    }

    /// Calls `visit` with every row of a life of a table that `snapshot` sees.
    fn scan_life(&self, storage_id: u64, snapshot: pg_sys::Snapshot, visit: impl FnMut(&ListRow)) {
        let key = scan_key(column::STORAGE_ID, INT8EQ, Datum::from(storage_id as i64));
        self.scan(self.index, snapshot, Some(key), visit);
    }

    /// Calls `visit` with every row that exists, visible or not, dead ones included, of a life of a table. The index would
    /// not do: its entries of dead rows may be gone before the rows are.
    pub fn scan_physical(&self, storage_id: u64, visit: impl FnMut(&ListRow)) {
        let key = scan_key(column::STORAGE_ID, INT8EQ, Datum::from(storage_id as i64));
        let mut any = any_snapshot();
        self.scan(pg_sys::InvalidOid, &raw mut any, Some(key), visit);
    }

    /// Calls `visit` with every row of every table that `snapshot` sees.
    pub fn scan_tables(&self, snapshot: pg_sys::Snapshot, visit: impl FnMut(&ListRow)) {
        self.scan(pg_sys::InvalidOid, snapshot, None, visit);
    }

    /// Scans by `index`, or the heap for `InvalidOid`.
    fn scan(
        &self,
        index: pg_sys::Oid,
        snapshot: pg_sys::Snapshot,
        key: Option<pg_sys::ScanKeyData>,
        mut visit: impl FnMut(&ListRow),
    ) {
        let count = i32::from(key.is_some());
        let mut key = key.unwrap_or_default();
        // SAFETY: the list is open, the key names one of its columns, and each tuple is read before the scan moves on.
        unsafe {
            let by_index = index != pg_sys::InvalidOid;
            let scan = pg_sys::systable_beginscan(self.heap, index, by_index, snapshot, count, &raw mut key);
            loop {
                let tuple = pg_sys::systable_getnext(scan);
                if tuple.is_null() {
                    break;
                }
                visit(&ListRow::of(self.heap, tuple));
            }
            pg_sys::systable_endscan(scan);
        }
    }

    /// Takes a row out of the list unless somebody else is doing so.
    pub fn remove_if_free(&self, mut tid: pg_sys::ItemPointerData) {
        let mut failure = pg_sys::TM_FailureData::default();
        // SAFETY: the list is open with RowExclusiveLock and `tid` comes from a row of it.
        unsafe {
            let command = pg_sys::GetCurrentCommandId(true);
            let no_snapshot = std::ptr::null_mut();
            pg_sys::heap_delete(self.heap, &raw mut tid, command, no_snapshot, false, &raw mut failure, false);
        }
    }
}

fn scan_key(attribute: usize, procedure: u32, argument: Datum) -> pg_sys::ScanKeyData {
    let mut key = pg_sys::ScanKeyData::default();
    // SAFETY: `key` is a scan key to be filled in.
    unsafe {
        pg_sys::ScanKeyInit(
            &raw mut key,
            attribute as pg_sys::AttrNumber,
            pg_sys::BTEqualStrategyNumber as pg_sys::StrategyNumber,
            pg_sys::Oid::from(procedure),
            argument,
        );
    }
    key
}

/// Sees every row that exists.
fn any_snapshot() -> pg_sys::SnapshotData {
    pg_sys::SnapshotData { snapshot_type: pg_sys::SnapshotType::SNAPSHOT_ANY, ..Default::default() }
}

/// Sees what is committed and what this transaction wrote.
fn self_snapshot() -> pg_sys::SnapshotData {
    pg_sys::SnapshotData { snapshot_type: pg_sys::SnapshotType::SNAPSHOT_SELF, ..Default::default() }
}

/// The segments of an open, locked table that `snapshot` sees, highest sequence first: the order in which they take
/// precedence.
pub fn visible(rel: pg_sys::Relation, snapshot: pg_sys::Snapshot) -> Rc<[SegmentEntry]> {
    visibility_map::segments(rel, snapshot).unwrap_or_else(|| {
        if is_being_restored(rel) {
            return Rc::from([]);
        }
        let listed = listed(metapage::identity(rel).storage_id, snapshot);
        listed.into_iter().map(|listed| listed.entry).collect()
    })
}

/// Whether pg_upgrade has made a table in the new cluster, and not put its files there yet. It adds keys and indexes in the order
/// of schemas, so that the list may have no index, or not be there, when they are built over the empty table.
fn is_being_restored(rel: pg_sys::Relation) -> bool {
    // SAFETY: reads a variable of this process.
    let upgraded = unsafe { pg_sys::IsBinaryUpgrade };
    upgraded && relation::main_fork_blocks(rel) <= metapage::BLOCKS
}

/// As [`visible`], from the list itself, with what maintenance needs to know of its rows.
pub fn listed(storage_id: u64, snapshot: pg_sys::Snapshot) -> Vec<ListedSegment> {
    let mut segments = Vec::new();
    let list = List::open(pg_sys::AccessShareLock);
    list.scan_life(storage_id, snapshot, |row| {
        if let Some(entry) = row.segment() {
            segments.push(ListedSegment { entry, xmin: row.xmin(), tid: row.tid() });
        }
    });
    list.close(pg_sys::AccessShareLock);
    segments.sort_unstable_by_key(|listed| std::cmp::Reverse(listed.entry.sequence_high));
    segments
}

/// Whether a life of a table began by a rewrite that another transaction committed after `snapshot`, which sees its rows all the
/// same.
pub fn is_rewritten_after(storage_id: u64, snapshot: pg_sys::Snapshot) -> bool {
    let mut rewritten = false;
    let list = List::open(pg_sys::AccessShareLock);
    list.scan_life(storage_id, snapshot, |row| {
        // SAFETY: the snapshot is the one of the scan.
        rewritten |= row.frozen_by().is_some_and(|xid| unsafe { committed_after(xid, snapshot) });
    });
    list.close(pg_sys::AccessShareLock);
    rewritten
}

/// Whether rows of a life of a table are in the list that nobody new sees, but that still keep their runs.
pub fn has_dead(storage_id: u64) -> bool {
    let (mut physical, mut live) = (0_u64, 0_u64);
    let list = List::open(pg_sys::AccessShareLock);
    list.scan_physical(storage_id, |_| physical += 1);
    let mut own = self_snapshot();
    list.scan_life(storage_id, &raw mut own, |_| live += 1);
    list.close(pg_sys::AccessShareLock);
    physical > live
}
