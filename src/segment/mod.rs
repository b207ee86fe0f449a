//! The store of immutable segments: a cass table's main fork.
//!
//! Block 0 is the metapage; behind it lie runs of pages, each an immutable B+tree written once. Which runs exist and who
//! sees them is a heap table of the extension, read with the query's snapshot.
//!
//! - `metapage`: the table's identity, its counters and its format;
//! - `list`: which segments (`entry`) a snapshot sees; `catalog` makes its table;
//! - `visibility_map`: what recent snapshots see, without opening list and delta;
//! - `run`: writing a run and publishing it, with `buffer` for its pages and `space` for its blocks;
//! - `source`: reading a run's pages, with `map` for the memory maps;
//! - `cache`: forgetting what changed;
//! - `relation`: what PostgreSQL's macros say about a relation.

pub mod buffer;
mod cache;
mod catalog;
mod entry;
pub mod list;
mod map;
pub mod metapage;
pub mod relation;
pub mod run;
pub mod source;
mod space;
pub mod visibility_map;

pub use source::{open_segment, pages_read, PageGuard, RunSource};
