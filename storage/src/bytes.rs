//! Reading and writing little-endian numbers, varints and byte strings, with every length checked.
//!
//! A varint is LEB128: 7 bits a byte, least significant first, the top bit set on all bytes but the last.

use crate::error::{Result, StorageError};

/// Appends `value` as a varint of 1 to 10 bytes.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a signed number as a zigzag varint, so that small magnitudes are short.
pub(crate) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put_varint(out, zigzag(value));
}

/// Appends a varint length and the bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Bytes that [`put_varint`] takes for `value`.
pub(crate) fn varint_len(value: u64) -> usize {
    (70 - (value | 1).leading_zeros() as usize) / 7
}

/// Maps 0, -1, 1, -2 ... to 0, 1, 2, 3 ...
pub(crate) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Inverse of [`zigzag`].
pub(crate) fn unzigzag(value: u64) -> i64 {
    ((value >> 1) as i64) ^ -((value & 1) as i64)
}

/// Number of leading bytes that `a` and `b` share.
pub(crate) fn shared_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// A position in a byte slice; every read is checked against its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteReader<'a> {
    rest: &'a [u8],
}

impl<'a> ByteReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        ByteReader { rest: bytes }
    }

    /// Bytes not read yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let (head, tail) =
            self.rest.split_at_checked(len).ok_or_else(|| StorageError::damaged("data ends too early"))?;
        self.rest = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (head, tail) =
            self.rest.split_first_chunk::<N>().ok_or_else(|| StorageError::damaged("data ends too early"))?;
        self.rest = tail;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn i64(&mut self) -> Result<i64> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    pub(crate) fn varint(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(StorageError::damaged("number is too long"))
    }

    pub(crate) fn signed(&mut self) -> Result<i64> {
        Ok(unzigzag(self.varint()?))
    }

    /// A varint that counts or measures something in memory.
    pub(crate) fn size(&mut self) -> Result<usize> {
        usize::try_from(self.varint()?).map_err(|_| StorageError::damaged("size is out of range"))
    }

    /// A varint length and that many bytes.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8]> {
        let len = self.size()?;
        self.take(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_read_back_as_written(unsigned: u64, shift in 0u32..64, signed: i64) {
            let unsigned = unsigned >> shift;
            let mut out = Vec::new();
            put_varint(&mut out, unsigned);
            prop_assert_eq!(out.len(), varint_len(unsigned));
            put_signed(&mut out, signed);
            let mut reader = ByteReader::new(&out);
            prop_assert_eq!(reader.varint().unwrap(), unsigned);
            prop_assert_eq!(reader.signed().unwrap(), signed);
            prop_assert!(reader.is_empty());
        }
    }

    #[test]
    fn a_number_of_more_than_64_bits_is_damage() {
        for bytes in [&[0xff; 11][..], &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02]] {
            assert!(matches!(ByteReader::new(bytes).varint(), Err(StorageError::Damaged { .. })));
        }
    }
}
