//! Segments: immutable runs of pages that hold rows in the order of their keys.
//!
//! A run is written front to back by [`SegmentWriter`] into a [`PageSink`] and read by [`SegmentReader`] and
//! [`SegmentCursor`] from a [`PageSource`]. Its pages are leaves with inner pages among them, then the filter over
//! partitions, the row id map, and the footer. See `docs/file-format.md` for every byte.

pub mod check;
mod cursor;
mod encoding;
mod filter;
mod footer;
mod inner;
mod io;
mod keys;
mod leaf;
mod leaf_buffer;
mod leaf_pages;
mod pages;
mod read_ahead;
mod reader;
mod row_ids;
mod statistics;
mod summary;
mod walk;
mod writer;

pub use cursor::SegmentCursor;
pub use footer::FORMAT_VERSION;
pub use io::{MemoryRun, PageSink, PageSource};
pub use reader::SegmentReader;
pub use summary::{Column, ColumnClass, LargestPartition, SegmentSummary, WriterOptions};
pub use writer::SegmentWriter;

/// Bytes of the longest key that a segment can hold: two separators and their places must fit into an inner page.
pub const MAX_KEY_LEN: usize = 4000;
