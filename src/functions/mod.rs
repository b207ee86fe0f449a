//! SQL functions.

mod segments;
mod allow_filtering;
mod token;
