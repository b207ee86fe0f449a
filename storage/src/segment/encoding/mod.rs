//! Encodings of the values in a leaf. All of them work on chunks of [`CHUNK_ROWS`] rows, so that reading a few
//! rows decodes little.

pub(super) mod bits;
pub(super) mod bytes_column;
pub(super) mod chunks;
pub(super) mod column;
pub(super) mod floats;
pub(super) mod ints;

/// Rows encoded as a unit.
pub(super) const CHUNK_ROWS: usize = 256;
