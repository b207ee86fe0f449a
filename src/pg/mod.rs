//! Small wrappers around PostgreSQL: what pgrx does not bind, bytes as `bytea`, node trees, scratch memory, frozen rows, row
//! ids as TIDs, random numbers, what snapshots can see, what all of them see alike, statistics, aborted transactions. `versions`
//! holds what differs between PostgreSQL's versions.

pub mod bytea;
pub mod externs;
pub mod freeze;
pub mod index_values;
pub mod nodes;
pub mod random;
pub mod scratch;
pub mod snapshot;
pub mod statistics;
pub mod subtransaction;
pub mod tid;
pub mod transaction;
pub mod versions;
pub mod visibility;
