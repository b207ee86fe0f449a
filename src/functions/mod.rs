//! SQL functions.

mod allow_filtering;
mod token;
