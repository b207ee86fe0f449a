//! Integers of any length, given as two's complement, big-endian.
//!
//! A header byte holds sign and length, so that of two positive numbers the longer is greater and of two
//! negative ones smaller; the minimal two's complement bytes follow.

use super::{put_ordered, Order};
use crate::error::{Result, StorageError};

/// Longest number whose length fits the header byte; longer ones put a 4-byte length after it.
const SHORT_BYTES: usize = 120;
const POSITIVE_LONG: u8 = 0x80 + SHORT_BYTES as u8;
const NEGATIVE_LONG: u8 = 0x7f - SHORT_BYTES as u8;

/// The same number without leading bytes that only repeat the sign; zero is one byte.
pub fn minimal_twos_complement(value: &[u8]) -> &[u8] {
    let mut rest = value;
    while let [first, second, ..] = rest {
        let repeats_sign = (*first == 0 && second & 0x80 == 0) || (*first == 0xff && second & 0x80 != 0);
        if !repeats_sign {
            break;
        }
        rest = rest.get(1..).unwrap_or_default();
    }
    if rest.is_empty() {
        &[0]
    } else {
        rest
    }
}

/// Appends a number in numeric order. `value` is two's complement, big-endian, at most `u32::MAX` bytes;
/// none at all is zero.
pub fn put_varint(out: &mut Vec<u8>, value: &[u8], order: Order) {
    let value = minimal_twos_complement(value);
    let negative = value.first().is_some_and(|byte| byte & 0x80 != 0);
    put_ordered(out, order, |out| {
        if value.len() <= SHORT_BYTES {
            let length = value.len() as u8 - 1;
            out.push(if negative { 0x7f - length } else { 0x80 + length });
        } else {
            let length = u32::try_from(value.len()).unwrap_or(u32::MAX);
            if negative {
                out.push(NEGATIVE_LONG);
                out.extend_from_slice(&(!length).to_be_bytes());
            } else {
                out.push(POSITIVE_LONG);
                out.extend_from_slice(&length.to_be_bytes());
            }
        }
        out.extend_from_slice(value);
    });
}

/// Splits the encoded number off the front of `input`: its two's complement bytes, and the bytes it took.
pub(super) fn take_varint(input: &[u8], order: Order) -> Result<(Vec<u8>, usize)> {
    let unfinished = || StorageError::damaged("key ends inside a varint");
    let mask = order.mask();
    let header = input.first().ok_or_else(unfinished)? ^ mask;
    let negative = header < 0x80;
    let (length, start): (usize, usize) = if header == POSITIVE_LONG || header == NEGATIVE_LONG {
        let field: [u8; 4] = input.get(1..5).and_then(|bytes| bytes.try_into().ok()).ok_or_else(unfinished)?;
        let field = u32::from_be_bytes(field.map(|byte| byte ^ mask));
        (if negative { !field } else { field } as usize, 5)
    } else if (NEGATIVE_LONG..POSITIVE_LONG).contains(&header) {
        (usize::from(if negative { 0x7f - header } else { header - 0x80 }) + 1, 1)
    } else {
        return Err(StorageError::damaged("bad header of a varint in a key"));
    };
    let end = start.checked_add(length).ok_or_else(unfinished)?;
    let value: Vec<u8> = input.get(start..end).ok_or_else(unfinished)?.iter().map(|byte| byte ^ mask).collect();
    if value.first().is_some_and(|byte| byte & 0x80 != 0) != negative {
        return Err(StorageError::damaged("sign of a varint in a key contradicts its header"));
    }
    Ok((value, end))
}
