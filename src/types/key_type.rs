//! The key types and what each does with a value.

use cass_storage::key::{self, KeyReader, Order};
use pgrx::pg_sys::{self, Datum, Oid};

use super::error::TypeError;
use super::inet::{self, Inet};
use super::numeric::{declared_scale, Numeric};
use super::own::own_type;
use super::text::to_utf8;
use super::varlena::{make_fixed, make_varlena, Varlena};

/// Days and microseconds from 1970-01-01, Cassandra's epoch, to 2000-01-01, PostgreSQL's.
const EPOCH_DAYS: i64 = 10_957;
const EPOCH_MICROSECONDS: i64 = EPOCH_DAYS * 86_400_000_000;

const DAY_MICROSECONDS: i64 = 86_400_000_000;

/// Types of key columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyType {
    /// `boolean`
    Boolean,
    /// `tinyint`, of this extension
    TinyInt,
    /// `smallint`
    SmallInt,
    /// `integer`; Cassandra's int
    Int,
    /// `bigint`
    BigInt,
    /// `varint`, of this extension
    VarInt,
    /// `real`; Cassandra's float
    Real,
    /// `double precision`
    Double,
    /// `numeric`; Cassandra's decimal
    Numeric,
    /// `text` and `varchar`
    Text,
    /// `bytea`; Cassandra's blob
    Bytea,
    /// `uuid`
    Uuid,
    /// `timeuuid`, of this extension
    TimeUuid,
    /// `timestamp with time zone`
    TimestampTz,
    /// `timestamp without time zone`, taken as UTC
    Timestamp,
    /// `date`
    Date,
    /// `time without time zone`
    Time,
    /// `inet`
    Inet,
}

/// A value of a type passed by value, by its bits.
fn bits(datum: Datum) -> u64 {
    datum.value() as u64
}

fn float4(datum: Datum) -> f32 {
    f32::from_bits(bits(datum) as u32)
}

fn float8(datum: Datum) -> f64 {
    f64::from_bits(bits(datum))
}

/// # Safety
/// `datum` is a live value of a 16-byte type passed by reference.
unsafe fn sixteen_bytes(datum: Datum) -> [u8; 16] {
    // SAFETY: the caller vouches for 16 readable bytes; the type's alignment is that of a byte.
    unsafe { *datum.cast_mut_ptr::<[u8; 16]>() }
}

impl KeyType {
    /// The key type of a type; of a domain, that of its base type. `None` if it cannot be part of a key.
    #[must_use]
    pub fn of(type_oid: Oid) -> Option<Self> {
        Self::of_with_typmod(type_oid, -1).map(|(key_type, _)| key_type)
    }

    /// The same, with the type modifier that binds the value: a domain's own, else `typmod`.
    #[must_use]
    pub fn of_with_typmod(type_oid: Oid, typmod: i32) -> Option<(Self, i32)> {
        if let Some(key_type) = Self::built_in(type_oid).or_else(|| own_type(type_oid)) {
            return Some((key_type, typmod));
        }
        let mut typmod = typmod;
        // SAFETY: reads the catalog; a type that is no domain is its own base type.
        let base = unsafe { pg_sys::getBaseTypeAndTypmod(type_oid, &raw mut typmod) };
        if base == type_oid {
            return None;
        }
        Self::built_in(base).or_else(|| own_type(base)).map(|key_type| (key_type, typmod))
    }

    fn built_in(type_oid: Oid) -> Option<Self> {
        Some(match type_oid {
            pg_sys::BOOLOID => Self::Boolean,
            pg_sys::INT2OID => Self::SmallInt,
            pg_sys::INT4OID => Self::Int,
            pg_sys::INT8OID => Self::BigInt,
            pg_sys::FLOAT4OID => Self::Real,
            pg_sys::FLOAT8OID => Self::Double,
            pg_sys::NUMERICOID => Self::Numeric,
            pg_sys::TEXTOID | pg_sys::VARCHAROID => Self::Text,
            pg_sys::BYTEAOID => Self::Bytea,
            pg_sys::UUIDOID => Self::Uuid,
            pg_sys::TIMESTAMPTZOID => Self::TimestampTz,
            pg_sys::TIMESTAMPOID => Self::Timestamp,
            pg_sys::DATEOID => Self::Date,
            pg_sys::TIMEOID => Self::Time,
            pg_sys::INETOID => Self::Inet,
            _ => return None,
        })
    }

    /// Whether [`Self::decode_key`] gives exactly the value that was encoded. If not, the value must be kept
    /// beside the key: numeric 1.0 and 1.00, or -0.0 and 0.0, are one key.
    #[must_use]
    pub fn is_exact(self) -> bool {
        !matches!(self, Self::Real | Self::Double | Self::Numeric)
    }

