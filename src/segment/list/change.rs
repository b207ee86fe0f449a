//! Changing what a table's segments are.

use std::ops::Deref;

use pgrx::pg_sys::{self, Datum};

use super::row::column;
use super::{self_snapshot, List, SegmentEntry};
use crate::error::Report;
use crate::pg::bytea;
use crate::pg::freeze::freeze;
use crate::segment::visibility_map;

/// The list, open for changes of one table's rows.
pub struct Changes {
    list: List,
}

impl Deref for Changes {
    type Target = List;

    fn deref(&self) -> &List {
        &self.list
    }
}

impl List {
    /// Runs `work` on the list, which is to change rows of the open, locked table `rel`, and takes back what the visibility
    /// map tells of them.
    pub fn change<R>(rel: pg_sys::Relation, work: impl FnOnce(&Changes) -> R) -> R {
        let changes = Changes { list: List::open(pg_sys::RowExclusiveLock) };
        let result = work(&changes);
        visibility_map::segments_changed(rel);
        changes.list.close(pg_sys::RowExclusiveLock);
        result
    }
}

impl Changes {
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

    /// Takes a row out of the list; its segment goes when this transaction commits.
    pub fn remove(&self, mut tid: pg_sys::ItemPointerData) {
        // SAFETY: the list is open with RowExclusiveLock and `tid` comes from a row of it.
        unsafe { pg_sys::CatalogTupleDelete(self.heap, &raw mut tid) }
    }
}
