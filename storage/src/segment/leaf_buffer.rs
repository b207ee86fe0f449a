//! Rows gathered for leaves, column by column, and their encoding.
//!
//! A leaf's *body* is: number of rows (u16), number of sections and length of each (varints), then the sections:
//! keys, row ids, kinds and flags, write times, expiries, numbers of attributes, extras, and one for each column.

use super::encoding::column::ColumnBuffer;
use super::encoding::ints;
use super::keys::KeyBuffer;
use super::{Column, ColumnClass};
use crate::bytes::put_varint;
use crate::error::{Result, StorageError};
use crate::row::{self, Cell, CellTimes, RowKind, RowView, HAS_EXPIRY, HAS_RANGE_END, HAS_TIMES, MARKER};

/// Rows that a leaf has at most.
pub(super) const MAX_LEAF_ROWS: usize = 8192;
/// Sections before those of the columns.
pub(super) const FIXED_SECTIONS: usize = 7;

/// Rows that are not in a leaf yet.
pub(super) struct LeafBuffer {
    pub(super) keys: KeyBuffer,
    row_ids: Vec<u64>,
    flags: Vec<u64>,
    write_times: Vec<u64>,
    expiries: Vec<u64>,
    natts: Vec<u64>,
    /// Times of cells and range ends of the rows that have any.
    extras: ColumnBuffer,
    columns: Vec<(u16, ColumnBuffer)>,
    times: Vec<(u16, CellTimes)>,
}

/// What the writer's statistics need of a row.
pub(super) struct Pushed {
    /// Bytes of key and values.
    pub(super) bytes: usize,
    /// Expiries of single cells.
    pub(super) cell_expiries: Option<(i64, i64)>,
}

impl LeafBuffer {
    pub(super) fn new(columns: &[Column]) -> Self {
        LeafBuffer {
            keys: KeyBuffer::default(),
            row_ids: Vec::new(),
            flags: Vec::new(),
            write_times: Vec::new(),
            expiries: Vec::new(),
            natts: Vec::new(),
            extras: ColumnBuffer::new(ColumnClass::Bytes),
            columns: columns.iter().map(|column| (column.attnum, ColumnBuffer::new(column.class))).collect(),
            times: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Row ids of the first `rows` rows.
    pub(super) fn row_ids(&self, rows: usize) -> &[u64] {
        &self.row_ids[..rows]
    }

    pub(super) fn push(&mut self, key: &[u8], partition_len: usize, row: &dyn RowView) -> Result<Pushed> {
        let header = row.header();
        if header.kind == RowKind::Anchor {
            return Err(StorageError::Refused { what: "an anchor does not belong in a segment" });
        }
        let mut bytes = key.len();
        self.times.clear();
        for (attnum, buffer) in &mut self.columns {
            bytes += buffer.push(row.cell(*attnum)?)?;
            if let Some(times) = row.cell_times(*attnum)? {
                self.times.push((*attnum, times));
            }
        }
        let range_end = row.range_end();
        let mut flags = header.kind as u8;
        for (set, bit) in [
            (header.marker, MARKER),
            (header.expiry.is_some(), HAS_EXPIRY),
            (!self.times.is_empty(), HAS_TIMES),
            (range_end.is_some(), HAS_RANGE_END),
        ] {
            if set {
                flags |= bit;
            }
        }
        if flags & (HAS_TIMES | HAS_RANGE_END) == 0 {
            self.extras.push(Cell::Absent)?;
        } else {
            let mut extras = Vec::new();
            row::put_extras(&mut extras, &self.times, header.write_time, range_end);
            bytes += self.extras.push(Cell::Value(&extras))?;
        }
        self.keys.push(key, partition_len);
        self.row_ids.push(header.row_id);
        self.flags.push(u64::from(flags));
        self.write_times.push(header.write_time as u64);
        // A row without an expiry repeats the last, which costs least.
        let last = self.expiries.last().copied().unwrap_or(0);
        self.expiries.push(header.expiry.map_or(last, |expiry| expiry as u64));
        self.natts.push(u64::from(header.natts));
        let expiries = self.times.iter().filter_map(|(_, times)| times.expiry);
        let cell_expiries = expiries.fold(None, |range: Option<(i64, i64)>, expiry| {
            let (low, high) = range.unwrap_or((expiry, expiry));
            Some((low.min(expiry), high.max(expiry)))
        });
        Ok(Pushed { bytes, cell_expiries })
    }

    /// Appends the body of a leaf of the first `rows` rows.
    pub(super) fn encode(&self, out: &mut Vec<u8>, rows: usize) {
        let mut sections = Vec::with_capacity(16 * 1024);
        let mut ends = Vec::with_capacity(FIXED_SECTIONS + self.columns.len());
        self.keys.encode(&mut sections, rows);
        ends.push(sections.len());
        for numbers in [&self.row_ids, &self.flags, &self.write_times, &self.expiries, &self.natts] {
            ints::encode_column(&mut sections, &numbers[..rows]);
            ends.push(sections.len());
        }
        self.extras.encode(&mut sections, rows);
        ends.push(sections.len());
        for (_, column) in &self.columns {
            column.encode(&mut sections, rows);
            ends.push(sections.len());
        }
        out.extend_from_slice(&(rows as u16).to_le_bytes());
        put_varint(out, ends.len() as u64);
        let mut start = 0;
        for end in ends {
            put_varint(out, (end - start) as u64);
            start = end;
        }
        out.extend_from_slice(&sections);
    }

    pub(super) fn remove_first(&mut self, rows: usize) {
        self.keys.remove_first(rows);
        for numbers in [&mut self.row_ids, &mut self.flags, &mut self.write_times, &mut self.expiries, &mut self.natts]
        {
            numbers.drain(..rows);
        }
        self.extras.remove_first(rows);
        self.columns.iter_mut().for_each(|(_, column)| column.remove_first(rows));
    }
}
