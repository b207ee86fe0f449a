//! Reading an encoded key column by column.

use std::borrow::Cow;

use super::{bytes, decimal, timeuuid, varint, Order};
use crate::error::{Result, StorageError};

/// Takes values off the front of an encoded key; each method is the inverse of the `put_` function of its name.
#[derive(Clone, Copy, Debug)]
pub struct KeyReader<'a> {
    rest: &'a [u8],
}

macro_rules! take_integer {
    ($($name:ident, $integer:ty;)*) => {$(
        #[doc = concat!("Takes an `", stringify!($integer), "`.")]
        pub fn $name(&mut self, order: Order) -> Result<$integer> {
            Ok(<$integer>::from_be_bytes(self.take_fixed(order)?) ^ <$integer>::MIN)
        }
    )*};
}

macro_rules! take_float {
    ($($name:ident, $float:ty, $bits:ty, $unsigned:ty, $take_integer:ident;)*) => {$(
        #[doc = concat!("Takes an `", stringify!($float), "`.")]
        pub fn $name(&mut self, order: Order) -> Result<$float> {
            let bits = self.$take_integer(order)?;
            let bits = if bits < 0 { bits ^ <$bits>::MAX } else { bits };
            Ok(<$float>::from_bits(bits as $unsigned))
        }
    )*};
}

impl<'a> KeyReader<'a> {
    /// A reader at the front of `key`.
    #[must_use]
    pub fn new(key: &'a [u8]) -> Self {
        Self { rest: key }
    }

    /// What has not been taken yet.
    #[must_use]
    pub fn remaining(&self) -> &'a [u8] {
        self.rest
    }

    fn advance(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) =
            self.rest.split_at_checked(count).ok_or(StorageError::damaged("key ends inside a value"))?;
        self.rest = rest;
        Ok(taken)
    }

    /// Takes the token.
    pub fn take_token(&mut self) -> Result<i64> {
        self.take_i64(Order::Ascending)
    }

    /// Takes a truth value.
    pub fn take_bool(&mut self, order: Order) -> Result<bool> {
        match self.take_fixed::<1>(order)? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(StorageError::damaged("bad truth value in a key")),
        }
    }

    take_integer! {
        take_i8, i8;
        take_i16, i16;
        take_i32, i32;
        take_i64, i64;
    }

    take_float! {
        take_f32, f32, i32, u32, take_i32;
        take_f64, f64, i64, u64, take_i64;
    }

    /// Takes `N` bytes.
    pub fn take_fixed<const N: usize>(&mut self, order: Order) -> Result<[u8; N]> {
        let mask = order.mask();
        let taken: [u8; N] =
            self.advance(N)?.try_into().map_err(|_| StorageError::damaged("key ends inside a value"))?;
        Ok(taken.map(|byte| byte ^ mask))
    }

    /// Takes a byte string; borrowed from the key where it stands there unchanged.
    pub fn take_bytes(&mut self, order: Order) -> Result<Cow<'a, [u8]>> {
        let (value, length) = bytes::take_bytes(self.rest, order)?;
        self.advance(length)?;
        Ok(value)
    }

    /// Takes a time UUID.
    pub fn take_timeuuid(&mut self, order: Order) -> Result<[u8; 16]> {
        Ok(timeuuid::from_sort_bytes(&self.take_fixed(order)?))
    }

    /// Takes an integer of any length: minimal two's complement, big-endian.
    pub fn take_varint(&mut self, order: Order) -> Result<Vec<u8>> {
        let (value, length) = varint::take_varint(self.rest, order)?;
        self.advance(length)?;
        Ok(value)
    }

    /// Passes over a decimal number, whose encoding does not say how it was written. Gives its encoding.
    pub fn skip_decimal(&mut self, order: Order) -> Result<&'a [u8]> {
        self.advance(decimal::decimal_length(self.rest, order)?)
    }
}
