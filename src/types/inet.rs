//! `inet`: an address with a netmask, ordered as PostgreSQL's `network_cmp`.

use cass_storage::error::StorageError;
use cass_storage::key::{put_fixed, KeyReader, Order};

use super::error::TypeError;

/// PostgreSQL's numbers of the address families (`PGSQL_AF_INET`, `PGSQL_AF_INET6`).
const FAMILY_V4: u8 = 2;
const FAMILY_V6: u8 = 3;

/// Family, number of netmask bits, and address.
pub(super) struct Inet<'a> {
    family: u8,
    bits: u8,
    address: &'a [u8],
}

impl<'a> Inet<'a> {
    /// Reads the bytes after the varlena header.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, TypeError> {
        match bytes {
            [family @ FAMILY_V4, bits @ 0..=32, address @ ..] if address.len() == 4 => {
                Ok(Self { family: *family, bits: *bits, address })
            }
            [family @ FAMILY_V6, bits @ 0..=128, address @ ..] if address.len() == 16 => {
                Ok(Self { family: *family, bits: *bits, address })
            }
            _ => Err(TypeError::new("XX001", "damaged inet value")),
        }
    }

    fn is_host(&self) -> bool {
        usize::from(self.bits) == self.address.len() * 8
    }

    /// Appends Cassandra's `inet`: the 4 or 16 bytes of the address.
    pub(super) fn serialize(&self, out: &mut Vec<u8>) -> Result<(), TypeError> {
        if !self.is_host() {
            return Err(TypeError::new("22023", "an inet value with a netmask cannot be part of a partition key")
                .detail("Cassandra's inet is one host's address, so a network has no token.")
                .hint("Use host addresses, for example host(value)::inet."));
        }
        out.extend_from_slice(self.address);
        Ok(())
    }

    /// Appends family, network, bits, and, if the value is not a host, the whole address.
    ///
    /// `network_cmp` compares family, the bits both netmasks cover, the number of bits, then the whole
    /// address. Masked addresses agree with that: where the shorter mask's bits are equal, the shorter
    /// one is padded with zeros, hence not greater, and on a tie the number of bits decides.
    pub(super) fn encode_key(&self, order: Order, out: &mut Vec<u8>) {
        put_fixed(out, &[self.family], order);
        let bits = usize::from(self.bits);
        let network: Vec<u8> = self
            .address
            .iter()
            .enumerate()
            .map(|(i, byte)| {
                let kept = bits.saturating_sub(i * 8).min(8) as u32;
                byte & 0xffu8.checked_shl(8 - kept).unwrap_or(0)
            })
            .collect();
        put_fixed(out, &network, order);
        put_fixed(out, &[self.bits], order);
        if !self.is_host() {
            put_fixed(out, self.address, order);
        }
    }
}

/// Inverse of [`Inet::encode_key`]: the bytes after the varlena header.
pub(super) fn decode_key(reader: &mut KeyReader<'_>, order: Order) -> Result<Vec<u8>, TypeError> {
    fn rest<const LENGTH: usize>(
        reader: &mut KeyReader<'_>,
        order: Order,
        family: u8,
    ) -> Result<Vec<u8>, StorageError> {
        let network = reader.take_fixed::<LENGTH>(order)?;
        let [bits] = reader.take_fixed::<1>(order)?;
        let is_host = usize::from(bits) == LENGTH * 8;
        let address = if is_host { network } else { reader.take_fixed::<LENGTH>(order)? };
        Ok([&[family, bits], address.as_slice()].concat())
    }
    let [family] = reader.take_fixed::<1>(order)?;
    let bytes = match family {
        FAMILY_V4 => rest::<4>(reader, order, family)?,
        FAMILY_V6 => rest::<16>(reader, order, family)?,
        _ => return Err(TypeError::new("XX001", "bad address family of an inet value in a key")),
    };
    Inet::parse(&bytes)?;
    Ok(bytes)
}
