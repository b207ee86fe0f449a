//! Building one version and encoding it.

use super::flags::{HAS_EXPIRY, HAS_RANGE_END, HAS_TIMES, MARKER};
use super::{Cell, CellTimes, RowHeader, RowKind, RowView};
use crate::bytes::{put_bytes, put_signed, put_varint};
use crate::error::Result;

/// Two bits a column.
pub(super) const STATE_ABSENT: u8 = 0;
pub(super) const STATE_NULL: u8 = 1;
pub(super) const STATE_VALUE: u8 = 2;
pub(super) const STATE_EXTERNAL: u8 = 3;

/// One version under construction. All columns are absent at first.
///
/// The builder is itself a [`RowView`], and can be used again after [`RowBuilder::reset`] without allocating.
#[derive(Clone, Debug)]
pub struct RowBuilder {
    header: RowHeader,
    /// State, and start and end in `data`, of each column up to the highest one set.
    cells: Vec<(u8, usize, usize)>,
    data: Vec<u8>,
    /// Ascending by column.
    times: Vec<(u16, CellTimes)>,
    range_end: Option<Vec<u8>>,
}

impl RowBuilder {
    /// A version without cells. `header.natts` rises to the highest column set.
    pub fn new(header: RowHeader) -> Self {
        RowBuilder { header, cells: Vec::new(), data: Vec::new(), times: Vec::new(), range_end: None }
    }

    /// Starts another version in the same memory.
    pub fn reset(&mut self, header: RowHeader) {
        self.header = header;
        self.cells.clear();
        self.data.clear();
        self.times.clear();
        self.range_end = None;
    }

    /// Changes what is said of the version as a whole, keeping its cells.
    pub fn set_header(&mut self, header: RowHeader) {
        let natts = header.natts.max(self.cells.len() as u16);
        self.header = RowHeader { natts, ..header };
    }

    /// Says nothing about column `attnum` (from 1).
    pub fn set_absent(&mut self, attnum: u16) {
        self.set(attnum, STATE_ABSENT, &[]);
    }

    /// Sets column `attnum` to null.
    pub fn set_null(&mut self, attnum: u16) {
        self.set(attnum, STATE_NULL, &[]);
    }

    /// Gives column `attnum` a value.
    pub fn set_value(&mut self, attnum: u16, value: &[u8]) {
        self.set(attnum, STATE_VALUE, value);
    }

    /// Gives column `attnum` a pointer to a value kept elsewhere.
    pub fn set_external(&mut self, attnum: u16, pointer: &[u8]) {
        self.set(attnum, STATE_EXTERNAL, pointer);
    }

    /// Gives the cell of column `attnum` times of its own; `None` gives it the row's again.
    pub fn set_times(&mut self, attnum: u16, times: Option<CellTimes>) {
        match (self.times.binary_search_by_key(&attnum, |(n, _)| *n), times) {
            (Ok(at), Some(times)) => self.times[at].1 = times,
            (Err(at), Some(times)) => self.times.insert(at, (attnum, times)),
            (Ok(at), None) => drop(self.times.remove(at)),
            (Err(_), None) => {}
        }
    }

    /// Sets the exclusive end of a range tombstone.
    pub fn set_range_end(&mut self, key: &[u8]) {
        self.range_end = Some(key.to_vec());
    }

    /// Takes over everything `row` says of its columns 1 to `natts`, but not its header.
    ///
    /// # Errors
    /// `Damaged` if `row` cannot be read.
    pub fn copy_cells(&mut self, row: &dyn RowView) -> Result<()> {
        for attnum in 1..=row.header().natts {
            match row.cell(attnum)? {
                Cell::Absent => {}
                Cell::Null => self.set_null(attnum),
                Cell::Value(value) => self.set_value(attnum, value),
                Cell::External(pointer) => self.set_external(attnum, pointer),
            }
            if let Some(times) = row.cell_times(attnum)? {
                self.set_times(attnum, Some(times));
            }
        }
        self.range_end = row.range_end().map(<[u8]>::to_vec);
        Ok(())
    }

