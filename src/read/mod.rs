//! Reading a table: its delta and its segments as one.
//!
//! `state` is what every read needs to know of the table, `merged` the scan in key order, `looked_at` which segments that has
//! looked at, `rewritten` what older snapshots may not write, `point` reads one key or one row
//! id, `row` turns a stored row into the values of a slot.

pub mod loading;
pub mod looked_at;
pub mod merged;
pub mod point;
pub mod rewritten;
pub mod row;
pub mod segments;
pub mod state;

pub use merged::{ColumnSet, KeyRange, MergedScan, ScanCounters, ScanSpec};
pub use point::fetch_key;
pub use state::TableState;
