//! Values of fixed length: truth values, integers, floats, plain bytes.

use super::{put_ordered, Order};

/// Appends a truth value; false comes first.
pub fn put_bool(out: &mut Vec<u8>, value: bool, order: Order) {
    out.push(u8::from(value) ^ order.mask());
}

macro_rules! put_integer {
    ($(#[$doc:meta] $name:ident, $integer:ty;)*) => {$(
        #[$doc]
        pub fn $name(out: &mut Vec<u8>, value: $integer, order: Order) {
            // Flipping the sign bit makes unsigned byte order the signed order.
            let ascending = value ^ <$integer>::MIN;
            let ordered = if order == Order::Descending { !ascending } else { ascending };
            out.extend_from_slice(&ordered.to_be_bytes());
        }
    )*};
}

put_integer! {
    /// Appends a signed 8-bit integer (1 byte).
    put_i8, i8;
    /// Appends a signed 16-bit integer (2 bytes).
    put_i16, i16;
    /// Appends a signed 32-bit integer (4 bytes).
    put_i32, i32;
    /// Appends a signed 64-bit integer (8 bytes).
    put_i64, i64;
}

macro_rules! put_float {
    ($(#[$doc:meta] $name:ident, $float:ty, $bits:ty, $put_integer:ident;)*) => {$(
        #[$doc]
        /// PostgreSQL's order: -0.0 equals 0.0, NaN equals NaN and is greater than every other value; so
        /// -0.0 reads back as 0.0 and every NaN as one and the same.
        pub fn $name(out: &mut Vec<u8>, value: $float, order: Order) {
            let normal = if value.is_nan() {
                <$float>::NAN.abs()
            } else if value == 0.0 {
                0.0
            } else {
                value
            };
            let bits = normal.to_bits() as $bits;
            // Negative floats have larger bits the smaller they are: invert all but the sign bit.
            let ascending = if bits < 0 { bits ^ <$bits>::MAX } else { bits };
            $put_integer(out, ascending, order);
        }
    )*};
}

put_float! {
    /// Appends a single-precision float (4 bytes).
    put_f32, f32, i32, put_i32;
    /// Appends a double-precision float (8 bytes).
    put_f64, f64, i64, put_i64;
}

/// Appends bytes whose number is the same for every value of the column, ordered as unsigned bytes.
pub fn put_fixed(out: &mut Vec<u8>, value: &[u8], order: Order) {
    put_ordered(out, order, |out| out.extend_from_slice(value));
}
