//! One row version: whether it fits the table's columns, and whether its key is the one its values have.

use cass_storage::key::KeyReader;
use cass_storage::row::{Cell, RowKind, RowView};

use crate::catalog::{Column, TableKey};
use crate::pg::scratch::in_scratch;
use crate::pg::subtransaction::caught;
use crate::read::{row, ColumnSet, TableState};

/// Where a version was found.
#[derive(Clone, Copy)]
pub(super) enum Place {
    /// In a segment that says how much of its key is the partition's.
    Segment {
        partition_len: usize,
    },
    Delta,
}

/// Checks a version; what does not hold, as a clause without a full stop.
pub(super) fn check(state: &TableState, place: Place, key: &[u8], version: &dyn RowView) -> Result<(), String> {
    let header = version.header();
    match (place, header.kind) {
        (_, RowKind::Row | RowKind::RowTombstone) | (Place::Delta, RowKind::Moved | RowKind::Anchor) => {}
        (_, kind) => return Err(format!("a version of kind {kind:?} does not belong there")),
    }
    if (header.row_id == 0) != (header.kind == RowKind::Anchor) {
        return Err(format!("a version of kind {:?} has row id {}", header.kind, header.row_id));
    }
    if usize::from(header.natts) > state.table.columns.len() {
        return Err(format!("it has {} columns, and the table {}", header.natts, state.table.columns.len()));
    }
    for column in state.table.columns.iter().filter(|column| !column.dropped) {
        let cell = version.cell(column.attnum).map_err(|error| format!("column {}: {error}", column.attnum))?;
        check_cell(column, cell).map_err(|fault| format!("column {}: {fault}", column.attnum))?;
    }
    match state.key.as_deref() {
        // The row id that the row was inserted with; later versions of it have other ids and the same key.
        None if key.len() == size_of::<u64>() && key.iter().any(|byte| *byte != 0) => Ok(()),
        None => Err("its key is not a row id, as in a table without a primary key".into()),
        Some(table_key) => check_key(state, table_key, place, key, version),
    }
}

/// A key as messages show it.
pub(super) fn describe_key(state: &TableState, key: &[u8]) -> String {
    let described = state.key.as_deref().and_then(|table_key| {
        parts(table_key, key)?;
        caught(|| in_scratch(|| table_key.describe(key))).ok()
    });
    described.unwrap_or_else(|| format!("key {}", super::hex(key)))
}

fn check_cell(column: &Column, cell: Cell<'_>) -> Result<(), &'static str> {
    match cell {
        Cell::Absent | Cell::Null => Ok(()),
        Cell::Value(bytes) => match usize::try_from(column.type_len) {
            Ok(length) if bytes.len() != length => Err("the value has another length than its type"),
            Err(_)
                if column.type_len == -2 && bytes.iter().position(|byte| *byte == 0) != bytes.len().checked_sub(1) =>
            {
                Err("the text does not end where it says")
            }
            _ => Ok(()),
        },
        Cell::External(_) if column.type_len != -1 => Err("a value of fixed length cannot be moved out or compressed"),
        Cell::External(image) if is_pointer(image) || is_compressed(image) => Ok(()),
        Cell::External(_) => Err("the value is neither compressed nor a pointer to where it was moved"),
    }
}

/// Whether an image is a pointer into a TOAST table: header, tag, and 16 bytes (`varatt_external` of PostgreSQL's postgres.h).
fn is_pointer(image: &[u8]) -> bool {
    const LENGTH: usize = 18;
    image.len() == LENGTH
        && matches!(image, [1, tag, ..] if u32::from(*tag) == pgrx::pg_sys::vartag_external::VARTAG_ONDISK)
}

/// Whether an image is a value compressed in line: a header of four bytes whose lowest two bits say so and whose others are the
/// length (`VARATT_IS_4B_C`), and four bytes with the length before compression.
fn is_compressed(image: &[u8]) -> bool {
    let header = image.first_chunk::<4>().map_or(0, |header| u32::from_le_bytes(*header));
    image.len() >= 8 && header & 3 == 2 && header >> 2 == image.len() as u32
}

/// Lengths of the partition's part of a key and of all columns, or `None` where the bytes are not those of a key.
fn parts(table_key: &TableKey, key: &[u8]) -> Option<usize> {
    let mut reader = KeyReader::new(key);
    reader.take_token().ok()?;
    let mut partition_len = 0;
    for (index, column) in table_key.columns.iter().enumerate() {
        column.key_type.skip_key(&mut reader, column.order).ok()?;
        if index + 1 == table_key.partition_columns {
            partition_len = key.len() - reader.remaining().len();
        }
    }
    reader.remaining().is_empty().then_some(partition_len)
}

fn check_key(
    state: &TableState,
    table_key: &TableKey,
    place: Place,
    key: &[u8],
    version: &dyn RowView,
) -> Result<(), String> {
    let Some(found) = parts(table_key, key) else {
        return Err("its key does not consist of a token and the columns of the primary key".into());
    };
    if let Place::Segment { partition_len } = place {
        if partition_len != found {
            return Err(format!("{partition_len} bytes of its key are said to be the partition's, and {found} are"));
        }
    }
    // A version without cells lacks what the key does not give back.
    let inexact = table_key.columns.iter().any(|column| !column.key_type.is_exact());
    if inexact && version.header().kind != RowKind::Row {
        return Ok(());
    }
    match caught(|| in_scratch(|| encode(state, table_key, key, version))) {
        Ok(encoded) if encoded == key => Ok(()),
        Ok(encoded) => Err(format!("its values have key {}", super::hex(&encoded))),
        Err(error) => Err(format!("its key cannot be computed: {}", error.text)),
    }
}

/// The key that the values of a version have.
fn encode(state: &TableState, table_key: &TableKey, key: &[u8], version: &dyn RowView) -> Vec<u8> {
    let count = state.table.columns.len();
    let wanted = (1..=count).map(|attnum| table_key.is_key_column(attnum as i16)).collect();
    let mut values = vec![pgrx::pg_sys::Datum::from(0_usize); count];
    let mut nulls = vec![true; count];
    // SAFETY: the descriptor is the table's, which has as many columns; the values lie in the scratch memory of the caller.
    unsafe {
        let descriptor = (*state.rel).rd_att;
        row::fill(state, key, version, &ColumnSet::Some(wanted), descriptor, &mut values, &mut nulls);
    }
    table_key.encode_row(&values, &nulls).bytes
}
