//! A slot's values as a row version: large values are moved out, key columns go into the key, the rest become cells.

use crate::pg::externs::{toast_delete, toast_new_tuple};
use crate::read::{row, ColumnSet, TableState};
use cass_storage::row::{Cell, EncodedRow, RowBuilder, RowHeader, RowKind, RowView};
use pgrx::pg_sys;

/// Values wider than this in all are given to the toaster (`TOAST_TUPLE_THRESHOLD` of 8 kB pages).
const TOAST_THRESHOLD: usize = 2032;

/// Microseconds from the Unix epoch to PostgreSQL's (2000-01-01).
const EPOCH_MICROSECONDS: i64 = 946_684_800_000_000;

/// The write time of the running statement, in microseconds since the Unix epoch.
pub fn write_time() -> i64 {
    // SAFETY: reads the statement's start time.
    unsafe { pg_sys::GetCurrentStatementStartTimestamp() + EPOCH_MICROSECONDS }
}

/// A slot's values, copied out of it.
pub struct Values {
    pub values: Vec<pg_sys::Datum>,
    pub nulls: Vec<bool>,
}

impl Values {
    /// Reads all columns of a slot.
    ///
    /// # Safety
    /// `slot` holds a row and outlives the values.
    pub unsafe fn of_slot(slot: *mut pg_sys::TupleTableSlot) -> Values {
        // SAFETY: slot_getallattrs fills both arrays for all columns of the descriptor.
        unsafe {
            pg_sys::slot_getallattrs(slot);
            let natts = (*(*slot).tts_tupleDescriptor).natts as usize;
            Values {
                values: std::slice::from_raw_parts((*slot).tts_values, natts).to_vec(),
                nulls: std::slice::from_raw_parts((*slot).tts_isnull, natts).to_vec(),
            }
        }
    }
}

impl Values {
    /// The same values, copied into the current memory context.
    ///
    /// # Safety
    /// They are those of a row of `rel`.
    pub unsafe fn detached(mut self, rel: pg_sys::Relation) -> Values {
        // SAFETY: promised by the caller; the deformed values point into the tuple, which is in the current context.
        unsafe {
            let descriptor = (*rel).rd_att;
            let tuple = pg_sys::heap_form_tuple(descriptor, self.values.as_mut_ptr(), self.nulls.as_mut_ptr());
            pg_sys::heap_deform_tuple(tuple, descriptor, self.values.as_mut_ptr(), self.nulls.as_mut_ptr());
        }
        self
    }
}

/// Encodes a row version. Large values are written to the TOAST table, so that this is done once the key is held.
///
/// # Safety
/// `values` are those of a row of the table.
pub unsafe fn encode(state: &TableState, values: &Values, row_id: u64) -> Vec<u8> {
    // SAFETY: promised by the caller.
    unsafe { encode_as(state, values, row_id, false) }
}

/// Encodes a row version that takes the place of a stored one of the same table, whose moved-out values it keeps.
///
/// # Safety
/// `values` are those of a row of the table; the stored version is given up.
pub unsafe fn encode_again(state: &TableState, values: &Values, row_id: u64) -> Vec<u8> {
    // SAFETY: promised by the caller.
    unsafe { encode_as(state, values, row_id, true) }
}

/// # Safety
/// As [`encode`], or [`encode_again`] where `keeps_moved_out`.
unsafe fn encode_as(state: &TableState, values: &Values, row_id: u64, keeps_moved_out: bool) -> Vec<u8> {
    let placed = state.key.is_some();
    let mut values = Values { values: values.values.clone(), nulls: values.nulls.clone() };
    for (column, null) in state.table.columns.iter().zip(&mut values.nulls) {
        *null |= column.dropped || (placed && column.in_key);
    }
    // SAFETY: promised by the caller.
    unsafe {
        if !keeps_moved_out {
            toast(state, &mut values);
        }
    }
    let header = RowHeader {
        kind: RowKind::Row,
        row_id,
        write_time: write_time(),
        marker: true,
        expiry: None,
        natts: values.values.len() as u16,
    };
    let mut builder = RowBuilder::new(header);
    for (index, column) in state.table.columns.iter().enumerate() {
        if column.dropped || (placed && column.in_key) {
            continue;
        }
        let attnum = index as u16 + 1;
        match (values.nulls.get(index), values.values.get(index)) {
            // SAFETY: promised by the caller.
            (Some(false), Some(value)) => unsafe { row::set_cell(&mut builder, attnum, column, *value) },
            _ => builder.set_null(attnum),
        }
    }
    builder.encode()
}

