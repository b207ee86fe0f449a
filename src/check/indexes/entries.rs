//! The entries of an index, sorted by the row ids they lead to.

use cass_storage::sort::{ExternalSorter, SortedRows};
use pgrx::pg_sys;

use super::Method;
use crate::check::{sort_directory, sort_memory, Check};
use crate::pg::tid;
use crate::pg::versions::scans;

/// Entries of an index, ascending by row id.
pub(super) struct Entries {
    pub(super) sorted: SortedRows,
    /// Virtual blocks, ascending, of whose rows a bitmap that outgrew its memory told no more than that there may be some.
    pub(super) lossy: Vec<u32>,
}

/// Gathers entries. Several of one row are kept apart by their number.
struct Gatherer<'a, 'b> {
    check: &'a Check<'b>,
    sorter: ExternalSorter,
    count: u64,
}

impl Gatherer<'_, '_> {
    /// Adds an entry; one whose TID is of no row of a cass table leads to none.
    fn push(&mut self, tid: pg_sys::ItemPointerData, tuple: &[u8]) {
        let Some(row_id) = tid::to_row_id(tid) else { return };
        let mut entry = [0; 16];
        entry[..8].copy_from_slice(&row_id.to_be_bytes());
        entry[8..].copy_from_slice(&self.count.to_be_bytes());
        self.count += 1;
        if let Err(error) = self.sorter.push(&entry, tuple) {
            self.check.state.raise(&error);
        }
    }
}

impl Check<'_> {
    /// All entries of an index.
    ///
    /// # Safety
    /// `index` is an open index of the table, of this method.
    pub(super) unsafe fn entries(&self, index: pg_sys::Relation, method: Method) -> Entries {
        let sorter = ExternalSorter::with_directory(sort_memory(), sort_directory(self.state));
        let mut gatherer = Gatherer { check: self, sorter, count: 0 };
        let mut lossy = Vec::new();
        // SAFETY: promised by the caller.
        unsafe {
            match method {
                Method::Bitmap => lossy = self.by_bitmap(index, &mut gatherer),
                _ => self.one_by_one(index, method == Method::Values, &mut gatherer),
            }
        }
        let sorted = gatherer.sorter.finish().unwrap_or_else(|error| self.state.raise(&error));
        Entries { sorted, lossy }
    }

    /// # Safety
    /// As [`Check::entries`]; the access method gives all entries one by one, and their tuples if `with_values`.
    unsafe fn one_by_one(&self, index: pg_sys::Relation, with_values: bool, gatherer: &mut Gatherer<'_, '_>) {
        // SAFETY: promised by the caller; a tuple is copied before the scan moves on.
        unsafe {
            let scan = scans::begin(self.state.rel, index, self.snapshot, 0);
            (*scan).xs_want_itup = with_values;
            pg_sys::index_rescan(scan, std::ptr::null_mut(), 0, std::ptr::null_mut(), 0);
            loop {
                pgrx::check_for_interrupts!();
                let tid = pg_sys::index_getnext_tid(scan, pg_sys::ScanDirection::ForwardScanDirection);
                if tid.is_null() {
                    break;
                }
                let tuple = if with_values { tuple_bytes((*scan).xs_itup) } else { &[] };
                gatherer.push(*tid, tuple);
            }
            pg_sys::index_endscan(scan);
        }
    }

    /// # Safety
    /// As [`Check::entries`]; the access method gives all entries as a bitmap.
    unsafe fn by_bitmap(&self, index: pg_sys::Relation, gatherer: &mut Gatherer<'_, '_>) -> Vec<u32> {
        let mut lossy = Vec::new();
        // SAFETY: promised by the caller; bitmap and iterator are freed here, or with their memory context.
        unsafe {
            let bitmap = scans::bitmap_of(index, self.snapshot, sort_memory());
            scans::each_block(bitmap, |found| {
                pgrx::check_for_interrupts!();
                if found.lossy {
                    lossy.push(found.number);
                }
                for offset in found.offsets() {
                    let block = pg_sys::BlockIdData { bi_hi: (found.number >> 16) as u16, bi_lo: found.number as u16 };
                    gatherer.push(pg_sys::ItemPointerData { ip_blkid: block, ip_posid: *offset }, &[]);
                }
            });
            pg_sys::tbm_free(bitmap);
        }
        lossy
    }
}

/// The bytes of an index tuple.
///
/// # Safety
/// `tuple` is one, which outlives `'a` and is not written meanwhile.
pub(super) unsafe fn tuple_bytes<'a>(tuple: pg_sys::IndexTuple) -> &'a [u8] {
    // SAFETY: promised by the caller; the low bits of `t_info` are the length of the tuple.
    unsafe {
        let length = u32::from((*tuple).t_info) & pg_sys::INDEX_SIZE_MASK;
        std::slice::from_raw_parts(tuple.cast::<u8>(), length as usize)
    }
}
