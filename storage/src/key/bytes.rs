//! Byte strings of any length: zero bytes escaped, then a terminator.
//!
//! `00` becomes `00 FF` and the end is `00 00`, so that a string sorts before everything it is a prefix of.

use std::borrow::Cow;

use super::Order;
use crate::error::{Result, StorageError};

const ESCAPED_ZERO: u8 = 0xff;
const END: u8 = 0x00;

/// Appends a byte string, ordered as unsigned bytes.
pub fn put_bytes(out: &mut Vec<u8>, value: &[u8], order: Order) {
    super::put_ordered(out, order, |out| {
        out.reserve(value.len() + 2);
        let mut pieces = value.split(|byte| *byte == 0);
        if let Some(first) = pieces.next() {
            out.extend_from_slice(first);
        }
        for piece in pieces {
            out.extend_from_slice(&[0, ESCAPED_ZERO]);
            out.extend_from_slice(piece);
        }
        out.extend_from_slice(&[0, END]);
    });
}

/// Splits the encoded string off the front of `input`: its value, and the bytes it took.
pub(super) fn take_bytes(input: &[u8], order: Order) -> Result<(Cow<'_, [u8]>, usize)> {
    let mask = order.mask();
    let unfinished = || StorageError::damaged("key ends inside a byte string");
    let zero = |bytes: &[u8]| bytes.iter().position(|byte| byte ^ mask == 0);
    let next = |position: usize| input.get(position).map(|byte| byte ^ mask).ok_or_else(unfinished);

    let first = zero(input).ok_or_else(unfinished)?;
    let plain = input.get(..first).ok_or_else(unfinished)?;
    if order == Order::Ascending && next(first + 1)? == END {
        return Ok((Cow::Borrowed(plain), first + 2));
    }

    let mut value: Vec<u8> = plain.iter().map(|byte| byte ^ mask).collect();
    let mut position = first;
    loop {
        match next(position + 1)? {
            END => return Ok((Cow::Owned(value), position + 2)),
            ESCAPED_ZERO => value.push(0),
            _ => return Err(StorageError::damaged("bad escape in a key's byte string")),
        }
        let rest = input.get(position + 2..).ok_or_else(unfinished)?;
        let length = zero(rest).ok_or_else(unfinished)?;
        value.extend(rest.iter().take(length).map(|byte| byte ^ mask));
        position += 2 + length;
    }
}