/// Encodes the tombstone of a row; `kind` tells whether the row is gone or has another key.
pub fn encode_tombstone(kind: RowKind, row_id: u64) -> Vec<u8> {
    let header = RowHeader { kind, row_id, write_time: write_time(), marker: false, expiry: None, natts: 0 };
    RowBuilder::new(header).encode()
}

/// Deletes the moved-out values of a version that was replaced in the delta.
pub fn delete_moved_out(state: &TableState, replaced: &[u8]) {
    let version = match EncodedRow::parse(replaced) {
        Ok(version) => version,
        Err(error) => state.raise(&error),
    };
    for (index, column) in state.table.columns.iter().enumerate() {
        if column.type_len != -1 {
            continue;
        }
        match version.cell(index as u16 + 1) {
            // SAFETY: the image is one that the toaster wrote into a row of this table.
            Ok(Cell::External(image)) if is_on_disk(image) => unsafe { toast_delete(state.rel, image) },
            Ok(_) => {}
            Err(error) => state.raise(&error),
        }
    }
}

/// Whether a varlena's image is a pointer into a TOAST table (`VARATT_IS_EXTERNAL_ONDISK`).
pub fn is_on_disk(image: &[u8]) -> bool {
    matches!(image, [1, tag, ..] if u32::from(*tag) == pg_sys::vartag_external::VARTAG_ONDISK)
}

/// Puts `values` into the slot, with the columns `unnamed` as an older version has them. A value that is there all the same,
/// since a BEFORE trigger set it, stays.
///
/// # Safety
/// `slot` is a virtual slot of the table; the values lie in memory that is not the slot's.
pub unsafe fn complete(
    state: &TableState,
    slot: *mut pg_sys::TupleTableSlot,
    values: &Values,
    unnamed: &[u16],
    older: Option<(&[u8], &dyn RowView)>,
) {
    // SAFETY: promised by the caller. All values are copied before the memory they lie in is given back.
    unsafe {
        let table = (*slot).tts_tableOid;
        let descriptor = (*slot).tts_tupleDescriptor;
        let mut values = Values { values: values.values.clone(), nulls: values.nulls.clone() };
        if let Some((key, older)) = older {
            let wanted = (1..=values.values.len() as u16).map(|attnum| unnamed.contains(&attnum)).collect();
            let mut old = Values { values: values.values.clone(), nulls: vec![true; values.nulls.len()] };
            row::fill(state, key, older, &ColumnSet::Some(wanted), descriptor, &mut old.values, &mut old.nulls);
            for index in unnamed.iter().map(|attnum| usize::from(*attnum) - 1) {
                if values.nulls[index] {
                    (values.values[index], values.nulls[index]) = (old.values[index], old.nulls[index]);
                }
            }
        }
        let tuple = pg_sys::heap_form_tuple(descriptor, values.values.as_mut_ptr(), values.nulls.as_mut_ptr());
        pg_sys::ExecForceStoreHeapTuple(tuple, slot, false);
        pg_sys::ExecMaterializeSlot(slot);
        (*slot).tts_tableOid = table;
    }
}

/// Compresses and moves out large values, and brings in values that lie in another table's TOAST table.
unsafe fn toast(state: &TableState, values: &mut Values) {
    let mut width = 0;
    let mut foreign = false;
    for (index, column) in state.table.columns.iter().enumerate() {
        if column.type_len != -1 || values.nulls.get(index).copied().unwrap_or(true) {
            continue;
        }
        let varlena = values.values[index].cast_mut_ptr::<pg_sys::varlena>();
        // SAFETY: a value of a variable-length type that is not null points to a varlena.
        unsafe {
            foreign |= pgrx::varatt_is_1b_e(varlena);
            width += pgrx::varsize_any(varlena);
        }
    }
    if !foreign && width <= TOAST_THRESHOLD {
        return;
    }
    // SAFETY: the descriptor is the table's; the deformed values point into the toasted tuple, which stays in the
    // current memory context.
    unsafe {
        let descriptor = (*state.rel).rd_att;
        let tuple = pg_sys::heap_form_tuple(descriptor, values.values.as_mut_ptr(), values.nulls.as_mut_ptr());
        let toasted = toast_new_tuple(state.rel, tuple);
        pg_sys::heap_deform_tuple(toasted, descriptor, values.values.as_mut_ptr(), values.nulls.as_mut_ptr());
    }
}
