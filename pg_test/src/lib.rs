//! Clusters and sessions for tests that need whole servers.
//!
//! The library under test must have been installed into the PostgreSQL that `CASS_PGBIN` names (default
//! `/usr/lib/postgresql/15/bin`). Each test has a cluster of its own, reached by a Unix socket only.

mod cluster;
mod compare;
mod inspect;
mod process;
mod random;
mod session;
mod sound;
mod stopped;
mod upgrade;

pub use cluster::{Cluster, Shutdown};
pub use compare::assert_same_rows;
pub use process::{give_to_server_user, send, Installation};
pub use random::Random;
pub use rustix::process::Signal;
pub use session::{wait_until, Background, Session};
pub use stopped::Stopped;
