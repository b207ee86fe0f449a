//! The entries of the delta's indexes by themselves, for who compares them with its rows.

use super::cursor::{begin_key_scan, KeyCondition};
use super::{cursor, Delta};
use crate::pg::bytea;
use crate::pg::versions::scans;
use pgrx::pg_sys;

/// An entry of the key index.
pub struct KeyEntry<'a> {
    pub storage_id: u64,
    pub key: &'a [u8],
    pub tid: pg_sys::ItemPointerData,
}

/// What an entry is looked for by.
#[derive(Clone, Copy)]
pub enum Sought<'a> {
    /// A key, in the key index.
    Key(&'a [u8]),
    /// A row id, in the row id index.
    RowId(u64),
}

impl Delta {
    /// Whether an entry leads to the row at `tid`, which `snapshot` sees.
    pub fn leads_to(&self, sought: Sought<'_>, mut tid: pg_sys::ItemPointerData, snapshot: pg_sys::Snapshot) -> bool {
        let mut found = false;
        // SAFETY: the delta is open; scan and slot are begun and ended here.
        unsafe {
            let scan = self.begin_scan_for(sought, snapshot);
            let slot = pg_sys::table_slot_create(self.heap, std::ptr::null_mut());
            while !found && pg_sys::index_getnext_slot(scan, pg_sys::ScanDirection::ForwardScanDirection, slot) {
                found = pg_sys::ItemPointerEquals(&raw mut (*slot).tts_tid, &raw mut tid);
            }
            pg_sys::ExecDropSingleTupleTableSlot(slot);
            pg_sys::index_endscan(scan);
        }
        found
    }

    fn begin_scan_for(&self, sought: Sought<'_>, snapshot: pg_sys::Snapshot) -> pg_sys::IndexScanDesc {
        let row_id = match sought {
            Sought::Key(key) => return begin_key_scan(self, snapshot, &KeyCondition::Equal(key)),
            Sought::RowId(row_id) => row_id,
        };
        let mut key = pg_sys::ScanKeyData::default();
        // SAFETY: the relations are open; index_rescan copies the scan key.
        unsafe {
            pg_sys::ScanKeyInit(
                &raw mut key,
                1,
                pg_sys::BTEqualStrategyNumber as pg_sys::StrategyNumber,
                pg_sys::Oid::from(cursor::proc::INT8EQ),
                pg_sys::Datum::from(row_id as i64),
            );
            let scan = scans::begin(self.heap, self.row_id_index, snapshot, 1);
            pg_sys::index_rescan(scan, &raw mut key, 1, std::ptr::null_mut(), 0);
            scan
        }
    }

    /// Calls `visit` with every entry of the key index, in its order.
    pub fn each_key_entry(&self, snapshot: pg_sys::Snapshot, mut visit: impl FnMut(&KeyEntry<'_>)) {
        self.each_entry(self.key_index, snapshot, |values, tid| {
            // SAFETY: both columns of the index are NOT NULL; the key may be compressed, and is then copied into the memory of the
            // caller.
            let key = unsafe {
                let plain = pg_sys::pg_detoast_datum_packed(values[1].cast_mut_ptr());
                bytea::bytes_of(pg_sys::Datum::from(plain))
            };
            visit(&KeyEntry { storage_id: values[0].value() as u64, key, tid });
        });
    }

    /// Calls `visit` with row id and TID of every entry of the row id index.
    pub fn each_row_id_entry(&self, snapshot: pg_sys::Snapshot, mut visit: impl FnMut(u64, pg_sys::ItemPointerData)) {
        self.each_entry(self.row_id_index, snapshot, |values, tid| visit(values[0].value() as u64, tid));
    }

    fn each_entry(
        &self,
        index: pg_sys::Relation,
        snapshot: pg_sys::Snapshot,
        mut visit: impl FnMut(&[pg_sys::Datum; 2], pg_sys::ItemPointerData),
    ) {
        // SAFETY: the relations are open. The scan is told to hand out the index's tuples, which are read before it moves on.
        unsafe {
            let scan = scans::begin(self.heap, index, snapshot, 0);
            (*scan).xs_want_itup = true;
            pg_sys::index_rescan(scan, std::ptr::null_mut(), 0, std::ptr::null_mut(), 0);
            each_tid(scan, |tid| {
                let mut values = [pg_sys::Datum::from(0); 2];
                let mut nulls = [true; 2];
                pg_sys::index_deform_tuple(
                    (*scan).xs_itup,
                    (*scan).xs_itupdesc,
                    values.as_mut_ptr(),
                    nulls.as_mut_ptr(),
                );
                visit(&values, tid);
            });
        }
    }
}

/// Calls `visit` with the TID of each of a scan's entries. Ends the scan.
///
/// # Safety
/// `scan` is an index scan that has been begun with its keys.
unsafe fn each_tid(scan: pg_sys::IndexScanDesc, mut visit: impl FnMut(pg_sys::ItemPointerData)) {
    // SAFETY: promised by the caller.
    unsafe {
        loop {
            pgrx::check_for_interrupts!();
            let tid = pg_sys::index_getnext_tid(scan, pg_sys::ScanDirection::ForwardScanDirection);
            if tid.is_null() {
                break;
            }
            visit(*tid);
        }
        pg_sys::index_endscan(scan);
    }
}
