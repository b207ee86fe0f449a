//! The rows that are to be in an index, as the table has them.

use cass_storage::sort::{ExternalSorter, SortedRows};
use pgrx::pg_sys;

use super::entries::tuple_bytes;
use super::unique::Keys;
use super::Method;
use crate::check::{sort_directory, sort_memory, Check};
use crate::pg::index_values::Evaluation;
use crate::pg::scratch::in_scratch;
use crate::pg::tid;
use crate::pg::versions::scans;
use crate::read::{MergedScan, ScanSpec};

/// The values that an index has of a row.
pub(super) struct Indexed<'a> {
    pub(super) row_id: u64,
    pub(super) values: &'a mut [pg_sys::Datum; pg_sys::INDEX_MAX_KEYS as usize],
    pub(super) nulls: &'a mut [bool; pg_sys::INDEX_MAX_KEYS as usize],
}

/// Strategy number of `=` for hash indexes (`HTEqualStrategyNumber`).
const HASH_EQUAL: i16 = 1;

impl Check<'_> {
    /// Row ids of the rows that are to be in an index, ascending, each with the entry it should have where that says something. Their keys
    /// are added to `keys` as well, if there are to be no equal ones.
    ///
    /// # Safety
    /// `index` is an open index of the table, of this method; `keys` are of it.
    pub(super) unsafe fn indexed_rows(
        &mut self,
        index: pg_sys::Relation,
        method: Method,
        keys: &mut Option<Keys>,
    ) -> SortedRows {
        let state = self.state;
        let mut sorter = ExternalSorter::with_directory(sort_memory(), sort_directory(state));
        // SAFETY: promised by the caller; the entry is formed by the index's descriptor and copied out of the scratch memory.
        unsafe {
            self.each_indexed(index, |row| {
                if let Some(keys) = keys {
                    keys.push(row);
                }
                let pushed = in_scratch(|| {
                    let tuple = match method {
                        Method::Values => {
                            let (values, nulls) = (row.values.as_mut_ptr(), row.nulls.as_mut_ptr());
                            tuple_bytes(pg_sys::index_form_tuple((*index).rd_att, values, nulls))
                        }
                        _ => &[],
                    };
                    sorter.push(&row.row_id.to_be_bytes(), tuple)
                });
                pushed.unwrap_or_else(|error| state.raise(&error));
            });
        }
        sorter.finish().unwrap_or_else(|error| state.raise(&error))
    }

    /// Looks each row up by its value.
    ///
    /// # Safety
    /// `index` is an open hash index of the table.
    pub(super) unsafe fn look_up_rows(&mut self, index: pg_sys::Relation) {
        let (rel, snapshot) = (self.state.rel, self.snapshot);
        let mut missing = Vec::new();
        // SAFETY: promised by the caller; an open index has its operator families, input types and collations.
        unsafe {
            let (family, input) = (*(*index).rd_opfamily, *(*index).rd_opcintype);
            let collation = *(*index).rd_indcollation;
            let equal = pg_sys::get_opcode(pg_sys::get_opfamily_member(family, input, input, HASH_EQUAL));
            self.each_indexed(index, |row| {
                // NULL has no entry.
                if !row.nulls[0] && !in_scratch(|| finds(rel, index, snapshot, (equal, collation), row)) {
                    missing.push(row.row_id);
                }
                // Told while the scan goes on, so that there are never many.
                missing.truncate(MOST_MISSING);
            });
        }
        for row_id in missing {
            self.index_fault(index, row_id, "the index does not lead to the row");
        }
    }

    /// Calls `take` with every row that is to be in an index.
    ///
    /// # Safety
    /// `index` is an open index of the table.
    unsafe fn each_indexed(&self, index: pg_sys::Relation, mut take: impl FnMut(&mut Indexed<'_>)) {
        let mut values = [pg_sys::Datum::from(0); pg_sys::INDEX_MAX_KEYS as usize];
        let mut nulls = [false; pg_sys::INDEX_MAX_KEYS as usize];
        // SAFETY: promised by the caller; what is begun here is ended here, or by the rollback after an error.
        unsafe {
            let info = pg_sys::BuildIndexInfo(index);
            let evaluation = Evaluation::begin(self.state.rel, info);
            let mut scan = MergedScan::begin_as(self.state.clone(), self.snapshot, ScanSpec::everything());
            while scan.next(evaluation.slot) {
                if evaluation.values(info, &mut values, &mut nulls) {
                    let row_id = tid::to_row_id((*evaluation.slot).tts_tid).unwrap_or(0);
                    take(&mut Indexed { row_id, values: &mut values, nulls: &mut nulls });
                }
            }
            scan.end();
            evaluation.end(info);
        }
    }
}

/// Rows missing in a hash index that are told at most.
const MOST_MISSING: usize = 10_000;

/// Whether a look-up of a row's value leads to the row.
///
/// # Safety
/// `index` is an open hash index of the open table `rel`; the snapshot is valid.
unsafe fn finds(
    rel: pg_sys::Relation,
    index: pg_sys::Relation,
    snapshot: pg_sys::Snapshot,
    (equal, collation): (pg_sys::Oid, pg_sys::Oid),
    row: &Indexed<'_>,
) -> bool {
    let mut key = pg_sys::ScanKeyData::default();
    let mut found = false;
    // SAFETY: promised by the caller; the scan copies its key.
    unsafe {
        let (strategy, any) = (HASH_EQUAL as pg_sys::StrategyNumber, pg_sys::InvalidOid);
        pg_sys::ScanKeyEntryInitialize(&raw mut key, 0, 1, strategy, any, collation, equal, row.values[0]);
        let scan = scans::begin(rel, index, snapshot, 1);
        pg_sys::index_rescan(scan, &raw mut key, 1, std::ptr::null_mut(), 0);
        while !found {
            pgrx::check_for_interrupts!();
            let tid = pg_sys::index_getnext_tid(scan, pg_sys::ScanDirection::ForwardScanDirection);
            if tid.is_null() {
                break;
            }
            found = tid::to_row_id(*tid) == Some(row.row_id);
        }
        pg_sys::index_endscan(scan);
    }
    found
}
