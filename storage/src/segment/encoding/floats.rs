//! Floating-point numbers: as decimals where they are short decimals, else as their bits.
//!
//! Measured values mostly have few decimal places: 20.53 is stored as the integer 2053 and divided by 100 when
//! read. A number is stored so only if the division gives back exactly its bits; the few that do not go into a
//! list of exceptions. (The idea of ALP, Afroozeh and others, SIGMOD 2024.)

use super::ints;
use crate::bytes::{put_varint, ByteReader};
use crate::error::{Result, StorageError};

/// The bits as integers.
const BITS: u8 = 0;
/// Decimals with exceptions.
const DECIMAL: u8 = 1;
/// All first bytes, then all second bytes and so on, which compresses better than number by number.
const PLANES: u8 = 2;

/// Powers of ten that a double holds exactly and that leave room for digits before the point.
const POWERS: [f64; 11] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10];
/// Integers up to this magnitude are exact in a double.
const MAX_EXACT: f64 = (1u64 << 53) as f64;

/// Appends the chunk of numbers given by their bits in `width` bytes each (4 or 8).
pub(crate) fn encode(out: &mut Vec<u8>, bits: &[u64], width: usize) {
    let allowed = bits.len() / 16;
    let decimal = (0..POWERS.len()).find_map(|power| decimals(bits, width, power, allowed).map(|found| (power, found)));
    let mut as_bits = vec![BITS];
    ints::encode(&mut as_bits, bits);
    let mut best = as_bits;
    if let Some((power, (integers, exceptions))) = decimal {
        let mut chunk = vec![DECIMAL, power as u8];
        ints::encode(&mut chunk, &integers);
        put_varint(&mut chunk, exceptions.len() as u64);
        let mut next = 0;
        for index in exceptions {
            put_varint(&mut chunk, (index - next) as u64);
            chunk.extend_from_slice(&bits[index].to_le_bytes()[..width]);
            next = index + 1;
        }
        if chunk.len() < best.len() {
            best = chunk;
        }
    }
    // Packed bits defeat compression, so they must be clearly smaller than whole bytes.
    if best.len() > bits.len() * width * 7 / 8 {
        best.clear();
        best.push(PLANES);
        for byte in 0..width {
            best.extend(bits.iter().map(|value| value.to_le_bytes()[byte]));
        }
    }
    out.extend_from_slice(&best);
}

/// The numbers times 10^`power` as integers, and the indexes of those that are none; `None` if these are more
/// than `allowed`. An exception's integer repeats the one before, which costs least.
fn decimals(bits: &[u64], width: usize, power: usize, allowed: usize) -> Option<(Vec<u64>, Vec<usize>)> {
    let mut integers = Vec::with_capacity(bits.len());
    let mut exceptions = Vec::new();
    let mut last = 0;
    for (index, value) in bits.iter().enumerate() {
        let scaled = (number(*value, width) * POWERS[power]).round();
        if scaled.abs() <= MAX_EXACT && from_decimal(scaled as i64 as u64, power, width) == *value {
            last = scaled as i64 as u64;
        } else {
            exceptions.push(index);
            if exceptions.len() > allowed {
                return None;
            }
        }
        integers.push(last);
    }
    Some((integers, exceptions))
}

fn number(bits: u64, width: usize) -> f64 {
    if width == 4 {
        f64::from(f32::from_bits(bits as u32))
    } else {
        f64::from_bits(bits)
    }
}

fn from_decimal(integer: u64, power: usize, width: usize) -> u64 {
    let value = integer as i64 as f64 / POWERS[power];
    if width == 4 {
        u64::from((value as f32).to_bits())
    } else {
        value.to_bits()
    }
}

/// Decodes a chunk of `count` numbers into their bytes, `width` each.
pub(crate) fn decode(reader: &mut ByteReader<'_>, count: usize, width: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(count * width);
    match reader.u8()? {
        BITS => {
            let integers = ints::decode(reader, count)?;
            (0..count).for_each(|index| bytes.extend_from_slice(&integers.get(index).to_le_bytes()[..width]));
        }
        DECIMAL => {
            let power = usize::from(reader.u8()?);
            if power >= POWERS.len() {
                return Err(StorageError::damaged("unknown power of ten"));
            }
            let integers = ints::decode(reader, count)?;
            for index in 0..count {
                bytes.extend_from_slice(&from_decimal(integers.get(index), power, width).to_le_bytes()[..width]);
            }
            let mut next = 0usize;
            for _ in 0..reader.size()? {
                let index = next.saturating_add(reader.size()?);
                let place = bytes.chunks_exact_mut(width).nth(index);
                place
                    .ok_or_else(|| StorageError::damaged("exception is out of its chunk"))?
                    .copy_from_slice(reader.take(width)?);
                next = index + 1;
            }
        }
        PLANES => {
            let planes = reader.take(count * width)?;
            for index in 0..count {
                bytes.extend((0..width).map(|byte| planes[byte * count + index]));
            }
        }
        _ => return Err(StorageError::damaged("unknown encoding of floating-point numbers")),
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(bits: &[u64], width: usize) -> usize {
        let mut out = Vec::new();
        encode(&mut out, bits, width);
        let mut reader = ByteReader::new(&out);
        let found = decode(&mut reader, bits.len(), width).unwrap();
        assert!(reader.is_empty());
        let expected: Vec<u8> = bits.iter().flat_map(|value| value.to_le_bytes()[..width].to_vec()).collect();
        assert_eq!(found, expected);
        out.len()
    }

    proptest! {
        #[test]
        fn any_bits_come_back_exactly(bits in prop::collection::vec(any::<u64>(), 1..80)) {
            round_trip(&bits, 8);
            let singles: Vec<u64> = bits.iter().map(|value| value & 0xffff_ffff).collect();
            round_trip(&singles, 4);
        }

        #[test]
        fn decimals_with_special_values_come_back_exactly(
            numbers in prop::collection::vec(-100_000i32..100_000, 1..=256),
            places in 0i32..4,
            special in prop::sample::select(vec![f64::NAN, -0.0, f64::INFINITY, f64::MIN_POSITIVE, 1.0 / 3.0]),
        ) {
            let mut numbers: Vec<f64> = numbers.iter().map(|n| f64::from(*n) / 10f64.powi(places)).collect();
            numbers[0] = special;
            round_trip(&numbers.iter().map(|n| n.to_bits()).collect::<Vec<_>>(), 8);
            round_trip(&numbers.iter().map(|n| u64::from((*n as f32).to_bits())).collect::<Vec<_>>(), 4);
        }

        #[test]
        fn damaged_numbers_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..100), count in 0usize..=256) {
            let _ = decode(&mut ByteReader::new(&bytes), count, 8);
            let _ = decode(&mut ByteReader::new(&bytes), count, 4);
        }
    }

    #[test]
    fn a_walk_in_hundredths_takes_about_a_byte_a_value() {
        let mut value = 2000i64;
        let bits: Vec<u64> = (0..256i64)
            .map(|n| {
                value += n * 7919 % 101 - 50;
                (value as f64 / 100.0).to_bits()
            })
            .collect();
        assert!(round_trip(&bits, 8) < 256 + 16);
    }
}
