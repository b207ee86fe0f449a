//! A position in a segment.

use super::leaf::{Extras, Leaf};
use super::read_ahead::ReadAhead;
use super::walk::{Start, Walk};
use super::{PageSource, SegmentReader};
use crate::error::{Result, StorageError};
use crate::merge::{Cursor, Direction};
use crate::page::PageKind;
use crate::row::{Cell, CellTimes, RowHeader, RowKind, RowView};
use std::ops::{Bound, Range};
use std::rc::Rc;

/// A position in a segment, which it keeps open. It holds the current leaf in memory of its own, so it borrows
/// nothing and pages may move while it lives.
pub struct SegmentCursor<S> {
    reader: SegmentReader<S>,
    direction: Direction,
    lower: Bound<Vec<u8>>,
    upper: Bound<Vec<u8>>,
    walk: Walk,
    read_ahead: ReadAhead,
    /// `None` past the end.
    leaf: Option<Rc<Leaf>>,
    /// Rows of the leaf between the bounds.
    rows: Range<usize>,
    row: usize,
    key: Vec<u8>,
    header: RowHeader,
    extras: Option<Extras>,
}

impl<S: PageSource> SegmentCursor<S> {
    pub(super) fn open(
        reader: SegmentReader<S>,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<Self> {
        let mut cursor = Self::nowhere(reader);
        cursor.direction = direction;
        (cursor.lower, cursor.upper) = (lower.map(<[u8]>::to_vec), upper.map(<[u8]>::to_vec));
        let Some(root) = cursor.reader.shared.footer.root else {
            return Ok(cursor);
        };
        let start = match (direction, lower, upper) {
            (Direction::Forward, Bound::Included(key) | Bound::Excluded(key), _) => Start::Key(key),
            (Direction::Forward, Bound::Unbounded, _) => Start::First,
            (Direction::Backward, _, Bound::Included(key) | Bound::Excluded(key)) => Start::Key(key),
            (Direction::Backward, _, Bound::Unbounded) => Start::Last,
        };
        let (walk, page_no) = Walk::descend(&cursor.reader.shared.source, PageKind::Inner, root, start)?;
        cursor.walk = walk;
        let leaf = cursor.reader.recent_leaf(page_no)?;
        cursor.enter(leaf)?;
        Ok(cursor)
    }

    /// A cursor at `row` of `leaf`, with nothing after it.
    pub(super) fn at_row(reader: SegmentReader<S>, leaf: Rc<Leaf>, row: usize) -> Result<Self> {
        let mut cursor = Self::nowhere(reader);
        cursor.leaf = Some(leaf);
        cursor.rows = row..row + 1;
        cursor.go_to(row)?;
        Ok(cursor)
    }

    fn nowhere(reader: SegmentReader<S>) -> Self {
        let header = RowHeader { kind: RowKind::Row, row_id: 0, write_time: 0, marker: false, expiry: None, natts: 0 };
        SegmentCursor {
            reader,
            direction: Direction::Forward,
            lower: Bound::Unbounded,
            upper: Bound::Unbounded,
            walk: Walk::default(),
            read_ahead: ReadAhead::default(),
            leaf: None,
            rows: 0..0,
            row: 0,
            key: Vec::new(),
            header,
            extras: None,
        }
    }

    /// First page, within the run, of the leaf that holds the current row.
    pub fn page_no(&self) -> Option<u32> {
        self.leaf.as_deref().map(Leaf::page_no)
    }

    /// Index of the current row within its leaf, from 0.
    pub fn position(&self) -> usize {
        self.row
    }

    /// The segment.
    pub fn reader(&self) -> &SegmentReader<S> {
        &self.reader
    }

    /// Reads the leaf at `page_no` into the memory of the current one.
    fn read_leaf(&mut self, page_no: u32) -> Result<Rc<Leaf>> {
        let buffer = self.leaf.take().and_then(Rc::into_inner).map(Leaf::into_buffer).unwrap_or_default();
        Leaf::read(&self.reader.shared.source, page_no, self.reader.columns(), buffer).map(Rc::new)
    }

    /// Enters a leaf, and goes on until there is a row between the bounds.
    fn enter(&mut self, mut leaf: Rc<Leaf>) -> Result<()> {
        loop {
            let start = match &self.lower {
                Bound::Unbounded => 0,
                Bound::Included(key) => leaf.search(key, false)?,
                Bound::Excluded(key) => leaf.search(key, true)?,
            };
            let end = match &self.upper {
                Bound::Unbounded => leaf.rows(),
                Bound::Included(key) => leaf.search(key, true)?,
                Bound::Excluded(key) => leaf.search(key, false)?,
            };
            self.rows = start..end;
            let found = !self.rows.is_empty();
            self.leaf = Some(leaf);
            if found {
                let forward = self.direction == Direction::Forward;
                return self.go_to(if forward { start } else { end - 1 });
            }
            match self.next_leaf()? {
                Some(next) => leaf = self.read_leaf(next)?,
                None => {
                    self.leaf = None;
                    return Ok(());
                }
            }
        }
    }

    /// Page of the next leaf that can have rows between the bounds.
    fn next_leaf(&mut self) -> Result<Option<u32>> {
        let rows = self.leaf.as_deref().map_or(0, Leaf::rows);
        let bound_passed = match self.direction {
            Direction::Forward => self.rows.end < rows,
            Direction::Backward => self.rows.start > 0,
        };
        if bound_passed {
            return Ok(None);
        }
        let source = &self.reader.shared.source;
        let next = self.walk.next(source, PageKind::Inner, self.direction)?;
        if let Some(page_no) = next {
            self.read_ahead.step(source, page_no, self.direction);
        }
        Ok(next)
    }

    fn go_to(&mut self, row: usize) -> Result<()> {
        let Some(leaf) = &self.leaf else {
            return Ok(());
        };
        self.row = row;
        leaf.key(row, &mut self.key)?;
        let (header, flags) = leaf.header(row)?;
        self.header = header;
        self.extras = leaf.extras(row, flags, header.write_time)?;
        Ok(())
    }
}

impl<S: PageSource> RowView for SegmentCursor<S> {
    fn header(&self) -> &RowHeader {
        &self.header
    }

