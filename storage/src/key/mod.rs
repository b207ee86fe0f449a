//! Order-preserving key encoding: comparing encoded keys byte by byte gives the declared order of the
//! columns, descending ones included, so that nothing that merges or searches calls a comparison function.
//!
//! Every value's encoding is self-delimiting and no value's encoding is a prefix of another's of the same
//! column; so keys can be concatenated, and the encoding of a key's leading columns is a byte prefix.
//! Descending columns are the same bytes, each inverted.

mod bytes;
mod decimal;
mod fixed;
mod reader;
mod timeuuid;
mod varint;

#[cfg(test)]
mod tests;

pub use bytes::put_bytes;
pub use decimal::{put_decimal, Decimal};
pub use fixed::{put_bool, put_f32, put_f64, put_fixed, put_i16, put_i32, put_i64, put_i8};
pub use reader::KeyReader;
pub use timeuuid::{put_timeuuid, sort_bytes as timeuuid_sort_bytes};
pub use varint::{minimal_twos_complement, put_varint};

use crate::error::Result;

/// Declared order of a key column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Smallest first.
    Ascending,
    /// Greatest first: every byte of the encoding is inverted.
    Descending,
}

impl Order {
    /// XOR mask of every byte of a column in this order.
    const fn mask(self) -> u8 {
        match self {
            Self::Ascending => 0,
            Self::Descending => 0xff,
        }
    }
}

/// Appends what `write` writes, inverted if the order is descending.
fn put_ordered(out: &mut Vec<u8>, order: Order, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    write(out);
    if order == Order::Descending {
        for byte in out.iter_mut().skip(start) {
            *byte = !*byte;
        }
    }
}

/// Appends the token that a placed key starts with: 8 bytes, big-endian, sign flipped.
pub fn put_token(out: &mut Vec<u8>, token: i64) {
    put_i64(out, token, Order::Ascending);
}

/// The token of a placed key.
pub fn get_token(key: &[u8]) -> Result<i64> {
    KeyReader::new(key).take_token()
}

/// The smallest byte string greater than every one that starts with `prefix`; `None` if there is none.
#[must_use]
pub fn prefix_successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut successor = prefix.get(..=last)?.to_vec();
    if let Some(byte) = successor.last_mut() {
        *byte = byte.wrapping_add(1);
    }
    Some(successor)
}
