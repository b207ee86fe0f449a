//! Tests inside the server, one transaction each, run by `cargo pgrx test`.

mod ddl;
mod ddl_refusals;
mod errors;
mod keys;
mod refusals;
mod scan;
mod scan_twin;
mod segments;
mod support;
mod tokens;
mod types;
mod writes;
