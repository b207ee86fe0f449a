//! Reading an encoded version.

use super::builder::{STATE_ABSENT, STATE_NULL, STATE_VALUE};
use super::flags::{HAS_EXPIRY, HAS_RANGE_END, HAS_TIMES, KIND_BITS, MARKER};
use super::{Cell, CellTimes, RowHeader, RowKind, RowView};
use crate::bytes::ByteReader;
use crate::error::{Result, StorageError};
use std::ops::Range;

/// A version in the bytes that [`super::RowBuilder::encode`] made, borrowed or owned. Reading checks all of it, so
/// that its cells can be read in any order at no further cost.
#[derive(Clone, Debug)]
pub struct StoredRow<B> {
    bytes: B,
    header: RowHeader,
    /// Where the states lie, two bits a column.
    states: usize,
    /// Where each column's bytes start; one more entry for the end of the last.
    starts: Vec<usize>,
    /// Where the extras lie, if there are times among them.
    times: Option<usize>,
    range_end: Option<Range<usize>>,
}

/// A version in borrowed bytes.
pub type EncodedRow<'a> = StoredRow<&'a [u8]>;

/// A version in bytes of its own.
pub type OwnedRow = StoredRow<Vec<u8>>;

impl<B: AsRef<[u8]>> StoredRow<B> {
    /// Reads a version that fills `bytes` to the end.
    ///
    /// # Errors
    /// `Damaged` if it is not a version; `Unsupported` if it was written by a later one of this crate.
    pub fn parse(bytes: B) -> Result<Self> {
        let mut row = Self::unread(bytes);
        row.read()?;
        Ok(row)
    }

    /// The bytes read.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    fn unread(bytes: B) -> Self {
        let header = RowHeader { kind: RowKind::Row, row_id: 0, write_time: 0, marker: false, expiry: None, natts: 0 };
        StoredRow { bytes, header, states: 0, starts: Vec::new(), times: None, range_end: None }
    }

    fn read(&mut self) -> Result<()> {
        let bytes = self.bytes.as_ref();
        let at = |reader: &ByteReader<'_>| bytes.len() - reader.rest().len();
        let mut reader = ByteReader::new(bytes);
        let first = reader.u8()?;
        if first & !(KIND_BITS | MARKER | HAS_EXPIRY | HAS_TIMES | HAS_RANGE_END) != 0 {
            return Err(StorageError::Unsupported { version: u16::from(first) });
        }
        let kind = RowKind::from_byte(first & KIND_BITS)?;
        let row_id = reader.varint()?;
        let write_time = reader.i64()?;
        let expiry = if first & HAS_EXPIRY != 0 { Some(reader.signed()?) } else { None };
        let natts = u16::try_from(reader.varint()?).map_err(|_| StorageError::damaged("too many columns"))?;
        let cells = reader.size()?;
        if cells > usize::from(natts) {
            return Err(StorageError::damaged("more cells than columns"));
        }
        self.states = at(&reader);
        let states = reader.take(cells.div_ceil(4))?;
        self.starts.clear();
        self.starts.reserve(cells + 1);
        let mut end = 0usize;
        self.starts.push(end);
        for index in 0..cells {
            if state(states, index) >= STATE_VALUE {
                end = end.checked_add(reader.size()?).ok_or_else(|| StorageError::damaged("cell is too long"))?;
            }
            self.starts.push(end);
        }
        let data = at(&reader);
        reader.take(end)?;
        self.starts.iter_mut().for_each(|start| *start += data);
        let extras_at = at(&reader);
        let has_times = first & HAS_TIMES != 0;
        let extras = RowExtras::take(&mut reader, write_time, has_times, first & HAS_RANGE_END != 0)?;
        if !reader.is_empty() {
            return Err(StorageError::damaged("bytes after the end of a row"));
        }
        self.times = has_times.then_some(extras_at);
        self.range_end = extras.range_end.map(|end| bytes.len() - end.len()..bytes.len());
        self.header = RowHeader { kind, row_id, write_time, marker: first & MARKER != 0, expiry, natts };
        Ok(())
    }
}

impl OwnedRow {
    /// A row that says nothing yet, to be given bytes by [`OwnedRow::replace`].
    pub fn empty() -> Self {
        Self::unread(Vec::new())
    }

