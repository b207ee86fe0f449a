//! Reading a segment.

use super::filter;
use super::footer::Footer;
use super::leaf::Leaf;
use super::{row_ids, Column, PageSource, SegmentCursor, SegmentSummary};
use crate::error::{Result, StorageError};
use crate::merge::Direction;
use std::cell::RefCell;
use std::ops::Bound;
use std::rc::Rc;

pub(super) struct Shared<S> {
    pub(super) source: S,
    pub(super) footer: Footer,
    recent: RefCell<Option<Rc<Leaf>>>,
}

/// An open segment. Cheap to clone: clones and cursors share it.
pub struct SegmentReader<S> {
    pub(super) shared: Rc<Shared<S>>,
}

impl<S> Clone for SegmentReader<S> {
    fn clone(&self) -> Self {
        SegmentReader { shared: Rc::clone(&self.shared) }
    }
}

impl<S: PageSource> SegmentReader<S> {
    /// Opens a run of `page_count` pages by its footer, which is all that is read.
    ///
    /// # Errors
    /// `Damaged` if there is no valid footer; `Unsupported` if its version is not known; errors of the source.
    pub fn open(source: S, page_count: u32) -> Result<Self> {
        let footer = Footer::read(&source, page_count)?;
        Ok(SegmentReader { shared: Rc::new(Shared { source, footer, recent: RefCell::default() }) })
    }

    /// What the segment holds.
    pub fn summary(&self) -> &SegmentSummary {
        &self.shared.footer.summary
    }

    /// The columns it stores, ascending by attnum.
    pub fn columns(&self) -> &[Column] {
        &self.shared.footer.columns
    }

    /// Where the pages come from.
    pub fn source(&self) -> &S {
        &self.shared.source
    }

    /// Whether there can be rows whose key starts with `partition`, which must be the whole prefix given to the
    /// writer. Asks the filter, which touches one page; always true if keys have no partitions.
    ///
    /// # Errors
    /// `Damaged`, and errors of the source.
    pub fn may_contain(&self, partition: &[u8]) -> Result<bool> {
        match self.shared.footer.filter {
            Some(place) => filter::may_contain(&self.shared.source, place, partition),
            None => Ok(self.summary().row_count > 0),
        }
    }

    /// A cursor that reads the keys between the bounds, from the first (backward: from the last). It touches the
    /// inner pages of one path and a leaf.
    ///
    /// # Errors
    /// `Damaged`, and errors of the source.
    pub fn cursor(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>, direction: Direction) -> Result<SegmentCursor<S>> {
        SegmentCursor::open(self.clone(), lower, upper, direction)
    }

    /// A cursor that reads the row with this id and no other; `None` if the segment does not have it.
    ///
    /// # Errors
    /// `Damaged`, and errors of the source.
    pub fn find_row_id(&self, row_id: u64) -> Result<Option<SegmentCursor<S>>> {
        let Some(root) = self.shared.footer.row_ids else {
            return Ok(None);
        };
        if row_id == 0 {
            return Ok(None);
        }
        let source = &self.shared.source;
        let Some(page_no) = row_ids::find(source, root, row_id)? else {
            return Ok(None);
        };
        let leaf = self.recent_leaf(page_no)?;
        let row =
            leaf.find_row_id(row_id)?.ok_or_else(|| StorageError::damaged_at(page_no, "row id is not in its leaf"))?;
        SegmentCursor::at_row(self.clone(), leaf, row).map(Some)
    }

    /// The leaf at `page_no`; the one asked for last is kept, since look-ups often come one after the other in a leaf.
    pub(super) fn recent_leaf(&self, page_no: u32) -> Result<Rc<Leaf>> {
        if let Some(leaf) = self.shared.recent.borrow().as_ref().filter(|leaf| leaf.page_no() == page_no) {
            return Ok(Rc::clone(leaf));
        }
        let leaf = Rc::new(Leaf::read(&self.shared.source, page_no, self.columns(), Vec::new())?);
        self.shared.recent.replace(Some(Rc::clone(&leaf)));
        Ok(leaf)
    }

    /// Calls `take` with each run of consecutive ids that the row id map has: first id and number of ids, ascending.
    ///
    /// # Errors
    /// `Damaged`, and errors of the source.
    pub fn row_id_runs(&self, take: impl FnMut(u64, u64)) -> Result<()> {
        match self.shared.footer.row_ids {
            Some(root) => row_ids::each_run(&self.shared.source, root, take),
            None => Ok(()),
        }
    }
}
