//! PostgreSQL's `numeric` as Cassandra's `decimal`.
//!
//! The format on disk is private to PostgreSQL's numeric.c (NumericShort and NumericLong), but has been fixed
//! since 9.1 and is what pg_upgrade carries over.

use cass_storage::integer::Integer;
use cass_storage::key::Decimal;

use super::error::TypeError;

const SIGN_MASK: u16 = 0xc000;
const SIGN_NEGATIVE: u16 = 0x4000;
const SIGN_SHORT: u16 = 0x8000;
const SIGN_SPECIAL: u16 = 0xc000;
const SPECIAL_MASK: u16 = 0xf000;
const SPECIAL_POSITIVE_INFINITY: u16 = 0xd000;
const SPECIAL_NEGATIVE_INFINITY: u16 = 0xf000;
const LONG_SCALE_MASK: u16 = 0x3fff;
const SHORT_NEGATIVE: u16 = 0x2000;
const SHORT_SCALE_MASK: u16 = 0x1f80;
const SHORT_SCALE_SHIFT: u32 = 7;
const SHORT_WEIGHT_SIGN: u16 = 0x0040;
const SHORT_WEIGHT_MASK: u16 = 0x003f;

/// Decimal digits in one digit of `numeric`.
const DIGIT_DECIMALS: i32 = 4;

/// A `numeric` value, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Numeric {
    NegativeInfinity,
    PositiveInfinity,
    NaN,
    Finite { negative: bool, weight: i32, display_scale: i32, digits: Vec<u16> },
}

impl Numeric {
    /// Reads the bytes after the varlena header.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, TypeError> {
        let damaged = || TypeError::new("XX001", "damaged numeric value");
        let (words, rest) = bytes.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(damaged());
        }
        let mut words = words.iter().map(|word| u16::from_ne_bytes(*word));
        let header = words.next().ok_or_else(damaged)?;
        let (negative, weight, display_scale) = match header & SIGN_MASK {
            SIGN_SPECIAL => {
                return Ok(match header & SPECIAL_MASK {
                    SPECIAL_POSITIVE_INFINITY => Self::PositiveInfinity,
                    SPECIAL_NEGATIVE_INFINITY => Self::NegativeInfinity,
                    _ => Self::NaN,
                })
            }
            SIGN_SHORT => {
                let low = i32::from(header & SHORT_WEIGHT_MASK);
                let weight = if header & SHORT_WEIGHT_SIGN != 0 { low - 64 } else { low };
                (header & SHORT_NEGATIVE != 0, weight, (header & SHORT_SCALE_MASK) >> SHORT_SCALE_SHIFT)
            }
            sign => {
                let weight = i32::from(words.next().ok_or_else(damaged)? as i16);
                (sign == SIGN_NEGATIVE, weight, header & LONG_SCALE_MASK)
            }
        };
        let digits: Vec<u16> = words.collect();
        if digits.iter().any(|digit| *digit > 9999) {
            return Err(damaged());
        }
        Ok(Self::Finite { negative, weight, display_scale: display_scale.into(), digits })
    }

    /// As the key encoding takes it.
    pub(super) fn as_decimal(&self) -> Decimal<'_> {
        match self {
            Self::NegativeInfinity => Decimal::NegativeInfinity,
            Self::PositiveInfinity => Decimal::PositiveInfinity,
            Self::NaN => Decimal::NaN,
            Self::Finite { negative, weight, digits, .. } => {
                Decimal::Finite { negative: *negative, weight: *weight, digits }
            }
        }
    }

    /// The unscaled integer and power of ten of the value, without trailing zeros; `None` if not finite.
    fn unscaled(&self) -> Option<(Integer, i32)> {
        let Self::Finite { negative, weight, digits, .. } = self else {
            return None;
        };
        let end = digits.iter().rposition(|digit| *digit != 0).map_or(0, |last| last + 1);
        let digits = digits.get(..end).unwrap_or_default();
        let Some((last, leading)) = digits.split_last() else {
            return Some((Integer::zero(), 0));
        };
        let zeros = (1..DIGIT_DECIMALS as u32).take_while(|zeros| last % 10u16.pow(*zeros) == 0).count() as u32;
        let mut unscaled = Integer::zero();
        for digit in leading {
            unscaled.multiply_add(10_000, u32::from(*digit));
        }
        let divisor = 10u32.pow(zeros);
        unscaled.multiply_add(10_000 / divisor, u32::from(*last) / divisor);
        let exponent = (weight + 1 - digits.len() as i32) * DIGIT_DECIMALS + zeros as i32;
        Some((unscaled.with_sign(*negative), exponent))
    }

    /// The value's integer part; `None` if the value is not finite.
    pub(super) fn to_integer(&self) -> Option<Integer> {
        let (mut integer, exponent) = self.unscaled()?;
        match u32::try_from(exponent) {
            Ok(exponent) => integer.multiply_power_of_ten(exponent),
            Err(_) => integer.divide_power_of_ten(exponent.unsigned_abs()),
        }
        Some(integer)
    }

    /// Appends Cassandra's `decimal`: a 4-byte scale and the unscaled number in two's complement.
    ///
    /// The scale is `declared_scale`, if every digit of the value fits it, else the value's own display scale.
    pub(super) fn serialize(&self, declared_scale: Option<i32>, out: &mut Vec<u8>) -> Result<(), TypeError> {
        let (Self::Finite { display_scale, .. }, Some((mut unscaled, exponent))) = (self, self.unscaled()) else {
            return Err(TypeError::new("22023", "NaN and infinity cannot be part of a partition key")
                .detail("Cassandra's decimal has no such values, so they have no token."));
        };
        let zero = unscaled == Integer::zero();
        let fits = |scale: &i32| zero || exponent + scale >= 0;
        let scale = declared_scale.filter(fits).or(Some(*display_scale).filter(fits)).unwrap_or(-exponent);
        unscaled.multiply_power_of_ten(u32::try_from(exponent + scale).unwrap_or_default());
        out.extend_from_slice(&scale.to_be_bytes());
        out.extend_from_slice(&unscaled.to_twos_complement());
        Ok(())
    }
}

/// The scale of `numeric(p, s)`; `None` where no type modifier is given.
pub(super) fn declared_scale(typmod: i32) -> Option<i32> {
    const HEADER: i32 = 4;
    // Eleven bits, sign-extended (numeric.c, numeric_typmod_scale).
    (typmod >= HEADER).then(|| (((typmod - HEADER) & 0x7ff) ^ 1024) - 1024)
}
