//! Writing a segment.
use super::{PageSink, SegmentSummary, WriterOptions};
use crate::error::{Result, StorageError};
use crate::row::RowView;

/// Writes a segment front to back.
pub struct SegmentWriter<S> {
    sink: S,
    options: WriterOptions,
}

impl<S: PageSink> SegmentWriter<S> {
    /// A writer of a run that goes to `sink`.
    pub fn new(sink: S, options: WriterOptions) -> Self {
        SegmentWriter { sink, options }
    }

    /// Adds a row. Keys come strictly ascending. The first `partition_len` bytes of the key name the partition; 0 if there is none.
    pub fn push(&mut self, _key: &[u8], _partition_len: usize, _row: &dyn RowView) -> Result<()> {
        let _ = (&self.sink, &self.options);
        Err(StorageError::Unsupported { version: 0 })
    }

    /// Writes what is left and the rest of the run. Gives the sink back.
    pub fn finish(self) -> Result<(S, SegmentSummary)> {
        Err(StorageError::Unsupported { version: 0 })
    }
}
