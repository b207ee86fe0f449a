//! `varint`: an integer of any length, kept as minimal two's complement, big-endian, so that equal numbers
//! are equal bytes; SQL declarations in sql/types.sql.

use std::cmp::Ordering;
use std::ffi::{CStr, CString};

use cass_storage::integer::Integer;
use cass_storage::key::minimal_twos_complement;
use pgrx::pg_sys::{self, Datum, FunctionCallInfo};
use pgrx::{direct_function_call, pg_extern, pg_getarg_datum_raw};

use super::numeric::Numeric;
use super::varlena::Varlena;
use crate::error::Report;

/// Most decimal digits of a varint, as many as PostgreSQL's numeric has before its decimal point.
const MAX_DIGITS: usize = 131_072;

/// Most bytes of a varint: no number of `MAX_DIGITS` digits needs more.
const MAX_BYTES: usize = 54_432;

fn too_long() -> ! {
    Report::new("22003", "value overflows varint format")
        .detail(format!("A varint has at most {MAX_DIGITS} digits."))
        .raise()
}

#[pg_extern(sql = false)]
fn varint_in(text: &CStr) -> Vec<u8> {
    let text = text.to_string_lossy();
    let digits = text.trim_matches(|c: char| c.is_ascii_whitespace());
    if digits.len() > MAX_DIGITS {
        too_long();
    }
    Integer::from_decimal(digits)
        .unwrap_or_else(|| Report::new("22P02", format!("invalid input syntax for type varint: \"{text}\"")).raise())
        .to_twos_complement()
}

#[pg_extern(sql = false)]
fn varint_out(value: &[u8]) -> CString {
    CString::new(Integer::from_twos_complement(value).to_decimal()).unwrap_or_default()
}

#[pg_extern(sql = false)]
fn varint_recv(fcinfo: FunctionCallInfo) -> Vec<u8> {
    // SAFETY: PostgreSQL calls a receive function with the message's StringInfo as first argument, which
    // is what bytearecv takes.
    let bytes = unsafe { direct_function_call::<Vec<u8>>(pg_sys::bytearecv, &[Some(pg_getarg_datum_raw(fcinfo, 0))]) };
    let bytes = bytes.unwrap_or_default();
    if bytes.is_empty() {
        Report::new("22P03", "invalid binary representation of type varint")
            .detail("A varint is at least one byte of two's complement.")
            .raise();
    }
    let minimal = minimal_twos_complement(&bytes);
    if minimal.len() > MAX_BYTES {
        too_long();
    }
    minimal.to_vec()
}

#[pg_extern(sql = false)]
fn varint_from_int8(value: i64) -> Vec<u8> {
    minimal_twos_complement(&value.to_be_bytes()).to_vec()
}

#[pg_extern(sql = false)]
fn varint_from_int4(value: i32) -> Vec<u8> {
    minimal_twos_complement(&value.to_be_bytes()).to_vec()
}

fn not_finite() -> ! {
    Report::new("22003", "cannot convert NaN or infinity to varint").raise()
}

/// Rounds half away from zero, as PostgreSQL's casts of numeric to integers do.
#[pg_extern(sql = false)]
fn varint_from_numeric(fcinfo: FunctionCallInfo) -> Vec<u8> {
    // SAFETY: the function is strict and declared with one numeric argument; numeric_round takes a numeric
    // and a number of decimal places, and gives a numeric.
    let rounded = unsafe {
        direct_function_call::<Datum>(
            pg_sys::numeric_round,
            &[Some(pg_getarg_datum_raw(fcinfo, 0)), Some(Datum::from(0i32))],
        )
    };
    let Some(rounded) = rounded else { not_finite() };
    // SAFETY: the value is the numeric just made.
    let bytes = unsafe { Varlena::new(rounded) };
    match Numeric::parse(&bytes) {
        Ok(numeric) => numeric.to_integer().unwrap_or_else(|| not_finite()).to_twos_complement(),
        Err(error) => error.report().raise(),
    }
}

#[pg_extern(sql = false)]
fn varint_to_int8(value: &[u8]) -> i64 {
    Integer::from_twos_complement(value).to_i64().unwrap_or_else(|| Report::new("22003", "bigint out of range").raise())
}

#[pg_extern(sql = false)]
fn varint_to_int4(value: &[u8]) -> i32 {
    Integer::from_twos_complement(value)
        .to_i64()
        .and_then(|value| i32::try_from(value).ok())
        .unwrap_or_else(|| Report::new("22003", "integer out of range").raise())
}

/// Compares two minimal two's complement numbers: by sign, then by length, then by bytes.
fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let negative = |value: &[u8]| value.first().is_some_and(|byte| byte & 0x80 != 0);
    match (negative(a), negative(b)) {
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => a.len().cmp(&b.len()).then_with(|| a.cmp(b)),
        (true, true) => b.len().cmp(&a.len()).then_with(|| a.cmp(b)),
    }
}

#[pg_extern(sql = false)]
fn varint_lt(a: &[u8], b: &[u8]) -> bool {
    compare(a, b).is_lt()
}

#[pg_extern(sql = false)]
fn varint_le(a: &[u8], b: &[u8]) -> bool {
    compare(a, b).is_le()
}

#[pg_extern(sql = false)]
fn varint_ge(a: &[u8], b: &[u8]) -> bool {
    compare(a, b).is_ge()
}

#[pg_extern(sql = false)]
fn varint_gt(a: &[u8], b: &[u8]) -> bool {
    compare(a, b).is_gt()
}

#[pg_extern(sql = false)]
fn varint_cmp(a: &[u8], b: &[u8]) -> i32 {
    match compare(a, b) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }
}
