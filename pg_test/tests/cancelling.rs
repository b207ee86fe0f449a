//! Whatever takes long ends within a second when it is cancelled, and leaves everything as it was.

use cass_server_tests::{Cluster, Session};
use std::thread::sleep;
use std::time::{Duration, Instant};

const ALL: &str = "SELECT count(*), sum(v), count(DISTINCT w) FROM t";

/// Rows enough to take each statement well over the time after which it is cancelled.
fn create() -> (Cluster, Session) {
    let cluster = Cluster::with_settings(&[("cass.enforcement", "off"), ("max_parallel_workers_per_gather", "0")]);
    let mut session = cluster.connect();
    session.run("CREATE TABLE t (k int PRIMARY KEY, v int, w text) USING cass");
    session.run("INSERT INTO t SELECT k, k, md5(k::text) FROM generate_series(1, 160000) k");
    (cluster, session)
}

/// Cancels a statement after a while. It must fail with 57014 within a second.
fn cancel(session: Session, sql: &str) -> Session {
    let running = session.in_background(sql);
    sleep(Duration::from_millis(300));
    assert!(!running.is_finished(), "too quick to be cancelled: {sql}");
    let start = Instant::now();
    running.cancel();
    let (session, result) = running.join();
    let error = result.expect_err(sql);
    assert!(error.starts_with("57014"), "{sql}: {error}");
    assert!(start.elapsed() < Duration::from_secs(1), "{sql}: {:?}", start.elapsed());
    session
}

#[test]
fn long_statements_end_within_a_second_when_cancelled() {
    let (_cluster, mut session) = create();
    let rows = session.rows(ALL);
    for sql in [
        "VACUUM t",
        "SELECT sum(length(w)) FROM t a WHERE v >= 0",
        "UPDATE t SET v = v + 1",
        "DELETE FROM t",
        "CREATE INDEX ON t (w)",
        "VACUUM FULL t",
        "SELECT * FROM cass_check('t')",
        "INSERT INTO t SELECT k, 0, repeat('x', 1000) FROM generate_series(200000, 900000) k",
    ] {
        session = cancel(session, sql);
        assert_eq!(session.rows(ALL), rows, "after {sql}");
    }
    session.flush("t");
    session.run("UPDATE t SET v = v");
    session.run("SET cass.eager_merge_size = '64MB'");
    for sql in ["VACUUM t", "SELECT sum(length(w)) FROM t", "VACUUM FULL t", "CREATE INDEX ON t (w)"] {
        session = cancel(session, sql);
        assert_eq!(session.rows(ALL), rows, "after {sql}");
    }
    session.flush("t");
    assert_eq!(session.rows(ALL), rows);
}

#[test]
fn statement_timeout_ends_a_copy_and_keeps_nothing_of_it() {
    let (_cluster, mut session) = create();
    session.run("SET statement_timeout = '300ms'");
    let lines: String = (200_000..600_000).map(|k| format!("{k}\t1\t{k:032}\n")).collect();
    let start = Instant::now();
    let error = session.try_copy("t", &lines).expect_err("it takes longer");
    assert_eq!(error.code().map(|code| code.code()), Some("57014"), "{error}");
    assert!(start.elapsed() < Duration::from_millis(1300), "{:?}", start.elapsed());
    session.run("SET statement_timeout = 0");
    assert_eq!(session.rows("SELECT count(*), max(k) FROM t"), ["160000|160000"]);
}
