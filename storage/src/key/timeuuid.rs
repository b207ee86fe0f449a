//! Version 1 UUIDs in Cassandra's order: by time, then by the low eight bytes, each read as signed
//! (Cassandra's TimeUUIDType).

use super::{put_ordered, Order};

/// UUID bytes in the order in which they count: high, middle and low part of the time, then the rest.
const BY_WEIGHT: [usize; 16] = [6, 7, 4, 5, 0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15];

/// From this place on bytes are compared as signed.
const FIRST_SIGNED: usize = 8;

/// The bytes, by weight and sign flipped: unsigned comparison of the result is Cassandra's order.
#[must_use]
pub fn sort_bytes(uuid: &[u8; 16]) -> [u8; 16] {
    std::array::from_fn(|place| {
        let byte = BY_WEIGHT.get(place).and_then(|from| uuid.get(*from)).copied().unwrap_or_default();
        if place < FIRST_SIGNED {
            byte
        } else {
            byte ^ 0x80
        }
    })
}

/// Inverse of [`sort_bytes`].
pub(super) fn from_sort_bytes(sorted: &[u8; 16]) -> [u8; 16] {
    let mut uuid = [0; 16];
    for (place, (from, byte)) in BY_WEIGHT.iter().zip(sorted).enumerate() {
        if let Some(target) = uuid.get_mut(*from) {
            *target = if place < FIRST_SIGNED { *byte } else { byte ^ 0x80 };
        }
    }
    uuid
}

/// Appends a time UUID (16 bytes).
pub fn put_timeuuid(out: &mut Vec<u8>, uuid: &[u8; 16], order: Order) {
    put_ordered(out, order, |out| out.extend_from_slice(&sort_bytes(uuid)));
}
