//! pg_upgrade, which carries a table's segments and their list to the new cluster, but not its delta.
//!
//! - `prepare`: `cass_prepare_upgrade()` empties the deltas;
//! - `guard`: stops pg_upgrade where one is not empty;
//! - `tables`: the tables that pg_upgrade carries, and whether their deltas hold rows.
//!
//! The delta that a table lacks in the new cluster is made by the first write; one that was lost with rows in it is told by
//! the metapage (`delta::lost`).

mod guard;
mod prepare;
mod tables;

pub use guard::init;
