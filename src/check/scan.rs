//! The table as a query reads it: newest versions over delta and segments, with the values that were moved out of their rows.

use pgrx::pg_sys;

use super::fault::Kind;
use super::Check;
use crate::pg::scratch::in_scratch;
use crate::pg::subtransaction::caught;
use crate::pg::tid;
use crate::read::{MergedScan, ScanSpec};
use crate::segment::relation;

impl Check<'_> {
    /// Reads the table to its end. False if that is not possible.
    pub(super) fn scan(&mut self) -> bool {
        let (state, snapshot) = (self.state, self.snapshot);
        let before = self.faults.count();
        let result = caught(|| {
            // SAFETY: the table is open and locked, the snapshot registered; scan and slot are given back below, or by the
            // rollback of the subtransaction.
            unsafe {
                let slot = pg_sys::table_slot_create(state.rel, std::ptr::null_mut());
                let mut scan = MergedScan::begin_as(state.clone(), snapshot, ScanSpec::everything());
                while scan.next(slot) {
                    self.moved_out(slot);
                }
                scan.end();
                pg_sys::ExecDropSingleTupleTableSlot(slot);
            }
        });
        match result {
            Ok(()) => true,
            Err(error) => {
                // Else it is one of those told that stops the scan.
                if before == 0 {
                    let detail = format!("the table cannot be read to its end: {}", error.text);
                    self.faults.add(Kind::Scan, relation::oid(state.rel), None, detail);
                }
                false
            }
        }
    }

    /// Fetches the values of a row that are compressed or lie in the TOAST table.
    ///
    /// # Safety
    /// `slot` holds a row of the table.
    unsafe fn moved_out(&mut self, slot: *mut pg_sys::TupleTableSlot) {
        for column in self.state.table.columns.iter().filter(|column| !column.dropped && column.type_len == -1) {
            let index = usize::from(column.attnum) - 1;
            // SAFETY: promised by the caller; the slot has a value for each of the table's columns, and one of a variable-length
            // type that is not null points to a varlena.
            let fetched = unsafe {
                if *(*slot).tts_isnull.add(index) {
                    continue;
                }
                let value = (*(*slot).tts_values.add(index)).cast_mut_ptr::<pg_sys::varlena>();
                if !pgrx::varatt_is_1b_e(value) && !pgrx::varatt_is_4b_c(value) {
                    continue;
                }
                caught(|| in_scratch(|| !pg_sys::pg_detoast_datum(value).is_null()))
            };
            if let Err(error) = fetched {
                // SAFETY: promised by the caller.
                let row_id = tid::to_row_id(unsafe { (*slot).tts_tid }).unwrap_or(0);
                let detail = format!("column {} of row id {row_id}: {}", column.attnum, error.text);
                // SAFETY: the table is open, so its pg_class row is there.
                let toast = unsafe { (*(*self.state.rel).rd_rel).reltoastrelid };
                let relation = if toast == pg_sys::InvalidOid { relation::oid(self.state.rel) } else { toast };
                self.faults.add(Kind::Toast, relation, None, detail);
            }
        }
    }
}
