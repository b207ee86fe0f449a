//! What differs between the versions of PostgreSQL that cass is built for: 15, 16 and 18. One name stands for each thing here.
//! Outside this folder only what PostgreSQL calls with other arguments, or calls since 18, asks for the version: callbacks and hooks.
//!
//! `files` is about relations' files, `descriptors` about descriptions of rows, `tables` about heaps and indexes, `scans` about scans
//! of indexes, `vacuum` and `counters` about VACUUM and statistics, `plans` about planner and executor, `options`, `collations` and
//! `rights` about what their names say.

pub mod collations;
pub mod counters;
pub mod descriptors;
pub mod files;
pub mod options;
pub mod plans;
pub mod rights;
pub mod scans;
pub mod tables;
pub mod vacuum;
