//! Decimal numbers of any precision, in numeric order: 1, 1.0 and 1.00 have one encoding.
//!
//! A class byte; then, for finite numbers other than zero, the exponent and the digits, inverted if the
//! number is negative. Digits are base 10000, as PostgreSQL's `numeric` keeps them.

use super::{put_ordered, Order};
use crate::error::{Result, StorageError};

const NEGATIVE_INFINITY: u8 = 0;
const NEGATIVE: u8 = 1;
const ZERO: u8 = 2;
const POSITIVE: u8 = 3;
const POSITIVE_INFINITY: u8 = 4;
const NAN: u8 = 5;

/// A decimal number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decimal<'a> {
    /// Less than every other value.
    NegativeInfinity,
    /// Sum of `digits[i] * 10000^(weight - i)`.
    Finite {
        /// Whether the sum is to be negated.
        negative: bool,
        /// Power of 10000 of the first digit.
        weight: i32,
        /// Digits in 0..=9999; zeros at either end are allowed.
        digits: &'a [u16],
    },
    /// Greater than every finite value.
    PositiveInfinity,
    /// Equal to itself and greater than every other value, as in PostgreSQL.
    NaN,
}

/// Appends a decimal number. What is written orders and compares as the number does, but does not say
/// with how many trailing zeros it was written.
pub fn put_decimal(out: &mut Vec<u8>, value: Decimal<'_>, order: Order) {
    put_ordered(out, order, |out| match value {
        Decimal::NegativeInfinity => out.push(NEGATIVE_INFINITY),
        Decimal::PositiveInfinity => out.push(POSITIVE_INFINITY),
        Decimal::NaN => out.push(NAN),
        Decimal::Finite { negative, weight, digits } => {
            let Some(first) = digits.iter().position(|digit| *digit != 0) else {
                out.push(ZERO);
                return;
            };
            let weight = weight.saturating_sub(i32::try_from(first).unwrap_or(i32::MAX));
            let end = digits.iter().rposition(|digit| *digit != 0).map_or(0, |last| last + 1);
            out.push(if negative { NEGATIVE } else { POSITIVE });
            let magnitude_order = if negative { Order::Descending } else { Order::Ascending };
            super::put_i32(out, weight, magnitude_order);
            put_ordered(out, magnitude_order, |out| {
                for digit in digits.get(first..end).unwrap_or_default() {
                    // One more than the digit, so that zero is left to end the digits.
                    out.extend_from_slice(&(digit + 1).to_be_bytes());
                }
                out.extend_from_slice(&[0, 0]);
            });
        }
    });
}

/// The number of bytes that the encoded number at the front of `input` takes.
pub(super) fn decimal_length(input: &[u8], order: Order) -> Result<usize> {
    let unfinished = || StorageError::damaged("key ends inside a decimal");
    let mask = order.mask();
    let end_of_digits = match input.first().ok_or_else(unfinished)? ^ mask {
        NEGATIVE_INFINITY | ZERO | POSITIVE_INFINITY | NAN => return Ok(1),
        POSITIVE => [mask, mask],
        NEGATIVE => [!mask, !mask],
        _ => return Err(StorageError::damaged("bad class of a decimal in a key")),
    };
    let digits = input.get(5..).ok_or_else(unfinished)?;
    let count = digits.chunks_exact(2).position(|digit| digit == end_of_digits).ok_or_else(unfinished)?;
    Ok(5 + 2 * (count + 1))
}
