//! Statements that come between two steps of another one: each stops at a point of the engine (`src/pg/injection.rs`) until the
//! other has had its turn. What is shown, and what stays, must be as if the two had come one after the other.

use cass_server_tests::{Cluster, Session};

mod empty_delta;
mod flush;
mod keys;
mod lists;
mod merges;
mod readers;
mod unique;

/// Statements that lock rows, and so write anchors, or write them, all of a row that lies in a segment.
const WRITES: [&str; 5] = [
    "SELECT FROM t WHERE k = 5 FOR KEY SHARE",
    "SELECT FROM t WHERE k = 5 FOR UPDATE",
    "INSERT INTO t VALUES (5, 50)",
    "UPDATE t SET v = v + 0 WHERE k = 5",
    "DELETE FROM t WHERE k = 6; INSERT INTO t VALUES (6, 60)",
];

fn cluster() -> Cluster {
    Cluster::with_settings(&[("cass.enforcement", "off"), ("lock_timeout", "20s")])
}

/// Rows (k, 10 * k) for k from 1 to 20 with an index on v: in a segment up to 10, else in the delta.
fn create(session: &mut Session) {
    session.run(
        "CREATE TABLE t (k int PRIMARY KEY, v int) USING cass;
         CREATE INDEX t_v ON t (v);
         INSERT INTO t SELECT k, 10 * k FROM generate_series(1, 10) k",
    );
    session.flush("t");
    session.run("INSERT INTO t SELECT k, 10 * k FROM generate_series(11, 20) k");
}

/// The rows by key; as read in the table's order, by the index on v, and each by its key, which must be the same.
fn rows(session: &mut Session) -> Vec<String> {
    const BY_KEY: &str =
        "SELECT r.k, r.v FROM generate_series(1, 40) s, LATERAL (SELECT k, v FROM t WHERE k = s) r ORDER BY 1";
    let all = session.rows("SELECT k, v FROM t ORDER BY k");
    assert_eq!(session.rows(BY_KEY), all, "each by its key");
    session.run("SET enable_seqscan = off; SET enable_bitmapscan = off");
    let by_index =
        session.rows("SELECT k, v FROM (SELECT k, v FROM t WHERE v BETWEEN -1000 AND 10000 ORDER BY v) r ORDER BY k");
    session.run("RESET enable_seqscan; RESET enable_bitmapscan");
    assert_eq!(by_index, all, "by the index");
    all
}

/// A key and its value, `None` for a deleted row.
type Change = (i32, Option<i32>);

/// What [`rows`] gives of a table in which the rows of [`create`] were changed.
fn changed(changes: &[Change]) -> Vec<String> {
    let mut rows: std::collections::BTreeMap<i32, i32> = (1..=20).map(|k| (k, 10 * k)).collect();
    for (key, value) in changes {
        match value {
            Some(value) => rows.insert(*key, *value),
            None => rows.remove(key),
        };
    }
    rows.iter().map(|(key, value)| format!("{key}|{value}")).collect()
}