    fn cell(&self, attnum: u16) -> Result<Cell<'_>> {
        let leaf = self.leaf.as_ref().ok_or(StorageError::Refused { what: "there is no current row" })?;
        let columns = self.reader.columns();
        // Attributes mostly are columns 1, 2, 3 ...
        let guess = usize::from(attnum).wrapping_sub(1);
        let index = match columns.get(guess) {
            Some(column) if column.attnum == attnum => guess,
            _ => match columns.binary_search_by_key(&attnum, |column| column.attnum) {
                Ok(index) => index,
                Err(_) => return Ok(Cell::Absent),
            },
        };
        match columns.get(index) {
            Some(column) => leaf.cell(self.row, index, column),
            None => Ok(Cell::Absent),
        }
    }

    fn cell_times(&self, attnum: u16) -> Result<Option<CellTimes>> {
        let Some(extras) = &self.extras else {
            return Ok(None);
        };
        let found = extras.times.binary_search_by_key(&attnum, |(n, _)| *n).ok();
        Ok(found.and_then(|at| extras.times.get(at)).map(|(_, times)| *times))
    }

    fn range_end(&self) -> Option<&[u8]> {
        self.extras.as_ref()?.range_end.as_deref()
    }
}

impl<S: PageSource> Cursor for SegmentCursor<S> {
    fn key(&self) -> Option<&[u8]> {
        self.leaf.as_ref().map(|_| &self.key[..])
    }

    fn advance(&mut self) -> Result<()> {
        if self.leaf.is_none() {
            return Ok(());
        }
        let next = match self.direction {
            Direction::Forward => Some(self.row + 1).filter(|row| *row < self.rows.end),
            Direction::Backward => self.row.checked_sub(1).filter(|row| *row >= self.rows.start),
        };
        if let Some(row) = next {
            return self.go_to(row);
        }
        match self.next_leaf()? {
            Some(page_no) => {
                let leaf = self.read_leaf(page_no)?;
                self.enter(leaf)
            }
            None => {
                self.leaf = None;
                Ok(())
            }
        }
    }
}
