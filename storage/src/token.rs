//! Tokens as Cassandra's Murmur3Partitioner gives them.
//!
//! The hash is the first half of MurmurHash3_x64_128 with seed 0, with one difference that Cassandra
//! keeps for compatibility: the bytes of the tail (the last `len % 16`) are read as signed, so a byte
//! of 0x80 or more is sign-extended before it is shifted. Stock murmur3 crates therefore agree only
//! on about half of all inputs.

use crate::error::{Result, StorageError};

/// Most bytes a whole serialised partition key may have (Cassandra writes its length as an unsigned short).
pub const MAX_PARTITION_KEY_BYTES: usize = u16::MAX as usize;

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

fn mix_k1(k1: u64) -> u64 {
    k1.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

fn mix_k2(k2: u64) -> u64 {
    k2.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

fn finish(mut h: u64) -> u64 {
    h ^= h >> 33;
    h = h.wrapping_mul(0xff51_afd7_ed55_8ccd);
    h ^= h >> 33;
    h = h.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^ (h >> 33)
}

fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// XOR of up to eight tail bytes, each sign-extended to 64 bits before its shift.
fn signed_tail(bytes: &[u8]) -> u64 {
    bytes.iter().enumerate().fold(0, |tail, (i, byte)| tail ^ (i64::from(*byte as i8) as u64) << (8 * i))
}

/// The token of a serialised partition key.
///
/// The empty key has the smallest token, `i64::MIN`, which no other key has: a hash of `i64::MIN`
/// becomes `i64::MAX`. (Cassandra refuses to store the empty key.)
#[must_use]
pub fn token(serialized: &[u8]) -> i64 {
    if serialized.is_empty() {
        return i64::MIN;
    }
    let (mut h1, mut h2) = (0u64, 0u64);
    let mut blocks = serialized.chunks_exact(16);
    for block in &mut blocks {
        let (low, high) = block.split_at(8);
        h1 ^= mix_k1(word(low));
        h1 = h1.rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 ^= mix_k2(word(high));
        h2 = h2.rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    let tail = blocks.remainder();
    let (low, high) = tail.split_at(tail.len().min(8));
    // The mix of an absent (zero) word is zero, so no case distinction on the tail's length is needed.
    h2 ^= mix_k2(signed_tail(high));
    h1 ^= mix_k1(signed_tail(low));

    let length = serialized.len() as u64;
    h1 ^= length;
    h2 ^= length;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    let hash = finish(h1).wrapping_add(finish(h2)) as i64;
    if hash == i64::MIN {
        i64::MAX
    } else {
        hash
    }
}

/// Builds the serialised partition key of one row, component by component.
///
/// A key of one component is that component's bytes. A key of several is Cassandra's composite: for
/// each component a two-byte big-endian length, the bytes, and a zero byte.
#[derive(Debug)]
pub struct PartitionKeyBuilder {
    composite: bool,
    bytes: Vec<u8>,
}

impl PartitionKeyBuilder {
    /// A builder for keys of `components` columns.
    #[must_use]
    pub fn new(components: usize) -> Self {
        Self::with_buffer(components, Vec::new())
    }

    /// The same, writing into a buffer whose space is used again; what it holds is dropped.
    #[must_use]
    pub fn with_buffer(components: usize, mut buffer: Vec<u8>) -> Self {
        buffer.clear();
        Self { composite: components > 1, bytes: buffer }
    }

    /// Appends a component's serialised bytes. A key of more than [`MAX_PARTITION_KEY_BYTES`] is refused.
    pub fn push(&mut self, component: &[u8]) -> Result<()> {
        self.push_with(|out| {
            out.extend_from_slice(component);
            Ok(())
        })
    }

    /// Appends a component that `write` serialises onto the end of the buffer it is given.
    pub fn push_with<E: From<StorageError>>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let start = self.bytes.len();
        if self.composite {
            self.bytes.extend_from_slice(&[0, 0]);
            write(&mut self.bytes)?;
            let length = self.bytes.len().saturating_sub(start + 2);
            if let (Ok(length), Some(place)) = (u16::try_from(length), self.bytes.get_mut(start..start + 2)) {
                place.copy_from_slice(&length.to_be_bytes());
            }
            self.bytes.push(0);
        } else {
            write(&mut self.bytes)?;
        }
        if self.bytes.len() > MAX_PARTITION_KEY_BYTES {
            return Err(StorageError::TooLarge {
                what: "partition key",
                size: self.bytes.len() as u64,
                limit: MAX_PARTITION_KEY_BYTES as u64,
            }
            .into());
        }
        Ok(())
    }

    /// The token of what has been pushed.
    #[must_use]
    pub fn token(&self) -> i64 {
        token(&self.bytes)
    }

    /// The serialised key.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::{token, PartitionKeyBuilder};
    use crate::error::StorageError;

    fn composite(components: &[&[u8]]) -> i64 {
        let mut key = PartitionKeyBuilder::new(components.len());
        for component in components {
            key.push(component).expect("small key");
        }
        key.token()
    }

    /// Values published in Cassandra's own literature.
    #[test]
    fn tokens_equal_those_in_cassandras_literature() {
        let uuid: u128 = 0x41d0_1b63_244e_435d_bd6d_5dc8_a0ad_db8c;
        assert_eq!(token(&uuid.to_be_bytes()), -2_767_158_835_560_740_559);
        assert_eq!(composite(&[&2000i32.to_be_bytes(), b"1"]), -108_427_357_362_698_080);
        assert_eq!(token(b"best"), 8_664_726_657_035_972_693);
        assert_eq!(token(&1i32.to_be_bytes()), -4_069_959_284_402_364_209);
    }

    #[test]
    fn tail_bytes_are_signed() {
        assert_eq!(token(&[0xff]), -4_442_228_696_663_692_417);
        assert_eq!(token(&(-1i64).to_be_bytes()), 7_071_048_584_287_372_947);
    }

    #[test]
    fn smallest_hash_becomes_the_greatest_token() {
        let hashes_to_min: u128 = 0xe66c_37d2_2c41_2bab_5eb3_b1ea_e3cc_c0d3;
        assert_eq!(token(&hashes_to_min.to_be_bytes()), i64::MAX);
    }

    #[test]
    fn only_the_empty_key_has_the_smallest_token() {
        assert_eq!(token(b""), i64::MIN);
        assert_eq!(composite(&[b"", b""]), token(&[0, 0, 0, 0, 0, 0]));
    }

    #[test]
    fn keys_longer_than_an_unsigned_short_are_refused() {
        let mut single = PartitionKeyBuilder::new(1);
        assert!(single.push(&vec![7; 65_535]).is_ok());
        assert!(matches!(single.push(b"x"), Err(StorageError::TooLarge { .. })));
        let mut several = PartitionKeyBuilder::new(2);
        assert!(several.push(&vec![7; 65_530]).is_ok());
        assert!(matches!(several.push(b""), Err(StorageError::TooLarge { size: 65_536, .. })));
    }
}
