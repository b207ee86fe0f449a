//! What differs between the versions of PostgreSQL that cass is built for: 15 and 16. One name stands for each thing here, and
//! nothing outside this folder asks for the version.
//!
//! `files` is about relations' files, `tables` about heaps and indexes, `counters` about statistics, `plans` about planner and
//! executor, `rights` about ownership.

pub mod counters;
pub mod files;
pub mod plans;
pub mod rights;
pub mod tables;
