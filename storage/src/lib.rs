//! Segments of cass tables, without PostgreSQL.
//!
//! A *segment* is an immutable B+tree of standard 8 kB pages whose rows lie in the order of their keys,
//! which are opaque bytes here and compare by memcmp. This crate writes and reads segments, merges them with
//! each other and with other sorted inputs, sorts what is to become one, and says which ones to merge.
//!
//! Everything read from bytes is checked: damaged input gives [`StorageError::Damaged`], never a panic, an
//! endless loop or an allocation out of proportion to the input. The format is drawn in `docs/file-format.md`.
#![forbid(unsafe_code)]

pub mod compaction;
pub mod error;
pub mod integer;
pub mod key;
pub mod merge;
pub mod page;
pub mod row;
pub mod segment;
pub mod sort;
pub mod token;

mod bytes;
mod heap;

pub use error::{Result, StorageError};
