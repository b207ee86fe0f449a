//! Comparing `cass_token()` of a column with `cass_token()` of a value of another type.
//!
//! Such values are serialised differently, so that their tokens have nothing to do with each other: the answer would
//! be empty or arbitrary, never what was meant.

use std::ffi::{c_char, CStr};

use pgrx::pg_sys::{self, Node, NodeTag, Oid};

use super::known_functions::{known_function, KnownFunction};
use crate::error::Report;
use crate::pg::nodes::{downcast, pair, pointers};

/// The error of a comparison of tokens of values whose types differ, if `node` is one.
///
/// # Safety
/// `node` is a live expression; `source` is null or the text that its locations refer to.
pub unsafe fn unlike_tokens(node: *mut Node, source: *const c_char) -> Option<Report> {
    // SAFETY: the parts of a live expression are live.
    unsafe {
        let op = downcast::<pg_sys::OpExpr>(node, NodeTag::T_OpExpr)?;
        let (left, right) = pair(op.args)?;
        let (left, right) = (token_types(left)?, token_types(right)?);
        let report = || {
            Report::new("42804", "tokens of different types cannot be compared")
                .detail(format!("One side is the token of {}, the other of {}.", describe(&left), describe(&right)))
                .hint("Cast the values to the types of the partition key's columns.")
                .location(source, op.location)
        };
        (left != right).then(report)
    }
}

/// The types of the values that a call of `cass_token` hashes.
unsafe fn token_types(node: *mut Node) -> Option<Vec<Oid>> {
    // SAFETY: the parts of a live expression are live.
    unsafe {
        let function = downcast::<pg_sys::FuncExpr>(node, NodeTag::T_FuncExpr)?;
        let is_token = !function.funcvariadic && known_function(function.funcid) == Some(KnownFunction::Token);
        is_token.then(|| {
            pointers::<Node>(function.args)
                .map(|argument| serialized_as(pg_sys::getBaseType(pg_sys::exprType(argument))))
                .collect()
        })
    }
}

/// The type that values of a type are serialised as: varchar is text.
fn serialized_as(type_oid: Oid) -> Oid {
    if type_oid == pg_sys::VARCHAROID {
        pg_sys::TEXTOID
    } else {
        type_oid
    }
}

fn describe(types: &[Oid]) -> String {
    let name = |type_oid: &Oid| {
        // SAFETY: format_type_be returns a palloc'ed C string for every OID.
        unsafe { CStr::from_ptr(pg_sys::format_type_be(*type_oid)) }.to_string_lossy().into_owned()
    };
    match types {
        [one] => format!("type {}", name(one)),
        several => format!("types ({})", several.iter().map(name).collect::<Vec<_>>().join(", ")),
    }
}
