//! Segments: immutable runs of pages that hold rows in the order of their keys.
//!
//! A run is written front to back by [`SegmentWriter`] into a [`PageSink`] and read by [`SegmentReader`] and
//! [`SegmentCursor`] from a [`PageSource`]. See `docs/file-format.md` for every byte.

mod cursor;
mod io;
mod reader;
mod summary;
mod writer;

pub use cursor::SegmentCursor;
pub use io::{MemoryRun, PageSink, PageSource};
pub use reader::SegmentReader;
pub use summary::{Column, ColumnClass, LargestPartition, SegmentSummary, WriterOptions};
pub use writer::SegmentWriter;

/// Bytes of the longest key that a segment can hold: two separators and their places must fit into an inner page.
pub const MAX_KEY_LEN: usize = 4000;