    /// Appends Cassandra's serialisation of a value, of which tokens are made.
    ///
    /// `typmod` is the column's: a numeric is serialised with the declared scale if all its digits fit.
    ///
    /// # Errors
    /// 22008 for infinite dates and times and for 24:00:00; 22023 for other values that Cassandra's type lacks.
    ///
    /// # Safety
    /// `datum` is a live, non-null value of this type.
    pub unsafe fn serialize(self, datum: Datum, typmod: i32, out: &mut Vec<u8>) -> Result<(), TypeError> {
        match self {
            Self::Boolean => out.push(u8::from(bits(datum) & 0xff != 0)),
            Self::TinyInt => out.push(bits(datum) as u8),
            Self::SmallInt => out.extend_from_slice(&(bits(datum) as i16).to_be_bytes()),
            Self::Int => out.extend_from_slice(&(bits(datum) as i32).to_be_bytes()),
            Self::BigInt => out.extend_from_slice(&bits(datum).to_be_bytes()),
            // PostgreSQL has one NaN; Java writes it without sign and payload.
            Self::Real => {
                let value = float4(datum);
                let value = if value.is_nan() { f32::NAN.abs() } else { value };
                out.extend_from_slice(&value.to_be_bytes());
            }
            Self::Double => {
                let value = float8(datum);
                let value = if value.is_nan() { f64::NAN.abs() } else { value };
                out.extend_from_slice(&value.to_be_bytes());
            }
            Self::Timestamp | Self::TimestampTz => out.extend_from_slice(&unix_milliseconds(datum)?.to_be_bytes()),
            Self::Date => out.extend_from_slice(&cassandra_date(datum)?.to_be_bytes()),
            Self::Time => out.extend_from_slice(&nanoseconds(datum)?.to_be_bytes()),
            // SAFETY: the caller vouches for the value's type, which is passed by reference with 16 bytes.
            Self::Uuid | Self::TimeUuid => out.extend_from_slice(&unsafe { sixteen_bytes(datum) }),
            Self::Text | Self::Bytea | Self::VarInt | Self::Numeric | Self::Inet => {
                // SAFETY: the caller vouches for the value's type, which has variable length.
                let bytes = unsafe { Varlena::new(datum) };
                match self {
                    Self::Text => out.extend_from_slice(&to_utf8(&bytes)),
                    Self::Numeric => Numeric::parse(&bytes)?.serialize(declared_scale(typmod), out)?,
                    Self::Inet => Inet::parse(&bytes)?.serialize(out)?,
                    _ => out.extend_from_slice(&bytes),
                }
            }
        }
        Ok(())
    }

    /// Whether a value may stand in a partition column: it must have a token, and PostgreSQL's `=` must not
    /// hold between it and a value of another token.
    ///
    /// # Errors
    /// Those of [`Self::serialize`]; 22023 for -0.0.
    ///
    /// # Safety
    /// `datum` is a live, non-null value of this type.
    pub unsafe fn check_partition_value(self, datum: Datum) -> Result<(), TypeError> {
        match self {
            Self::Timestamp | Self::TimestampTz => return unix_milliseconds(datum).map(drop),
            Self::Date => return cassandra_date(datum).map(drop),
            Self::Time => return nanoseconds(datum).map(drop),
            // SAFETY: the caller vouches for the value.
            Self::Numeric | Self::Inet => return unsafe { self.serialize(datum, -1, &mut Vec::new()) },
            _ => {}
        }
        if self.is_negative_zero(datum) {
            return Err(TypeError::new("22023", "-0.0 cannot be part of a partition key")
                .detail("It equals 0.0 but has another token, so that it would not be found.")
                .hint("Store 0.0 instead, for example by adding 0.0 to the value."));
        }
        Ok(())
    }

    /// The value, or 0.0 for -0.0, which SQL holds equal.
    #[must_use]
    pub fn without_negative_zero(self, datum: Datum) -> Datum {
        // All bits of 0.0 are 0, in either width.
        if self.is_negative_zero(datum) {
            Datum::from(0_u64)
        } else {
            datum
        }
    }

    fn is_negative_zero(self, datum: Datum) -> bool {
        match self {
            Self::Real => float4(datum) == 0.0 && float4(datum).is_sign_negative(),
            Self::Double => float8(datum) == 0.0 && float8(datum).is_sign_negative(),
            _ => false,
        }
    }

    /// Appends the order-preserving encoding of a value.
    ///
    /// # Safety
    /// `datum` is a live, non-null value of this type.
    pub unsafe fn encode_key(self, datum: Datum, order: Order, out: &mut Vec<u8>) -> Result<(), TypeError> {
        match self {
            Self::Boolean => key::put_bool(out, bits(datum) & 0xff != 0, order),
            Self::TinyInt => key::put_i8(out, bits(datum) as i8, order),
            Self::SmallInt => key::put_i16(out, bits(datum) as i16, order),
            Self::Int | Self::Date => key::put_i32(out, bits(datum) as i32, order),
            Self::BigInt | Self::Timestamp | Self::TimestampTz | Self::Time => {
                key::put_i64(out, bits(datum) as i64, order);
            }
            Self::Real => key::put_f32(out, float4(datum), order),
            Self::Double => key::put_f64(out, float8(datum), order),
            // SAFETY: the caller vouches for the value's type, which is passed by reference with 16 bytes.
            Self::Uuid => key::put_fixed(out, &unsafe { sixteen_bytes(datum) }, order),
            // SAFETY: as for uuid.
            Self::TimeUuid => key::put_timeuuid(out, &unsafe { sixteen_bytes(datum) }, order),
            Self::Text | Self::Bytea | Self::VarInt | Self::Numeric | Self::Inet => {
                // SAFETY: the caller vouches for the value's type, which has variable length.
                let bytes = unsafe { Varlena::new(datum) };
                match self {
                    Self::VarInt => key::put_varint(out, &bytes, order),
                    Self::Numeric => key::put_decimal(out, Numeric::parse(&bytes)?.as_decimal(), order),
                    Self::Inet => Inet::parse(&bytes)?.encode_key(order, out),
                    _ => key::put_bytes(out, &bytes, order),
                }
            }
        }
        Ok(())
    }

