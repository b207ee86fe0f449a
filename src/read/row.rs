//! Stored rows as values of a slot, and values as cells.

use super::TableState;
use crate::catalog::Column;
use crate::pg::versions::descriptors;
use crate::pg::{bytea, tid};
use cass_storage::row::{Cell, RowBuilder, RowView};
use pgrx::pg_sys;

/// Which columns a reader wants, by attribute number.
#[derive(Clone, Debug, Default)]
pub enum ColumnSet {
    /// Every column.
    #[default]
    All,
    /// Those whose entry (attnum - 1) is true.
    Some(Vec<bool>),
}

impl ColumnSet {
    /// Whether column `attnum` is wanted.
    pub fn contains(&self, attnum: u16) -> bool {
        match self {
            ColumnSet::All => true,
            ColumnSet::Some(wanted) => wanted.get(usize::from(attnum) - 1).copied().unwrap_or(false),
        }
    }
}

/// Fills `slot` with a stored row. Values are allocated in the current memory context.
///
/// # Safety
/// `slot` is a virtual slot with the table's descriptor.
pub unsafe fn store(
    state: &TableState,
    key: &[u8],
    view: &dyn RowView,
    columns: &ColumnSet,
    slot: *mut pg_sys::TupleTableSlot,
) {
    // SAFETY: the slot has room for all columns of its descriptor, which are filled before it is marked as stored.
    unsafe {
        pg_sys::ExecClearTuple(slot);
        let descriptor = (*slot).tts_tupleDescriptor;
        let natts = (*descriptor).natts as usize;
        let values = std::slice::from_raw_parts_mut((*slot).tts_values, natts);
        let nulls = std::slice::from_raw_parts_mut((*slot).tts_isnull, natts);
        fill(state, key, view, columns, descriptor, values, nulls);
        pg_sys::ExecStoreVirtualTuple(slot);
        (*slot).tts_tid = tid::from_row_id(view.header().row_id);
        (*slot).tts_tableOid = (*state.rel).rd_id;
    }
}

/// Fills in the values of a stored row, in the current memory context; columns that are not wanted become null.
///
/// # Safety
/// `descriptor` is the table's, or what it was before the ALTER TABLE that reads it.
pub unsafe fn fill(
    state: &TableState,
    key: &[u8],
    view: &dyn RowView,
    columns: &ColumnSet,
    descriptor: pg_sys::TupleDesc,
    values: &mut [pg_sys::Datum],
    nulls: &mut [bool],
) {
    let known = view.header().natts;
    // SAFETY: promised by the caller; a descriptor has an entry for each of its columns.
    let attributes = unsafe { descriptors::attributes(descriptor) };
    for (index, column) in state.table.columns.iter().enumerate().take(values.len()) {
        let attnum = index as u16 + 1;
        nulls[index] = true;
        values[index] = pg_sys::Datum::from(0);
        // By the reader's descriptor: a rewrite computes new values from a column that the same ALTER TABLE has dropped.
        let dropped = attributes[index].attisdropped;
        if dropped || (column.in_key && state.key.is_some()) || !columns.contains(attnum) {
            continue;
        }
        if attnum > known {
            // SAFETY: attnum lies within the descriptor.
            values[index] = unsafe { pg_sys::getmissingattr(descriptor, i32::from(attnum), &mut nulls[index]) };
            continue;
        }
        match view.cell(attnum) {
            Ok(Cell::Absent | Cell::Null) => {}
            Ok(Cell::Value(bytes)) => {
                // By the reader's descriptor: while ALTER TABLE rewrites, the catalogs have the new types already.
                values[index] = datum_of(state, attributes[index].attlen, attributes[index].attbyval, bytes);
                nulls[index] = false;
            }
            Ok(Cell::External(image)) => {
                values[index] = copy(image);
                nulls[index] = false;
            }
            Err(error) => state.raise(&error),
        }
    }
    if let Some(table_key) = &state.key {
        table_key.decode_into(key, values, nulls);
    }
}

/// The datum of a cell's bytes.
fn datum_of(state: &TableState, type_len: i16, by_value: bool, bytes: &[u8]) -> pg_sys::Datum {
    let length = usize::try_from(type_len).unwrap_or(0);
    if type_len > 0 && bytes.len() != length {
        state.raise(&cass_storage::StorageError::damaged("a value has another length than its type"));
    }
    if by_value {
        let mut word = [0u8; 8];
        word[..length.min(8)].copy_from_slice(&bytes[..length.min(8)]);
        return sign_extended(i64::from_le_bytes(word), length);
    }
    match type_len {
        -1 => bytea::from_bytes(bytes),
        _ => copy(bytes),
    }
}

/// A by-value datum as PostgreSQL's own macros make it: sign-extended from the type's width (one byte is unsigned).
fn sign_extended(word: i64, length: usize) -> pg_sys::Datum {
    match length {
        2 => pg_sys::Datum::from(word as i16),
        4 => pg_sys::Datum::from(word as i32),
        _ => pg_sys::Datum::from(word),
    }
}

/// Copies bytes into the current memory context.
fn copy(bytes: &[u8]) -> pg_sys::Datum {
    // SAFETY: palloc returns room for all bytes, or raises.
    unsafe {
        let target = pg_sys::palloc(bytes.len().max(1)).cast::<u8>();
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len());
        pg_sys::Datum::from(target)
    }
}

/// Adds the cell of a value that is not null.
///
/// # Safety
/// `datum` is a value of the column's type.
pub unsafe fn set_cell(builder: &mut RowBuilder, attnum: u16, column: &Column, datum: pg_sys::Datum) {
    if column.by_value {
        let bytes = (datum.value() as u64).to_le_bytes();
        builder.set_value(attnum, &bytes[..usize::try_from(column.type_len).unwrap_or(8).min(8)]);
        return;
    }
    let pointer = datum.cast_mut_ptr::<u8>();
    // SAFETY: the caller promises a value of the column's type, so its length says how far it may be read.
    unsafe {
        match column.type_len {
            -1 => {
                let varlena = pointer.cast::<pg_sys::varlena>();
                if pgrx::varatt_is_1b_e(varlena) || pgrx::varatt_is_4b_c(varlena) {
                    let size = pgrx::varsize_any(varlena);
                    builder.set_external(attnum, std::slice::from_raw_parts(pointer, size));
                } else {
                    builder.set_value(attnum, bytea::bytes_of(datum));
                }
            }
            -2 => {
                let text = std::ffi::CStr::from_ptr(pointer.cast());
                builder.set_value(attnum, text.to_bytes_with_nul());
            }
            length => {
                let length = usize::try_from(length).unwrap_or(0);
                builder.set_value(attnum, std::slice::from_raw_parts(pointer, length));
            }
        }
    }
}
