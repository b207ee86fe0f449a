//! Segments of cass tables, without PostgreSQL.
#![forbid(unsafe_code)]

pub mod error;
pub mod integer;
pub mod key;
pub mod token;