    /// Takes a value off an encoded key; one passed by reference is allocated in the current memory context.
    ///
    /// # Errors
    /// XX001 for damaged bytes; XX000 for numeric, whose encoding does not hold the value ([`Self::skip_key`]).
    pub fn decode_key(self, reader: &mut KeyReader<'_>, order: Order) -> Result<Datum, TypeError> {
        Ok(match self {
            Self::Boolean => reader.take_bool(order)?.into(),
            Self::TinyInt => Datum::from(reader.take_i8(order)?),
            Self::SmallInt => Datum::from(reader.take_i16(order)?),
            Self::Int | Self::Date => Datum::from(reader.take_i32(order)?),
            Self::BigInt | Self::Timestamp | Self::TimestampTz | Self::Time => Datum::from(reader.take_i64(order)?),
            Self::Real => Datum::from(reader.take_f32(order)?.to_bits()),
            Self::Double => Datum::from(reader.take_f64(order)?.to_bits()),
            Self::Uuid => make_fixed(&reader.take_fixed::<16>(order)?),
            Self::TimeUuid => make_fixed(&reader.take_timeuuid(order)?),
            Self::Text | Self::Bytea => make_varlena(&reader.take_bytes(order)?),
            Self::VarInt => make_varlena(&reader.take_varint(order)?),
            Self::Inet => make_varlena(&inet::decode_key(reader, order)?),
            Self::Numeric => return Err(TypeError::new("XX000", "a numeric cannot be read from a key")),
        })
    }

    /// Passes over a value of an encoded key.
    pub fn skip_key(self, reader: &mut KeyReader<'_>, order: Order) -> Result<(), TypeError> {
        match self {
            Self::Boolean | Self::TinyInt => reader.take_fixed::<1>(order).map(drop)?,
            Self::SmallInt => reader.take_fixed::<2>(order).map(drop)?,
            Self::Int | Self::Date | Self::Real => reader.take_fixed::<4>(order).map(drop)?,
            Self::BigInt | Self::Timestamp | Self::TimestampTz | Self::Time | Self::Double => {
                reader.take_fixed::<8>(order).map(drop)?;
            }
            Self::Uuid | Self::TimeUuid => reader.take_fixed::<16>(order).map(drop)?,
            Self::Text | Self::Bytea => reader.take_bytes(order).map(drop)?,
            Self::VarInt => reader.take_varint(order).map(drop)?,
            Self::Numeric => reader.skip_decimal(order).map(drop)?,
            Self::Inet => inet::decode_key(reader, order).map(drop)?,
        }
        Ok(())
    }
}

fn no_infinity(what: &str) -> TypeError {
    TypeError::new("22008", format!("an infinite {what} cannot be part of a partition key"))
        .detail("Cassandra has no such value, so it has no token.")
}

/// Milliseconds since 1970, rounded down.
fn unix_milliseconds(datum: Datum) -> Result<i64, TypeError> {
    match bits(datum) as i64 {
        i64::MIN | i64::MAX => Err(no_infinity("timestamp")),
        // PostgreSQL's last timestamp, in the year 294276, leaves no room for the epoch in microseconds.
        microseconds => Ok(microseconds.div_euclid(1000) + EPOCH_MICROSECONDS / 1000),
    }
}

/// Days with 1970-01-01 in the middle, at 2^31.
fn cassandra_date(datum: Datum) -> Result<u32, TypeError> {
    match bits(datum) as i32 {
        i32::MIN | i32::MAX => Err(no_infinity("date")),
        days => u32::try_from(i64::from(days) + EPOCH_DAYS + (1 << 31))
            .map_err(|_| TypeError::new("22008", "date out of range for a partition key")),
    }
}

/// Nanoseconds of the day.
fn nanoseconds(datum: Datum) -> Result<i64, TypeError> {
    match bits(datum) as i64 {
        microseconds @ 0..DAY_MICROSECONDS => Ok(microseconds * 1000),
        _ => Err(TypeError::new("22008", "time 24:00:00 cannot be part of a partition key")
            .detail("Cassandra's time ends before midnight, so it has no token.")),
    }
}
