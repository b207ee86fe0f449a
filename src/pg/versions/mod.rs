//! What differs between the versions of PostgreSQL, each behind a name that is the same for all of them.

pub mod files;
pub mod freeze;
pub mod heap;
pub mod index;
pub mod owner;
pub mod planner;
pub mod statistics;
pub mod walk;
