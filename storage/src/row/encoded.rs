//! Reading an encoded version without copying it.

use super::builder::{STATE_ABSENT, STATE_NULL, STATE_VALUE};
use super::flags::{HAS_EXPIRY, HAS_RANGE_END, HAS_TIMES, KIND_BITS, MARKER};
use super::{Cell, CellTimes, RowHeader, RowKind, RowView};
use crate::bytes::ByteReader;
use crate::error::{Result, StorageError};

/// A version in the bytes that [`super::RowBuilder::encode`] made. Parsing checks all of it, so that its cells
/// can be read in any order at no further cost.
#[derive(Clone, Debug)]
pub struct EncodedRow<'a> {
    header: RowHeader,
    /// Two state bits a column.
    states: &'a [u8],
    /// Start of each column's bytes in `data`; one more entry for the end of the last.
    starts: Vec<u32>,
    data: &'a [u8],
    extras: RowExtras<'a>,
}

impl<'a> EncodedRow<'a> {
    /// Reads a version that fills `bytes` to the end.
    ///
    /// # Errors
    /// `Damaged` if it is not a version.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let mut reader = ByteReader::new(bytes);
        let first = reader.u8()?;
        if first & !(KIND_BITS | MARKER | HAS_EXPIRY | HAS_TIMES | HAS_RANGE_END) != 0 {
            return Err(StorageError::Unsupported {
                version: u16::from(first),
            });
        }
        let kind = RowKind::from_byte(first & KIND_BITS)?;
        let row_id = reader.varint()?;
        let write_time = reader.i64()?;
        let expiry = if first & HAS_EXPIRY != 0 {
            Some(reader.signed()?)
        } else {
            None
        };
        let natts = u16::try_from(reader.varint()?)
            .map_err(|_| StorageError::damaged("too many columns"))?;
        let cells = reader.size()?;
        if cells > usize::from(natts) {
            return Err(StorageError::damaged("more cells than columns"));
        }
        let states = reader.take(cells.div_ceil(4))?;
        let mut starts = Vec::with_capacity(cells + 1);
        let mut end = 0u32;
        starts.push(end);
        for index in 0..cells {
            if state(states, index) >= STATE_VALUE {
                let len = u32::try_from(reader.varint()?).ok();
                end = len
                    .and_then(|len| end.checked_add(len))
                    .ok_or_else(|| StorageError::damaged("cell is too long"))?;
            }
            starts.push(end);
        }
        let data = reader.take(end as usize)?;
        let header = RowHeader {
            kind,
            row_id,
            write_time,
            marker: first & MARKER != 0,
            expiry,
            natts,
        };
        let extras = RowExtras::take(
            &mut reader,
            write_time,
            first & HAS_TIMES != 0,
            first & HAS_RANGE_END != 0,
        )?;
        if !reader.is_empty() {
            return Err(StorageError::damaged("bytes after the end of a row"));
        }
        Ok(EncodedRow {
            header,
            states,
            starts,
            data,
            extras,
        })
    }
}

fn state(states: &[u8], index: usize) -> u8 {
    states
        .get(index / 4)
        .map_or(STATE_ABSENT, |byte| (byte >> (2 * (index % 4))) & 3)
}

impl RowView for EncodedRow<'_> {
    fn header(&self) -> &RowHeader {
        &self.header
    }

    fn cell(&self, attnum: u16) -> Result<Cell<'_>> {
        let Some(index) = usize::from(attnum).checked_sub(1) else {
            return Ok(Cell::Absent);
        };
        let [start, end] = match self.starts.get(index..index + 2) {
            Some([start, end]) => [*start as usize, *end as usize],
            _ => return Ok(Cell::Absent),
        };
        let state = state(self.states, index);
        Ok(match state {
            STATE_ABSENT => Cell::Absent,
            STATE_NULL => Cell::Null,
            _ => {
                let bytes = self
                    .data
                    .get(start..end)
                    .ok_or_else(|| StorageError::damaged("cell out of its row"))?;
                if state == STATE_VALUE {
                    Cell::Value(bytes)
                } else {
                    Cell::External(bytes)
                }
            }
        })
    }

    fn cell_times(&self, attnum: u16) -> Result<Option<CellTimes>> {
        self.extras.cell_times(attnum, self.header.write_time)
    }

    fn range_end(&self) -> Option<&[u8]> {
        match self.header.kind {
            RowKind::RangeTombstone => self.extras.range_end,
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
    let expiry = if tag & 1 != 0 {
        Some(reader.signed()?)
    } else {
        None
    };
    Ok((attnum, CellTimes { write_time, expiry }))
}
