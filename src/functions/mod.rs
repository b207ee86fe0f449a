//! SQL functions.

mod allow_filtering;
mod segments;
mod token;
