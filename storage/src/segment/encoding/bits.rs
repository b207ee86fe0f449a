//! Packing numbers of a fixed number of bits, least significant bit first.

use crate::error::{Result, StorageError};

/// Bytes that `count` numbers of `width` bits take.
pub(crate) fn packed_len(count: usize, width: u32) -> usize {
    (count * width as usize).div_ceil(8)
}

/// The lowest `width` bits set.
pub(crate) fn mask(width: u32) -> u64 {
    if width >= 64 {
        u64::MAX
    } else {
        (1 << width) - 1
    }
}

/// Appends the lowest `width` bits of each value.
pub(crate) fn pack(out: &mut Vec<u8>, values: impl Iterator<Item = u64>, width: u32) {
    if width == 0 {
        return;
    }
    let mask = mask(width);
    let mut pending: u128 = 0;
    let mut bits = 0;
    for value in values {
        pending |= u128::from(value & mask) << bits;
        bits += width;
        if bits >= 64 {
            out.extend_from_slice(&(pending as u64).to_le_bytes());
            pending >>= 64;
            bits -= 64;
        }
    }
    out.extend_from_slice(&(pending as u64).to_le_bytes()[..bits.div_ceil(8) as usize]);
}

/// Unpacks `count` numbers of `width` bits from `bytes`.
pub(crate) fn unpack(bytes: &[u8], width: u32, count: usize, mut each: impl FnMut(u64)) -> Result<()> {
    if width > 64 || bytes.len() < packed_len(count, width) {
        return Err(StorageError::damaged("packed numbers end too early"));
    }
    if width == 0 {
        (0..count).for_each(|_| each(0));
        return Ok(());
    }
    let mask = mask(width);
    for index in 0..count {
        let bit = index * width as usize;
        let (byte, shift) = (bit / 8, (bit % 8) as u32);
        let rest = &bytes[byte..];
        let mut value = match rest.first_chunk::<8>() {
            Some(word) => u64::from_le_bytes(*word) >> shift,
            None => {
                let mut word = [0; 8];
                word[..rest.len()].copy_from_slice(rest);
                u64::from_le_bytes(word) >> shift
            }
        };
        if shift + width > 64 {
            value |= u64::from(*rest.get(8).unwrap_or(&0)) << (64 - shift);
        }
        each(value & mask);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_of_any_width_unpack_as_packed(values in prop::collection::vec(any::<u64>(), 0..70), width in 0u32..=64) {
            let mut out = Vec::new();
            pack(&mut out, values.iter().copied(), width);
            prop_assert_eq!(out.len(), packed_len(values.len(), width));
            let mut found = Vec::new();
            unpack(&out, width, values.len(), |value| found.push(value)).unwrap();
            let expected: Vec<u64> = values.iter().map(|value| value & mask(width)).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
