//! SQL functions.

mod segments;
mod token;
