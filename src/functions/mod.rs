//! SQL functions.

mod token;
