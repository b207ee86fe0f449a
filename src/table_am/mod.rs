//! The table access method `cass`: PostgreSQL's callbacks, each a few lines over `read`, `delta` and `maintenance`.
//!
//! `routine` lists them all; the other files hold them by concern.

mod analyze;
mod bitmap;
pub mod bulk;
mod callbacks;
mod copy;
mod index_build;
mod index_fetch;
mod insert;
mod lock;
mod modify;
mod rewrite;
mod routine;
mod row_ids;
mod sample;
mod scan;
mod slot;
mod storage;
mod version;

pub use rewrite::place_rows;
