//! `tinyint`: a signed 8-bit integer, passed by value; SQL declarations in sql/types.sql.

use std::cmp::Ordering;
use std::ffi::{CStr, CString};

use pgrx::pg_extern;

use crate::error::Report;

fn out_of_range(value: impl std::fmt::Display) -> ! {
    Report::new("22003", format!("value \"{value}\" is out of range for type tinyint"))
        .detail("A tinyint is an integer from -128 to 127.")
        .raise()
}

#[pg_extern(sql = false)]
fn tinyint_in(text: &CStr) -> i8 {
    let text = text.to_string_lossy();
    let digits = text.trim_matches(|c: char| c.is_ascii_whitespace());
    match digits.parse::<i8>() {
        Ok(value) => value,
        Err(error) => match error.kind() {
            std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => out_of_range(digits),
            _ => Report::new("22P02", format!("invalid input syntax for type tinyint: \"{text}\"")).raise(),
        },
    }
}

#[pg_extern(sql = false)]
fn tinyint_out(value: i8) -> CString {
    CString::new(value.to_string()).unwrap_or_default()
}

#[pg_extern(sql = false)]
fn tinyint_from_int4(value: i32) -> i8 {
    i8::try_from(value).unwrap_or_else(|_| out_of_range(value))
}

#[pg_extern(sql = false)]
fn tinyint_from_int2(value: i16) -> i8 {
    i8::try_from(value).unwrap_or_else(|_| out_of_range(value))
}

#[pg_extern(sql = false)]
fn tinyint_to_int2(value: i8) -> i16 {
    value.into()
}

#[pg_extern(sql = false)]
fn tinyint_lt(a: i8, b: i8) -> bool {
    a < b
}

#[pg_extern(sql = false)]
fn tinyint_le(a: i8, b: i8) -> bool {
    a <= b
}

#[pg_extern(sql = false)]
fn tinyint_ge(a: i8, b: i8) -> bool {
    a >= b
}

#[pg_extern(sql = false)]
fn tinyint_gt(a: i8, b: i8) -> bool {
    a > b
}

#[pg_extern(sql = false)]
fn tinyint_cmp(a: i8, b: i8) -> i32 {
    match a.cmp(&b) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }
}
