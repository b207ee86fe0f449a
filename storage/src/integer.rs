//! Integers of any length: decimal digits to and from two's complement, as Cassandra's `varint` and the
//! unscaled part of its `decimal` are serialised (Java's `BigInteger.toByteArray`).

use crate::key::minimal_twos_complement;

const LIMB_DECIMALS: usize = 9;
const LIMB_POWER: u32 = 1_000_000_000;

/// Sign and magnitude of an integer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Integer {
    negative: bool,
    /// Base 2^32, least significant first, no leading (last) zero.
    limbs: Vec<u32>,
}

impl Integer {
    /// Zero.
    #[must_use]
    pub const fn zero() -> Self {
        Self { negative: false, limbs: Vec::new() }
    }

    /// The same magnitude with this sign; zero has none.
    #[must_use]
    pub fn with_sign(mut self, negative: bool) -> Self {
        self.negative = negative && !self.limbs.is_empty();
        self
    }

    /// Reads an optional sign and decimal digits; `None` for anything else.
    #[must_use]
    pub fn from_decimal(text: &str) -> Option<Self> {
        let (negative, digits) = match text.as_bytes() {
            [b'-', digits @ ..] => (true, digits),
            [b'+', digits @ ..] | digits => (false, digits),
        };
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let mut integer = Self::zero();
        for group in digits.chunks(LIMB_DECIMALS) {
            let value = group.iter().fold(0, |value, digit| value * 10 + u32::from(digit - b'0'));
            integer.multiply_add(10u32.pow(group.len() as u32), value);
        }
        Some(integer.with_sign(negative))
    }

    /// Reads two's complement, big-endian; no bytes at all is zero.
    #[must_use]
    pub fn from_twos_complement(bytes: &[u8]) -> Self {
        let negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
        let mut magnitude = bytes.to_vec();
        if negative {
            negate(&mut magnitude);
        }
        let limbs = magnitude
            .rchunks(4)
            .map(|chunk| chunk.iter().fold(0u32, |limb, byte| limb << 8 | u32::from(*byte)))
            .collect();
        let mut integer = Self { negative: false, limbs };
        integer.trim();
        integer.with_sign(negative)
    }

    /// Writes minimal two's complement, big-endian.
    #[must_use]
    pub fn to_twos_complement(&self) -> Vec<u8> {
        let mut bytes = vec![0];
        bytes.extend(self.limbs.iter().rev().flat_map(|limb| limb.to_be_bytes()));
        if self.negative {
            negate(&mut bytes);
        }
        minimal_twos_complement(&bytes).to_vec()
    }

    /// Writes decimal digits, with `-` before them if negative.
    #[must_use]
    pub fn to_decimal(&self) -> String {
        let mut rest = self.clone();
        let mut groups = Vec::new();
        while !rest.limbs.is_empty() {
            groups.push(rest.divide(LIMB_POWER));
        }
        let mut text = String::with_capacity(groups.len() * LIMB_DECIMALS + 1);
        if self.negative {
            text.push('-');
        }
        let mut groups = groups.iter().rev();
        text.push_str(&groups.next().copied().unwrap_or_default().to_string());
        for group in groups {
            text.push_str(&format!("{group:0LIMB_DECIMALS$}"));
        }
        text
    }

    /// The number as a 64-bit integer, if it is one.
    #[must_use]
    pub fn to_i64(&self) -> Option<i64> {
        let magnitude = match self.limbs.as_slice() {
            [] => 0,
            [low] => i128::from(*low),
            [low, high] => i128::from(*high) << 32 | i128::from(*low),
            _ => return None,
        };
        i64::try_from(if self.negative { -magnitude } else { magnitude }).ok()
    }

    /// Multiplies the magnitude by `factor` and adds `term`.
    pub fn multiply_add(&mut self, factor: u32, term: u32) {
        let mut carry = u64::from(term);
        for limb in &mut self.limbs {
            carry += u64::from(*limb) * u64::from(factor);
            *limb = carry as u32;
            carry >>= 32;
        }
        if carry > 0 {
            self.limbs.push(carry as u32);
        }
        self.trim();
    }

