//! Sessions of clients, statements that wait in the background, and the rows that they return as text.

use postgres::{CancelToken, Client, NoTls, SimpleQueryMessage};
use std::io::Write;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A session. Rows come as text, their columns joined by `|`, NULL as `∅`.
pub struct Session {
    client: Client,
    process: i32,
}

impl Session {
    /// A session of a connected client.
    pub fn new(mut client: Client) -> Self {
        let row = client.query_one("SELECT pg_backend_pid()", &[]);
        let process = row.unwrap_or_else(|error| panic!("{error}")).get(0);
        Session { client, process }
    }

    /// The id of the session's process on the server.
    pub fn process(&self) -> i32 {
        self.process
    }

    /// What cancels the session's statement.
    pub fn cancel_token(&self) -> CancelToken {
        self.client.cancel_token()
    }

    /// Runs statements; the rows of the last one that returns any, or the error.
    pub fn try_rows(&mut self, sql: &str) -> Result<Vec<String>, postgres::Error> {
        let mut rows = Vec::new();
        for message in self.client.simple_query(sql)? {
            match message {
                SimpleQueryMessage::RowDescription(_) => rows.clear(),
                SimpleQueryMessage::Row(row) => {
                    let columns: Vec<&str> = (0..row.len()).map(|i| row.get(i).unwrap_or("∅")).collect();
                    rows.push(columns.join("|"));
                }
                _ => {}
            }
        }
        Ok(rows)
    }

    /// Runs statements and returns their rows. Panics if one fails.
    pub fn rows(&mut self, sql: &str) -> Vec<String> {
        self.try_rows(sql).unwrap_or_else(|error| panic!("{sql}\n{}", describe(&error)))
    }

    /// Runs statements. Panics if one fails.
    pub fn run(&mut self, sql: &str) {
        self.rows(sql);
    }

    /// Runs statements and returns their only row. Panics if there is not exactly one.
    pub fn value(&mut self, sql: &str) -> String {
        let rows = self.rows(sql);
        assert_eq!(rows.len(), 1, "{sql} returns {rows:?}");
        rows.into_iter().next().unwrap_or_default()
    }

    /// Runs statements of which one must fail; its SQLSTATE and message, separated by a blank.
    pub fn error(&mut self, sql: &str) -> String {
        match self.try_rows(sql) {
            Ok(rows) => panic!("{sql} does not fail but returns {rows:?}"),
            Err(error) => describe(&error),
        }
    }

    /// COPY table FROM STDIN of lines in text format; the count of rows.
    pub fn try_copy(&mut self, table: &str, lines: &str) -> Result<u64, postgres::Error> {
        let mut writer = self.client.copy_in(&format!("COPY {table} FROM STDIN"))?;
        if let Err(error) = writer.write_all(lines.as_bytes()) {
            // What ended the COPY, if the server said so, comes with its end.
            return Err(writer.finish().err().unwrap_or_else(|| panic!("COPY {table}: {error}")));
        }
        writer.finish()
    }

    /// COPY table FROM STDIN. Panics if it fails.
    pub fn copy(&mut self, table: &str, lines: &str) -> u64 {
        self.try_copy(table, lines).unwrap_or_else(|error| panic!("COPY {table}: {}", describe(&error)))
    }

    /// Runs statements in a thread of their own.
    pub fn in_background(mut self, sql: &str) -> Background {
        let sql = sql.to_owned();
        let process = self.process;
        let cancel = self.client.cancel_token();
        let thread = std::thread::spawn(move || {
            let result = self.try_rows(&sql).map_err(|error| describe(&error));
            (self, result)
        });
        Background { thread, process, cancel }
    }
}

/// Statements that run in a thread of their own.
pub struct Background {
    thread: JoinHandle<(Session, Result<Vec<String>, String>)>,
    process: i32,
    cancel: CancelToken,
}

impl Background {
    /// Waits until the statement waits for a lock. Panics if it ends instead.
    pub fn wait_until_blocked(&self, observer: &mut Session) {
        wait_until("the statement waits for a lock", || {
            assert!(!self.thread.is_finished(), "the statement has ended without waiting for a lock");
            self.waits_for(observer).is_some()
        });
    }

    /// Waits until the statement waits for a lock of a kind, as `pg_stat_activity.wait_event` names it. Panics if it ends instead.
    pub fn wait_until_blocked_by(&self, kind: &str, observer: &mut Session) {
        wait_until(&format!("the statement waits for a lock of kind {kind}"), || {
            assert!(!self.thread.is_finished(), "the statement has ended without waiting for a lock of kind {kind}");
            self.waits_for(observer).as_deref() == Some(kind)
        });
    }

    /// Waits until the statement waits for a lock or has ended.
    pub fn wait_until_blocked_or_finished(&self, observer: &mut Session) {
        wait_until("the statement waits for a lock or ends", || {
            self.thread.is_finished() || self.waits_for(observer).is_some()
        });
    }

    /// Waits until the statements have ended.
    pub fn wait_until_finished(&self) {
        wait_until("the statements have ended", || self.thread.is_finished());
    }

    /// The kind of lock that the statement waits for.
    fn waits_for(&self, observer: &mut Session) -> Option<String> {
        let lock = "SELECT wait_event FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid =";
        observer.rows(&format!("{lock} {}", self.process)).pop()
    }

    /// The id of the session's process on the server.
    pub fn process(&self) -> i32 {
        self.process
    }

    /// Whether the statements have ended.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Cancels the statement.
    pub fn cancel(&self) {
        self.cancel.cancel_query(NoTls).unwrap_or_else(|error| panic!("cancel: {error}"));
    }

    /// Waits for the end; the session, and the rows or the error (SQLSTATE and message).
    pub fn join(self) -> (Session, Result<Vec<String>, String>) {
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Waits for the end; the session and the rows. Panics if a statement failed.
    pub fn finish(self) -> (Session, Vec<String>) {
        let (session, result) = self.join();
        (session, result.unwrap_or_else(|error| panic!("{error}")))
    }
}

fn describe(error: &postgres::Error) -> String {
    match error.as_db_error() {
        Some(error) => {
            let detail = error.detail().map(|detail| format!("\nDETAIL: {detail}")).unwrap_or_default();
            format!("{} {}{detail}", error.code().code(), error.message())
        }
        None => error.to_string(),
    }
}

/// Waits up to 30 seconds for a condition. Panics with its name if it does not come true.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < deadline, "30 seconds later, not yet: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
