//! The list of segments: the heap table `cass_catalog.segment`, read with the query's snapshot.
//!
//! A row's own visibility is its segment's: whoever sees the row sees the segment. Rows carry the storage id of one life of
//! a table, so that rows of an older life, and rows that logical replication brings from elsewhere, count for nothing. They
//! are written as catalog rows are, whatever the user's privileges.

use std::cell::Cell;

use pgrx::pg_sys::{self, Datum};

use super::cache;
use crate::error::Report;
use crate::pg::bytea;
use crate::pg::freeze::freeze;

mod entry;
mod row;

pub use entry::{ListedSegment, SegmentEntry};
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
            let index = pg_sys::RelationGetPrimaryKeyIndex(heap);
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

    /// Writes the row that keeps `pages` blocks from `first_block` for a run, before the run exists.
    pub fn insert_reservation(&self, table: pg_sys::Oid, run: &SegmentEntry) {
        self.write(table, run, false, None);
    }

    /// Makes a reserved run a segment that others see when this transaction commits.
    ///
    /// # Errors
    /// XX000 where the reservation is gone, which only writing to the list by hand can cause.
    pub fn publish(&self, table: pg_sys::Oid, segment: &SegmentEntry) {
        let mut tid = self.reservation(segment);
        self.write(table, segment, true, Some(&mut tid));
    }

    /// As [`List::publish`], for a segment that all snapshots see, older ones too, once they see its table's files. A
    /// rollback leaves the row, as one of a life that is gone.
    ///
    /// # Errors
    /// Those of [`List::publish`].
    pub fn publish_to_all(&self, table: pg_sys::Oid, segment: &SegmentEntry) {
        self.remove(self.reservation(segment));
        let tid = self.write(table, segment, true, None);
        // SAFETY: the list is open, and the row was inserted just now.
        unsafe { freeze(self.heap, tid) };
    }

    /// Where the row is that keeps the segment's blocks.
    fn reservation(&self, segment: &SegmentEntry) -> pg_sys::ItemPointerData {
        let mut reserved = None;
        let mut own = self_snapshot();
        self.scan_life(segment.storage_id, &raw mut own, |row| {
            if row.run_id() == segment.run_id {
                reserved = Some(row.tid());
            }
        });
        reserved.unwrap_or_else(|| {
            Report::new("XX000", "the reservation of a run has disappeared from cass_catalog.segment").raise()
        })
    }

    /// Inserts a row or puts it in the place of `old`, and makes it visible to this transaction's further commands. Returns
    /// where it is.
    fn write(
        &self,
        table: pg_sys::Oid,
        segment: &SegmentEntry,
        published: bool,
        old: Option<&mut pg_sys::ItemPointerData>,
    ) -> pg_sys::ItemPointerData {
        let mut values = [
            Datum::from(table),
            Datum::from(segment.storage_id as i64),
            Datum::from(segment.run_id as i64),
            Datum::from(i64::from(segment.first_block)),
            Datum::from(i64::from(segment.page_count)),
            Datum::from(published),
            Datum::from(segment.bulk),
            Datum::from(segment.sequence_low as i64),
            Datum::from(segment.sequence_high as i64),
            Datum::from(segment.row_count as i64),
            Datum::from(segment.tombstone_count as i64),
            bytea::from_bytes(&segment.min_key),
            bytea::from_bytes(&segment.max_key),
        ];
        let mut nulls = [false; column::COUNT];
        // SAFETY: values and nulls have as many elements as the list has columns (checked by `open`), of their types; the
        // list is open with RowExclusiveLock.
        unsafe {
            let tuple = pg_sys::heap_form_tuple((*self.heap).rd_att, values.as_mut_ptr(), nulls.as_mut_ptr());
            match old {
                None => pg_sys::CatalogTupleInsert(self.heap, tuple),
                Some(tid) => pg_sys::CatalogTupleUpdate(self.heap, tid, tuple),
            }
            let tid = (*tuple).t_self;
            pg_sys::heap_freetuple(tuple);
            pg_sys::CommandCounterIncrement();
            tid
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

    /// Takes a row out of the list; its segment goes when this transaction commits.
    pub fn remove(&self, mut tid: pg_sys::ItemPointerData) {
        // SAFETY: the list is open with RowExclusiveLock and `tid` comes from a row of it.
        unsafe { pg_sys::CatalogTupleDelete(self.heap, &raw mut tid) }
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

/// The segments of a life of a table that `snapshot` sees, highest sequence first: the order in which they take precedence.
pub fn visible(storage_id: u64, snapshot: pg_sys::Snapshot) -> Vec<SegmentEntry> {
    listed(storage_id, snapshot).into_iter().map(|listed| listed.entry).collect()
}

/// As [`visible`], with what maintenance needs to know of the list's rows.
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