    /// Multiplies the magnitude by 10 to the power of `exponent`.
    pub fn multiply_power_of_ten(&mut self, exponent: u32) {
        for _ in 0..exponent / 9 {
            self.multiply_add(LIMB_POWER, 0);
        }
        self.multiply_add(10u32.pow(exponent % 9), 0);
    }

    /// Divides the magnitude by 10 to the power of `exponent`, dropping the remainder.
    pub fn divide_power_of_ten(&mut self, exponent: u32) {
        let mut rest = exponent;
        while rest > 0 && !self.limbs.is_empty() {
            let step = rest.min(LIMB_DECIMALS as u32);
            self.divide(10u32.pow(step));
            rest -= step;
        }
    }

    /// Divides the magnitude by `divisor`, which is not zero, and gives the remainder.
    fn divide(&mut self, divisor: u32) -> u32 {
        let mut remainder = 0u64;
        for limb in self.limbs.iter_mut().rev() {
            let value = remainder << 32 | u64::from(*limb);
            *limb = (value / u64::from(divisor)) as u32;
            remainder = value % u64::from(divisor);
        }
        self.trim();
        remainder as u32
    }

    fn trim(&mut self) {
        while self.limbs.last() == Some(&0) {
            self.limbs.pop();
        }
        self.negative &= !self.limbs.is_empty();
    }
}

/// Two's complement negation in place: inverts all bits and adds one.
fn negate(bytes: &mut [u8]) {
    let mut carry = true;
    for byte in bytes.iter_mut().rev() {
        (*byte, carry) = (!*byte).overflowing_add(u8::from(carry));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Integer;

    /// The bytes that Java's `BigInteger.toByteArray` gives.
    fn java_bytes(value: i128) -> Vec<u8> {
        let bytes = value.to_be_bytes();
        let sign = if value < 0 { 0xff } else { 0 };
        let redundant = |rest: &&[u8]| rest.len() > 1 && rest[0] == sign && (rest[1] ^ sign) & 0x80 == 0;
        let mut rest = &bytes[..];
        while redundant(&rest) {
            rest = &rest[1..];
        }
        rest.to_vec()
    }

    proptest! {
        #[test]
        fn decimal_and_twos_complement_agree(value in prop_oneof![any::<i128>(), any::<i64>().prop_map(i128::from), -300i128..300]) {
            let read = Integer::from_decimal(&value.to_string()).unwrap();
            prop_assert_eq!(read.to_twos_complement(), java_bytes(value));
            let back = Integer::from_twos_complement(&java_bytes(value));
            prop_assert_eq!(&back, &read);
            prop_assert_eq!(back.to_decimal(), value.to_string());
            prop_assert_eq!(back.to_i64(), i64::try_from(value).ok());
        }

        #[test]
        fn any_bytes_survive_decimal(bytes in proptest::collection::vec(any::<u8>(), 1..80)) {
            let integer = Integer::from_twos_complement(&bytes);
            prop_assert_eq!(Integer::from_decimal(&integer.to_decimal()).unwrap(), integer);
        }

        #[test]
        fn powers_of_ten_append_zeros(value in any::<i64>(), exponent in 0u32..40) {
            let mut integer = Integer::from_decimal(&value.unsigned_abs().to_string()).unwrap();
            integer.multiply_power_of_ten(exponent);
            let zeros = if value == 0 { String::new() } else { "0".repeat(exponent as usize) };
            prop_assert_eq!(integer.to_decimal(), format!("{}{zeros}", value.unsigned_abs()));
            integer.divide_power_of_ten(exponent);
            prop_assert_eq!(integer.to_decimal(), value.unsigned_abs().to_string());
        }
    }

    #[test]
    fn only_a_sign_and_digits_are_an_integer() {
        for text in ["", "-", "+", "1.0", " 1", "1e3", "--1", "٣"] {
            assert_eq!(Integer::from_decimal(text), None, "{text}");
        }
        assert_eq!(Integer::from_decimal("-0"), Integer::from_decimal("+000"));
        assert_eq!(Integer::zero().to_twos_complement(), [0]);
        assert_eq!(Integer::from_twos_complement(&[]).to_decimal(), "0");
    }
}
