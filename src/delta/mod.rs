//! The delta: one hidden heap a table, where new versions and tombstones land until VACUUM flushes them.
//!
//! `relation` opens it, `create` makes it, `tablespace` moves it, `lost` tells where it has been lost, `predicate` stands in for its
//! predicate locks where there is none, `cursor` reads it in key order, `entries` its indexes by themselves, `probe` looks at one key
//! as writers do, `write` is the write
//! protocol, `anchor` gives a segment row a place where it can be locked.
//! The rules are those of docs/architecture.md, "Visibility".

pub mod anchor;
pub mod create;
pub mod cursor;
pub mod entries;
pub mod lost;
pub mod predicate;
pub mod probe;
pub mod relation;
pub mod tablespace;
pub mod write;

pub use cursor::DeltaCursor;
pub use relation::{Delta, ForReading};
