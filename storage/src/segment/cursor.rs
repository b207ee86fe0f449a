//! A position in a segment.
use super::{PageSource, SegmentReader};
use crate::error::Result;
use crate::merge::Cursor;
use crate::row::{Cell, CellTimes, RowHeader, RowKind, RowView};

/// A position in a segment, which it keeps open.
pub struct SegmentCursor<S> {
    reader: SegmentReader<S>,
    header: RowHeader,
}

impl<S: PageSource> SegmentCursor<S> {
    /// First page, within the run, of the leaf that holds the current row.
    pub fn page_no(&self) -> u32 {
        0
    }

    /// Index of the current row within its leaf, from 0.
    pub fn position(&self) -> usize {
        0
    }

    /// The segment.
    pub fn reader(&self) -> &SegmentReader<S> {
        &self.reader
    }
}

impl<S: PageSource> RowView for SegmentCursor<S> {
    fn header(&self) -> &RowHeader {
        debug_assert!(self.header.kind != RowKind::Anchor);
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

impl<S: PageSource> Cursor for SegmentCursor<S> {
    fn key(&self) -> Option<&[u8]> {
        None
    }
    fn advance(&mut self) -> Result<()> {
        Ok(())
    }
}
