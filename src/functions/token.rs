//! `cass_token(VARIADIC "any")`: the token of a partition key.
//!
//! Types are resolved once a call site and kept in `fn_extra`, since the function runs once a row.

use std::cell::Cell;
use std::ffi::CStr;

use cass_storage::token::PartitionKeyBuilder;
use pgrx::pg_sys::{self, Datum, FmgrInfo, FunctionCallInfo, Oid};
use pgrx::{extension_sql, pg_guard};

use crate::error::Report;
use crate::types::KeyType;

extension_sql!(
    r#"
CREATE FUNCTION cass_token(VARIADIC "any") RETURNS bigint
  IMMUTABLE PARALLEL SAFE LANGUAGE C AS 'MODULE_PATHNAME', 'cass_token';
COMMENT ON FUNCTION cass_token("any") IS 'token of a partition key, as Cassandra''s Murmur3Partitioner';
"#,
    name = "cass_token",
    requires = ["cass_types"]
);

/// What the call site says of one argument.
#[derive(Clone, Copy)]
struct Argument {
    key_type: KeyType,
    typmod: i32,
}

thread_local! {
    /// Space for serialised keys, kept from call to call.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Most bytes of [`BUFFER`] that are kept for the next call.
const KEPT_BYTES: usize = 64 * 1024;

/// Declares `cass_token` as a function of the version 1 calling convention.
#[no_mangle]
pub extern "C" fn pg_finfo_cass_token() -> &'static pg_sys::Pg_finfo_record {
    const VERSION_1: pg_sys::Pg_finfo_record = pg_sys::Pg_finfo_record { api_version: 1 };
    &VERSION_1
}

/// The function's entry point.
///
/// # Safety
/// Called by PostgreSQL's function manager, as declared in SQL.
#[no_mangle]
#[pg_guard]
pub unsafe extern "C-unwind" fn cass_token(fcinfo: FunctionCallInfo) -> Datum {
    // SAFETY: the function manager passes a valid call with `nargs` arguments after its header; the types in
    // `arguments` are those of these arguments.
    unsafe {
        let values = (*fcinfo).args.as_slice((*fcinfo).nargs as usize);
        let arguments = call_site((*fcinfo).flinfo, values.len());
        let mut key = PartitionKeyBuilder::with_buffer(values.len(), BUFFER.take());
        for (i, (argument, value)) in arguments.iter().zip(values).enumerate() {
            if value.isnull {
                null_argument(i);
            }
            let pushed = key.push_with(|out| argument.key_type.serialize(value.value, argument.typmod, out));
            if let Err(error) = pushed {
                error.report().raise();
            }
        }
        let token = key.token();
        let buffer = key.finish();
        if buffer.capacity() <= KEPT_BYTES {
            BUFFER.set(buffer);
        }
        Datum::from(token)
    }
}

/// The arguments of a call site, resolved at its first call.
///
/// # Safety
/// `flinfo` is that of a call of `cass_token` with `count` arguments; the result lives as long as it.
unsafe fn call_site<'a>(flinfo: *mut FmgrInfo, count: usize) -> &'a [Argument] {
    // SAFETY: `fn_extra` is null or what an earlier call put there: `count` arguments, as a call site has one
    // number of arguments; `fn_mcxt` lives as long as `flinfo`.
    unsafe {
        if (*flinfo).fn_extra.is_null() {
            let arguments = resolve(flinfo, count);
            let size = std::mem::size_of_val(arguments.as_slice());
            let kept = pg_sys::MemoryContextAlloc((*flinfo).fn_mcxt, size.max(1)).cast::<Argument>();
            std::ptr::copy_nonoverlapping(arguments.as_ptr(), kept, count);
            (*flinfo).fn_extra = kept.cast();
        }
        std::slice::from_raw_parts((*flinfo).fn_extra.cast::<Argument>(), count)
    }
}

/// Finds the types of a call site's arguments, or says which cannot be hashed.
///
/// # Safety
/// `flinfo` is that of a call of `cass_token` with `count` arguments.
unsafe fn resolve(flinfo: *mut FmgrInfo, count: usize) -> Vec<Argument> {
    // SAFETY: reads the call's expression tree, if there is one.
    if unsafe { pg_sys::get_fn_expr_variadic(flinfo) } {
        Report::new("0A000", "cass_token does not take its arguments as one VARIADIC array")
            .hint("Pass each column of the partition key as an argument of its own.")
            .raise();
    }
    (0..count)
        .map(|i| {
            // SAFETY: as above; `i` is one of the call's arguments.
            let (type_oid, typmod) = unsafe {
                (pg_sys::get_fn_expr_argtype(flinfo, i as i32), argument_typmod((*flinfo).fn_expr.cast(), i))
            };
            if type_oid == pg_sys::UNKNOWNOID || type_oid == pg_sys::InvalidOid {
                Report::new("42P18", format!("could not determine the type of argument {} of cass_token", i + 1))
                    .detail("A token depends on the type: the text '1' and the integer 1 have different tokens.")
                    .hint("Add a cast to the type of the partition key's column, for example '1'::text.")
                    .raise();
            }
            match KeyType::of_with_typmod(type_oid, typmod) {
                Some((key_type, typmod)) => Argument { key_type, typmod },
                None => unsupported_type(type_oid, i),
            }
        })
        .collect()
}

/// The type modifier of a call's argument; -1 if the call's expression is not known.
///
/// # Safety
/// `expression` is null or a live expression node.
unsafe fn argument_typmod(expression: *mut pg_sys::Node, i: usize) -> i32 {
    // SAFETY: a node of tag FuncExpr is one; its arguments are expression nodes.
    unsafe {
        if expression.is_null() || (*expression).type_ != pg_sys::NodeTag::T_FuncExpr {
            return -1;
        }
        let arguments = (*expression.cast::<pg_sys::FuncExpr>()).args;
        if arguments.is_null() || i >= (*arguments).length as usize {
            return -1;
        }
        pg_sys::exprTypmod((*(*arguments).elements.add(i)).ptr_value.cast())
    }
}

#[cold]
fn null_argument(i: usize) -> ! {
    Report::new("22004", format!("argument {} of cass_token is null", i + 1))
        .detail("No column of a partition key can be null, so there is no such token.")
        .raise()
}

#[cold]
fn unsupported_type(type_oid: Oid, i: usize) -> ! {
    // SAFETY: the name of any OID, known or not, is a string in the current memory context.
    let name = unsafe { CStr::from_ptr(pg_sys::format_type_be(type_oid)) }.to_string_lossy().into_owned();
    Report::new("42883", format!("cass_token does not accept type {name}"))
        .detail(format!("Argument {} is of type {name}, which cannot be part of a partition key.", i + 1))
        .hint("Cast it to the type of the partition key's column.")
        .raise()
}
