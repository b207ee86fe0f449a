//! SQL functions.

mod allow_filtering;
mod check;
mod segments;
mod token;
