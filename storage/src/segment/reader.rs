//! Reading a segment.
use super::{Column, PageSource, SegmentCursor, SegmentSummary};
use crate::error::{Result, StorageError};
use crate::merge::Direction;
use std::ops::Bound;
use std::rc::Rc;

struct Inner<S> {
    source: S,
    columns: Vec<Column>,
    summary: SegmentSummary,
}

/// An open segment. Cheap to clone.
pub struct SegmentReader<S> {
    inner: Rc<Inner<S>>,
}

impl<S> Clone for SegmentReader<S> {
    fn clone(&self) -> Self {
        SegmentReader {
            inner: Rc::clone(&self.inner),
        }
    }
}

impl<S: PageSource> SegmentReader<S> {
    /// Opens a run of `page_count` pages by its footer.
    pub fn open(_source: S, _page_count: u32) -> Result<Self> {
        Err(StorageError::Unsupported { version: 0 })
    }

    /// What the segment holds.
    pub fn summary(&self) -> &SegmentSummary {
        &self.inner.summary
    }

    /// The columns it stores.
    pub fn columns(&self) -> &[Column] {
        &self.inner.columns
    }

    /// Where the pages come from.
    pub fn source(&self) -> &S {
        &self.inner.source
    }

    /// Whether there can be rows whose key starts with `partition`, asked of the filter: touches one page.
    pub fn may_contain(&self, _partition: &[u8]) -> Result<bool> {
        Err(StorageError::Unsupported { version: 0 })
    }

    /// A cursor at the first key (the last, backward) between the bounds.
    pub fn cursor(
        &self,
        _lower: Bound<&[u8]>,
        _upper: Bound<&[u8]>,
        _direction: Direction,
    ) -> Result<SegmentCursor<S>> {
        Err(StorageError::Unsupported { version: 0 })
    }

    /// A cursor at the row with this id and nothing after it.
    pub fn find_row_id(&self, _row_id: u64) -> Result<Option<SegmentCursor<S>>> {
        Err(StorageError::Unsupported { version: 0 })
    }
}
