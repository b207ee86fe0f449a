//! Statements that have stopped at a point of the engine (`src/pg/injection.rs`), so that others come between two of its steps.

use crate::cluster::Cluster;
use crate::process;
use crate::session::{Background, Session};
use rustix::process::Signal;

/// A statement that waits at a point. One at a time in a cluster, as all points wait for the same advisory lock, 4711.
pub struct Stopped {
    statement: Background,
    gate: Session,
}

impl Stopped {
    /// Runs a statement in a session of its own until it comes to a point. Panics if it does not come there.
    pub fn at(cluster: &Cluster, point: &str, statement: &str) -> Stopped {
        Stopped::in_session(cluster, cluster.connect(), point, statement)
    }

    /// As [`Stopped::at`], in a session that may be in a transaction.
    pub fn in_session(cluster: &Cluster, mut session: Session, point: &str, statement: &str) -> Stopped {
        let mut gate = cluster.connect();
        gate.run("SELECT pg_advisory_lock(4711)");
        session.run(&format!("SET cass.injection_point = '{point}=wait'"));
        let statement = session.in_background(statement);
        statement.wait_until_blocked_by("advisory", &mut gate);
        Stopped { statement, gate }
    }

    /// Lets the statement go on.
    pub fn go_on(mut self) -> Background {
        self.gate.run("SELECT pg_advisory_unlock(4711)");
        self.statement
    }

    /// Ends the statement's process with SIGKILL, as the kernel would when memory runs out. Gives its id.
    pub fn kill(self) -> i32 {
        let process = self.statement.process();
        process::send(process.unsigned_abs(), Signal::KILL);
        let (_, result) = self.statement.join();
        assert!(result.is_err(), "the statement has ended well: {result:?}");
        process
    }

    /// Lets the statement go on to its end; the session and the rows. Panics if it fails.
    pub fn finish(self) -> (Session, Vec<String>) {
        self.go_on().finish()
    }
}
