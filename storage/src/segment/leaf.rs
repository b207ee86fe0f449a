//! Reading a leaf: its directory at once, its columns when they are asked for.

use super::encoding::column::ColumnReader;
use super::encoding::ints::IntColumn;
use super::keys::Keys;
use super::leaf_buffer::{FIXED_SECTIONS, MAX_LEAF_ROWS};
use super::{leaf_pages, Column, PageSource};
use crate::bytes::ByteReader;
use crate::error::{Result, StorageError};
use crate::row::{
    Cell, CellTimes, RowExtras, RowHeader, RowKind, HAS_EXPIRY, HAS_RANGE_END, HAS_TIMES, KIND_BITS, MARKER,
};
use std::cell::OnceCell;
use std::ops::Range;

/// A leaf in memory, independent of the pages it came from.
#[derive(Debug)]
pub(super) struct Leaf {
    page_no: u32,
    body: Vec<u8>,
    rows: usize,
    keys: Keys,
    row_ids: IntColumn,
    flags: IntColumn,
    write_times: IntColumn,
    expiries: IntColumn,
    natts: IntColumn,
    extras: ColumnReader,
    columns: Vec<(Range<usize>, OnceCell<ColumnReader>)>,
}

/// What single rows have beside header and cells.
#[derive(Clone, Debug, Default)]
pub(super) struct Extras {
    /// Times of cells, ascending by column.
    pub(super) times: Vec<(u16, CellTimes)>,
    /// End of a range tombstone.
    pub(super) range_end: Option<Vec<u8>>,
}

impl Leaf {
    /// Reads the leaf that starts in page `page_no`. `buffer` is memory to use for it.
    pub(super) fn read<S: PageSource>(source: &S, page_no: u32, columns: &[Column], buffer: Vec<u8>) -> Result<Self> {
        let body = leaf_pages::read(source, page_no, buffer)?;
        Self::parse(page_no, body, columns).map_err(|error| error.on_page(page_no))
    }

    fn parse(page_no: u32, body: Vec<u8>, columns: &[Column]) -> Result<Self> {
        let mut reader = ByteReader::new(&body);
        let rows = usize::from(reader.u16()?);
        if rows == 0 || rows > MAX_LEAF_ROWS {
            return Err(StorageError::damaged("leaf has no such number of rows"));
        }
        if reader.size()? != FIXED_SECTIONS + columns.len() {
            return Err(StorageError::damaged("leaf has other columns than its segment"));
        }
        let mut lengths = reader;
        for _ in 0..FIXED_SECTIONS + columns.len() {
            reader.varint()?;
        }
        let mut start = body.len() - reader.rest().len();
        let mut section = || -> Result<Range<usize>> {
            let end = start.saturating_add(lengths.size()?);
            if end > body.len() {
                return Err(StorageError::damaged("section is out of its leaf"));
            }
            Ok(std::mem::replace(&mut start, end)..end)
        };
        let keys = Keys::parse(&body, section()?, rows)?;
        let row_ids = IntColumn::parse(&body, section()?, rows)?;
        let flags = IntColumn::parse(&body, section()?, rows)?;
        let write_times = IntColumn::parse(&body, section()?, rows)?;
        let expiries = IntColumn::parse(&body, section()?, rows)?;
        let natts = IntColumn::parse(&body, section()?, rows)?;
        let extras = ColumnReader::parse(&body, section()?, rows, super::ColumnClass::Bytes)?;
        let columns = columns.iter().map(|_| Ok((section()?, OnceCell::new()))).collect::<Result<Vec<_>>>()?;
        if start != body.len() {
            return Err(StorageError::damaged("bytes after the end of a leaf"));
        }
        Ok(Leaf { page_no, rows, keys, row_ids, flags, write_times, expiries, natts, extras, columns, body })
    }

    pub(super) fn page_no(&self) -> u32 {
        self.page_no
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// The memory of the leaf, to be used for another one.
    pub(super) fn into_buffer(self) -> Vec<u8> {
        self.body
    }

    /// Replaces `out` by the key of `row`.
    pub(super) fn key(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        self.located(self.keys.read(&self.body, row, out))
    }

    /// Length of the partition's part of the key of `row`.
    pub(super) fn partition_len(&self, row: usize) -> usize {
        self.keys.prefix_of(row).len()
    }

    /// The first row whose key is not less than `bound`, or greater than it if `after`.
    pub(super) fn search(&self, bound: &[u8], after: bool) -> Result<usize> {
        self.located(self.keys.search(&self.body, bound, after))
    }

    /// The row with this row id.
    pub(super) fn find_row_id(&self, row_id: u64) -> Result<Option<usize>> {
        self.located(self.row_ids.position(&self.body, self.rows, row_id))
    }

    pub(super) fn header(&self, row: usize) -> Result<(RowHeader, u8)> {
        self.located(self.read_header(row))
    }

    fn read_header(&self, row: usize) -> Result<(RowHeader, u8)> {
        let body = &self.body;
        let flags = u8::try_from(self.flags.get(body, row)?).map_err(|_| StorageError::damaged("unknown flags"))?;
        let expiry = if flags & HAS_EXPIRY != 0 { Some(self.expiries.get(body, row)? as i64) } else { None };
        let natts = u16::try_from(self.natts.get(body, row)?);
        let header = RowHeader {
            kind: RowKind::from_byte(flags & KIND_BITS)?,
            row_id: self.row_ids.get(body, row)?,
            write_time: self.write_times.get(body, row)? as i64,
            marker: flags & MARKER != 0,
            expiry,
            natts: natts.map_err(|_| StorageError::damaged("too many columns"))?,
        };
        Ok((header, flags))
    }

    /// What a row with these flags has beside header and cells; `None` for most.
    pub(super) fn extras(&self, row: usize, flags: u8, write_time: i64) -> Result<Option<Extras>> {
        if flags & (HAS_TIMES | HAS_RANGE_END) == 0 {
            return Ok(None);
        }
        self.located(self.read_extras(row, flags, write_time)).map(Some)
    }

    fn read_extras(&self, row: usize, flags: u8, write_time: i64) -> Result<Extras> {
        let Cell::Value(bytes) = self.extras.cell(&self.body, row)? else {
            return Err(StorageError::damaged("row lacks its extras"));
        };
        let mut reader = ByteReader::new(bytes);
        let extras = RowExtras::take(&mut reader, write_time, flags & HAS_TIMES != 0, flags & HAS_RANGE_END != 0)?;
        Ok(Extras { times: extras.all_times(write_time)?, range_end: extras.range_end.map(<[u8]>::to_vec) })
    }

    /// The cell of the column at `index` among the segment's columns.
    pub(super) fn cell(&self, row: usize, index: usize, column: &Column) -> Result<Cell<'_>> {
        self.located(self.read_cell(row, index, column))
    }

    fn read_cell(&self, row: usize, index: usize, column: &Column) -> Result<Cell<'_>> {
        let Some((section, cell)) = self.columns.get(index) else {
            return Ok(Cell::Absent);
        };
        let reader = match cell.get() {
            Some(reader) => reader,
            None => {
                let reader = ColumnReader::parse(&self.body, section.clone(), self.rows, column.class)?;
                cell.get_or_init(|| reader)
            }
        };
        reader.cell(&self.body, row)
    }

    fn located<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| error.on_page(self.page_no))
    }
}