    /// Reads another version, in the same memory.
    ///
    /// # Errors
    /// As [`StoredRow::parse`]; the row must not be used afterwards.
    pub fn replace(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.read()
    }
}

fn state(states: &[u8], index: usize) -> u8 {
    states.get(index / 4).map_or(STATE_ABSENT, |byte| (byte >> (2 * (index % 4))) & 3)
}

impl<B: AsRef<[u8]>> RowView for StoredRow<B> {
    fn header(&self) -> &RowHeader {
        &self.header
    }

    fn cell(&self, attnum: u16) -> Result<Cell<'_>> {
        let Some(index) = usize::from(attnum).checked_sub(1) else {
            return Ok(Cell::Absent);
        };
        let range = match self.starts.get(index..index + 2) {
            Some([start, end]) => *start..*end,
            _ => return Ok(Cell::Absent),
        };
        let bytes = self.bytes.as_ref();
        Ok(match state(bytes.get(self.states..).unwrap_or_default(), index) {
            STATE_ABSENT => Cell::Absent,
            STATE_NULL => Cell::Null,
            state => {
                let value = bytes.get(range).ok_or_else(|| StorageError::damaged("cell is out of its row"))?;
                if state == STATE_VALUE {
                    Cell::Value(value)
                } else {
                    Cell::External(value)
                }
            }
        })
    }

    fn cell_times(&self, attnum: u16) -> Result<Option<CellTimes>> {
        let Some(at) = self.times else {
            return Ok(None);
        };
        let mut reader = ByteReader::new(self.bytes.as_ref().get(at..).unwrap_or_default());
        let row_time = self.header.write_time;
        RowExtras::take(&mut reader, row_time, true, false)?.cell_times(attnum, row_time)
    }

    fn range_end(&self) -> Option<&[u8]> {
        match self.header.kind {
            RowKind::RangeTombstone => self.bytes.as_ref().get(self.range_end.clone()?),
            _ => None,
        }
    }
}

/// Times of single cells and a range end, as [`super::builder::put_extras`] wrote them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RowExtras<'a> {
    /// The entries of the times part, after its count.
    times: &'a [u8],
    pub(crate) range_end: Option<&'a [u8]>,
}

impl<'a> RowExtras<'a> {
    /// Reads the parts that are there and checks them.
    pub(crate) fn take(
        reader: &mut ByteReader<'a>,
        row_time: i64,
        has_times: bool,
        has_range_end: bool,
    ) -> Result<Self> {
        let mut extras = RowExtras::default();
        if has_times {
            let count = reader.size()?;
            let all = reader.rest();
            let mut last = 0;
            for _ in 0..count {
                let (attnum, _) = take_times(reader, row_time)?;
                if attnum <= last {
                    return Err(StorageError::damaged("cell times out of order"));
                }
                last = attnum;
            }
            extras.times = &all[..all.len() - reader.rest().len()];
        }
        if has_range_end {
            extras.range_end = Some(reader.bytes()?);
        }
        Ok(extras)
    }

    /// Times of all cells that have their own, ascending by column.
    pub(crate) fn all_times(&self, row_time: i64) -> Result<Vec<(u16, CellTimes)>> {
        let mut reader = ByteReader::new(self.times);
        let mut all = Vec::new();
        while !reader.is_empty() {
            all.push(take_times(&mut reader, row_time)?);
        }
        Ok(all)
    }

    /// Times of the cell of column `attnum`, if it has its own.
    pub(crate) fn cell_times(&self, attnum: u16, row_time: i64) -> Result<Option<CellTimes>> {
        let mut reader = ByteReader::new(self.times);
        while !reader.is_empty() {
            let (n, times) = take_times(&mut reader, row_time)?;
            if n == attnum {
                return Ok(Some(times));
            }
        }
        Ok(None)
    }
}

fn take_times(reader: &mut ByteReader<'_>, row_time: i64) -> Result<(u16, CellTimes)> {
    let tag = reader.varint()?;
    let attnum = u16::try_from(tag >> 1).map_err(|_| StorageError::damaged("too many columns"))?;
    let write_time = row_time.wrapping_add(reader.signed()?);
    let expiry = if tag & 1 != 0 { Some(reader.signed()?) } else { None };
    Ok((attnum, CellTimes { write_time, expiry }))
}