    /// The version's bytes, as [`super::EncodedRow::parse`] reads them.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(24 + self.cells.len() * 2 + self.data.len());
        self.encode_into(&mut out);
        out
    }

    /// Appends the version's bytes to `out`.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        let header = &self.header;
        let mut first = header.kind as u8;
        for (set, bit) in [
            (header.marker, MARKER),
            (header.expiry.is_some(), HAS_EXPIRY),
            (!self.times.is_empty(), HAS_TIMES),
            (self.range_end.is_some(), HAS_RANGE_END),
        ] {
            if set {
                first |= bit;
            }
        }
        out.push(first);
        put_varint(out, header.row_id);
        out.extend_from_slice(&header.write_time.to_le_bytes());
        if let Some(expiry) = header.expiry {
            put_signed(out, expiry);
        }
        put_varint(out, u64::from(header.natts));
        put_varint(out, self.cells.len() as u64);
        for four in self.cells.chunks(4) {
            out.push(four.iter().enumerate().fold(0, |byte, (i, (state, ..))| byte | (state << (2 * i))));
        }
        for (state, start, end) in &self.cells {
            if *state >= STATE_VALUE {
                put_varint(out, (end - start) as u64);
            }
        }
        for (_, start, end) in &self.cells {
            out.extend_from_slice(&self.data[*start..*end]);
        }
        put_extras(out, &self.times, header.write_time, self.range_end.as_deref());
    }

    fn set(&mut self, attnum: u16, state: u8, bytes: &[u8]) {
        let Some(index) = usize::from(attnum).checked_sub(1) else {
            return;
        };
        if self.cells.len() <= index {
            self.cells.resize(index + 1, (STATE_ABSENT, 0, 0));
            self.header.natts = self.header.natts.max(attnum);
        }
        let start = self.data.len();
        self.data.extend_from_slice(bytes);
        self.cells[index] = (state, start, start + bytes.len());
    }
}

/// Appends what few versions have: times of single cells, and a range end. Each part is there only if it
/// says something; the reader is told which are.
pub(crate) fn put_extras(out: &mut Vec<u8>, times: &[(u16, CellTimes)], row_time: i64, range_end: Option<&[u8]>) {
    if !times.is_empty() {
        put_varint(out, times.len() as u64);
        for (attnum, times) in times {
            put_varint(out, u64::from(*attnum) << 1 | u64::from(times.expiry.is_some()));
            put_signed(out, times.write_time.wrapping_sub(row_time));
            if let Some(expiry) = times.expiry {
                put_signed(out, expiry);
            }
        }
    }
    if let Some(end) = range_end {
        put_bytes(out, end);
    }
}

impl RowView for RowBuilder {
    fn header(&self) -> &RowHeader {
        &self.header
    }

    fn cell(&self, attnum: u16) -> Result<Cell<'_>> {
        let cell = usize::from(attnum).checked_sub(1).and_then(|index| self.cells.get(index));
        Ok(match cell {
            None | Some((STATE_ABSENT, ..)) => Cell::Absent,
            Some((STATE_NULL, ..)) => Cell::Null,
            Some((STATE_VALUE, start, end)) => Cell::Value(&self.data[*start..*end]),
            Some((_, start, end)) => Cell::External(&self.data[*start..*end]),
        })
    }

    fn cell_times(&self, attnum: u16) -> Result<Option<CellTimes>> {
        Ok(self.times.binary_search_by_key(&attnum, |(n, _)| *n).ok().map(|at| self.times[at].1))
    }

    fn range_end(&self) -> Option<&[u8]> {
        match self.header.kind {
            RowKind::RangeTombstone => self.range_end.as_deref(),
            _ => None,
        }
    }
}
