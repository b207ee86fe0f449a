//! Rows that are to be in an index against its entries, both ascending by row id.

use cass_storage::sort::SortedRows;
use pgrx::pg_sys;

use super::entries::Entries;
use super::Method;
use crate::check::Check;
use crate::pg::bytea;
use crate::pg::scratch::in_scratch;
use crate::pg::tid::OFFSETS;
use crate::pg::versions::descriptors;

/// Support function of B-trees that compares two values (`BTORDER_PROC`).
const COMPARE: u16 = 1;

/// An entry that was read, copied so that the sorted stream can move on.
type Entry = (u64, Vec<u8>);

impl Check<'_> {
    /// Tells of rows without an entry, with several, or with other values. Entries of rows that the snapshot does not see say nothing.
    ///
    /// # Safety
    /// `index` is an open index of the table, of this method.
    pub(super) unsafe fn compare(
        &mut self,
        index: pg_sys::Relation,
        method: Method,
        mut rows: SortedRows,
        mut entries: Entries,
    ) {
        let state = self.state;
        let mut entry = next(&mut entries.sorted).unwrap_or_else(|error| state.raise(&error));
        loop {
            pgrx::check_for_interrupts!();
            let Some((row_id, wanted)) = next(&mut rows).unwrap_or_else(|error| state.raise(&error)) else { return };
            let mut found = 0;
            let mut differ = false;
            while let Some((of_row, tuple)) = entry.as_ref().filter(|(of_row, _)| *of_row <= row_id) {
                if *of_row == row_id {
                    found += 1;
                    // SAFETY: promised by the caller; both are tuples of the index where its entries have values.
                    differ |= method == Method::Values && !unsafe { in_scratch(|| is_same(index, &wanted, tuple)) };
                }
                entry = next(&mut entries.sorted).unwrap_or_else(|error| state.raise(&error));
            }
            let block = (row_id / OFFSETS) as u32;
            if found == 0 && entries.lossy.binary_search(&block).is_err() {
                self.index_fault(index, row_id, "the index does not lead to the row");
            }
            if differ {
                self.index_fault(index, row_id, "the index has another value for the row than the table");
            }
            if found > 1 && method == Method::Values {
                self.index_fault(index, row_id, "the index leads to the row more than once");
            }
        }
    }
}

/// The next pair of a stream: the row id that its key starts with, and the payload.
fn next(sorted: &mut SortedRows) -> cass_storage::Result<Option<Entry>> {
    Ok(sorted.next()?.map(|(key, tuple)| {
        let row_id = key.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        (row_id, tuple.to_vec())
    }))
}

/// Whether two tuples of a B-tree have the same values, by their bytes or else by the order of the index.
///
/// # Safety
/// `index` is an open B-tree; both are whole tuples of it. Called in memory that is given back.
unsafe fn is_same(index: pg_sys::Relation, wanted: &[u8], found: &[u8]) -> bool {
    let (a, b) = (deform(index, wanted), deform(index, found));
    // SAFETY: promised by the caller; an open index has a descriptor, collations and support functions.
    unsafe {
        let attributes = descriptors::attributes((*index).rd_att);
        let keys = usize::try_from((*(*index).rd_index).indnkeyatts).unwrap_or(0);
        attributes.iter().enumerate().all(|(column, attribute)| {
            if a.nulls[column] || b.nulls[column] {
                return a.nulls[column] == b.nulls[column];
            }
            let (a, b) = (a.values[column], b.values[column]);
            // The key's bytes may give back a value that is equal and has another form than the one that was written.
            is_same_image(attribute, a, b) || (column < keys && attribute.attlen != -2 && is_equal(index, column, a, b))
        })
    }
}

/// Whether the order of an index takes two values of a key column, neither of them null, for equal.
///
/// # Safety
/// `index` is an open B-tree with such a column, and the values are of entries of it.
pub(super) unsafe fn is_equal(index: pg_sys::Relation, column: usize, a: pg_sys::Datum, b: pg_sys::Datum) -> bool {
    // SAFETY: promised by the caller; an open index has collations and support functions.
    unsafe {
        let compare = pg_sys::index_getprocinfo(index, column as i16 + 1, COMPARE);
        let collation = *(*index).rd_indcollation.add(column);
        pg_sys::FunctionCall2Coll(compare, collation, a, b).value() as i32 == 0
    }
}

/// Values of an index tuple.
pub(super) struct Values {
    pub(super) values: [pg_sys::Datum; pg_sys::INDEX_MAX_KEYS as usize],
    pub(super) nulls: [bool; pg_sys::INDEX_MAX_KEYS as usize],
}

/// The values of an index tuple, whose bytes are copied to where they are aligned.
pub(super) fn deform(index: pg_sys::Relation, tuple: &[u8]) -> Values {
    let mut values = Values {
        values: [pg_sys::Datum::from(0); pg_sys::INDEX_MAX_KEYS as usize],
        nulls: [true; pg_sys::INDEX_MAX_KEYS as usize],
    };
    // SAFETY: palloc gives aligned memory for all bytes; the callers hand over whole tuples of the index, which is open.
    unsafe {
        let copy = pg_sys::palloc(tuple.len().max(8)).cast::<u8>();
        std::ptr::copy_nonoverlapping(tuple.as_ptr(), copy, tuple.len());
        let (datums, nulls) = (values.values.as_mut_ptr(), values.nulls.as_mut_ptr());
        pg_sys::index_deform_tuple(copy.cast(), (*index).rd_att, datums, nulls);
    }
    values
}

/// Whether two values that are not null have the same bytes, once they are decompressed.
///
/// # Safety
/// Both are values of the attribute's type.
unsafe fn is_same_image(attribute: &pg_sys::FormData_pg_attribute, a: pg_sys::Datum, b: pg_sys::Datum) -> bool {
    if attribute.attbyval {
        return a.value() == b.value();
    }
    // SAFETY: promised by the caller; the length tells how far a value may be read.
    unsafe {
        match usize::try_from(attribute.attlen) {
            Ok(length) => {
                let bytes = |value: pg_sys::Datum| std::slice::from_raw_parts(value.cast_mut_ptr::<u8>(), length);
                bytes(a) == bytes(b)
            }
            Err(_) if attribute.attlen == -1 => {
                let bytes = |value: pg_sys::Datum| {
                    let plain = pg_sys::pg_detoast_datum_packed(value.cast_mut_ptr());
                    bytea::bytes_of(pg_sys::Datum::from(plain))
                };
                bytes(a) == bytes(b)
            }
            Err(_) => {
                let text = |value: pg_sys::Datum| std::ffi::CStr::from_ptr(value.cast_mut_ptr());
                text(a) == text(b)
            }
        }
    }
}
