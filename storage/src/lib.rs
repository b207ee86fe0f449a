//! Segments of cass tables, without PostgreSQL.
#![forbid(unsafe_code)]

pub mod error;
pub mod key;
pub mod token;
