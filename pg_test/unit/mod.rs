//! Tests inside the server, one transaction each, run by `cargo pgrx test`.

mod errors;
mod keys;
mod refusals;
mod scan;
mod support;
mod tokens;
mod types;
