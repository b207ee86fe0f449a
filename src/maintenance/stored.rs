//! How rows become rows of a segment.

use cass_storage::row::{Cell, CellTimes, RowHeader, RowKind, RowView};
use cass_storage::segment::Column;
use cass_storage::Result;

use crate::read::TableState;

/// The columns that segments of a table store: those that exist and that the key does not give back.
pub fn columns(state: &TableState) -> Vec<Column> {
    let placed = state.key.is_some();
    let stored = state.table.columns.iter().filter(|column| !(column.dropped || placed && column.in_key));
    stored.map(|column| Column { attnum: column.attnum, class: column.class }).collect()
}

/// Length of the partition's part of a key; 0 where there is none.
pub fn partition_len(state: &TableState, key: &[u8]) -> usize {
    state.partition_of(key).map_or(0, <[u8]>::len)
}

/// A row under another header.
pub struct WithHeader<'a> {
    pub row: &'a dyn RowView,
    pub header: RowHeader,
}

impl RowView for WithHeader<'_> {
    fn header(&self) -> &RowHeader {
        &self.header
    }

    fn cell(&self, attnum: u16) -> Result<Cell<'_>> {
        self.row.cell(attnum)
    }

    fn cell_times(&self, attnum: u16) -> Result<Option<CellTimes>> {
        self.row.cell_times(attnum)
    }

    fn range_end(&self) -> Option<&[u8]> {
        self.row.range_end()
    }
}

/// A tombstone in the place of a row.
pub struct Tombstone {
    header: RowHeader,
}

impl Tombstone {
    /// The tombstone that hides what the row hides.
    pub fn in_place_of(row: &RowHeader) -> Tombstone {
        let header = RowHeader { kind: RowKind::RowTombstone, marker: false, expiry: None, natts: 0, ..*row };
        Tombstone { header }
    }
}

impl RowView for Tombstone {
    fn header(&self) -> &RowHeader {
        &self.header
    }

    fn cell(&self, _attnum: u16) -> Result<Cell<'_>> {
        Ok(Cell::Absent)
    }

    fn cell_times(&self, _attnum: u16) -> Result<Option<CellTimes>> {
        Ok(None)
    }

    fn range_end(&self) -> Option<&[u8]> {
        None
    }
}

/// Whether a row has expired at `now` (seconds since the Unix epoch), and every cell that has an expiry of its own with it.
pub fn is_expired(row: &dyn RowView, columns: &[Column], now: i64) -> Result<bool> {
    let header = row.header();
    let gone = |expiry: Option<i64>| expiry.is_some_and(|expiry| expiry <= now);
    if header.kind != RowKind::Row || !gone(header.expiry) {
        return Ok(false);
    }
    for column in columns {
        let lives_on = row.cell_times(column.attnum)?.is_some_and(|times| !gone(times.expiry));
        if lives_on && matches!(row.cell(column.attnum)?, Cell::Value(_) | Cell::External(_)) {
            return Ok(false);
        }
    }
    Ok(true)
}
