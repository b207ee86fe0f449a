//! Writers that compete for a row: nothing is lost, and what cannot be put in an order fails with 40001.

use cass_server_tests::{Cluster, Session};
use std::sync::atomic::{AtomicBool, Ordering};

fn cluster() -> Cluster {
    Cluster::with_settings(&[("cass.enforcement", "off")])
}

/// A counter (1, 0) in a segment.
fn create_counter(session: &mut Session) {
    session.run(
        "CREATE TABLE counter (k int PRIMARY KEY, n int, word text) USING cass; INSERT INTO counter VALUES (1, 0, 'x')",
    );
    session.flush("counter");
    assert_eq!(session.segments_of("counter"), 1);
}

/// Has 4 sessions repeat `statement` until it has succeeded 25 times in each, while VACUUM runs again and again; a failure with
/// 40001 is tried again, any other is none of the test's. Returns how many failures there were.
fn compete(cluster: &Cluster, setting: &str, statement: &str) -> usize {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let vacuum = scope.spawn(|| {
            let mut session = cluster.connect();
            while !done.load(Ordering::Relaxed) {
                session.run("VACUUM counter");
            }
        });
        let writers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut session = cluster.connect();
                    session.run(setting);
                    let mut failures = 0;
                    let mut successes = 0;
                    while successes < 25 {
                        match session.try_rows(statement) {
                            Ok(rows) => {
                                assert_eq!(rows.len(), 1, "{statement} returns {rows:?}");
                                successes += 1;
                            }
                            Err(error) => {
                                assert_eq!(error.code().map(|code| code.code()), Some("40001"), "{error:?}");
                                failures += 1;
                            }
                        }
                    }
                    failures
                })
            })
            .collect();
        let results: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        done.store(true, Ordering::Relaxed);
        vacuum.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        results.into_iter().map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).sum()
    })
}

#[test]
fn increments_of_a_row_that_vacuum_moves_again_and_again_are_not_lost() {
    let cluster = cluster();
    let mut session = cluster.connect();
    create_counter(&mut session);
    let increment = "UPDATE counter SET n = n + 1 WHERE k = 1 RETURNING n";
    assert_eq!(compete(&cluster, "SET default_transaction_isolation = 'read committed'", increment), 0);
    assert_eq!(session.rows("SELECT n FROM counter"), ["100"]);
    compete(&cluster, "SET default_transaction_isolation = 'repeatable read'", increment);
    assert_eq!(session.rows("SELECT n FROM counter"), ["200"]);
    compete(&cluster, "SET default_transaction_isolation = 'serializable'", increment);
    assert_eq!(session.rows("SELECT n FROM counter"), ["300"]);
}

/// Eight sessions add to one row that lies in the delta, and to one that lies in a segment to begin with.
#[test]
fn ten_thousand_increments_by_eight_sessions_add_up() {
    let cluster = cluster();
    let mut session = cluster.connect();
    create_counter(&mut session);
    session.run("INSERT INTO counter VALUES (2, 0, 'segment')");
    session.flush("counter");
    session.run("INSERT INTO counter VALUES (1, 0, 'delta')");
    let writers: Vec<_> = (0..8)
        .map(|_| {
            let mut session = cluster.connect();
            std::thread::spawn(move || {
                for _ in 0..125 {
                    for k in [1, 2] {
                        let increments =
                            format!("UPDATE counter SET n = n + 1 WHERE k = {k}; COMMIT; BEGIN; ").repeat(5);
                        session.run(&format!("BEGIN; {increments} COMMIT"));
                    }
                }
            })
        })
        .collect();
    writers.into_iter().for_each(|writer| writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
    assert_eq!(session.rows("SELECT k, n FROM counter ORDER BY k"), ["1|5000", "2|5000"]);
}

#[test]
fn a_newer_version_than_the_snapshot_sees_is_a_serialization_failure() {
    let cluster = cluster();
    let (mut session, mut other) = (cluster.connect(), cluster.connect());
    create_counter(&mut session);
    let writes = [
        "UPDATE counter SET n = 5 WHERE k = 1",
        "DELETE FROM counter WHERE k = 1",
        "INSERT INTO counter VALUES (1, 6, 'y')",
        "INSERT INTO counter (k, n) VALUES (1, 6)",
        "SELECT FROM counter WHERE k = 1 FOR UPDATE",
        "UPDATE counter SET k = 9 WHERE k = 1",
    ];
    let changes = [
        "UPDATE counter SET n = n + 1 WHERE k = 1",
        "INSERT INTO counter VALUES (1, 0, 'z')",
        "DELETE FROM counter WHERE k = 1",
        "UPDATE counter SET n = n + 1 WHERE k = 1; VACUUM counter",
    ];
    for change in changes {
        for write in writes {
            for isolation in ["REPEATABLE READ", "SERIALIZABLE"] {
                session.run("INSERT INTO counter VALUES (1, 0, 'x')");
                session.flush("counter");
                session.run(&format!("BEGIN ISOLATION LEVEL {isolation}; SELECT FROM counter"));
                change.split("; ").for_each(|statement| other.run(statement));
                let error = session.error(write);
                assert!(error.starts_with("40001"), "{isolation}: {write} after {change}: {error}");
                session.run("ROLLBACK");
            }
        }
    }
}

/// A transaction takes its snapshot, without a lock on the table; then a row changes, and the table is rewritten.
#[test]
fn a_row_changed_before_a_rewrite_that_the_snapshot_does_not_see_is_a_serialization_failure() {
    let cluster = cluster();
    let (mut session, mut other) = (cluster.connect(), cluster.connect());
    create_counter(&mut session);
    other.run("SET cass.eager_merge_size = '4MB'");
    let writes = [
        "UPDATE counter SET n = 5 WHERE k = 1",
        "DELETE FROM counter WHERE k = 1",
        "INSERT INTO counter VALUES (1, 6, 'y')",
        "INSERT INTO counter (k, n) VALUES (1, 6)",
        "SELECT FROM counter WHERE k = 1 FOR UPDATE",
        "UPDATE counter SET k = 9 WHERE k = 1",
    ];
    let rewrites = [
        "VACUUM FULL counter",
        "ALTER TABLE counter ALTER word TYPE text USING word || 'z'",
        "VACUUM FULL counter; INSERT INTO counter VALUES (2, 2, 'merged'); VACUUM counter",
    ];
    for rewrite in rewrites {
        for write in writes {
            for isolation in ["REPEATABLE READ", "SERIALIZABLE"] {
                session.run("INSERT INTO counter VALUES (1, 0, 'x')");
                session.run(&format!("BEGIN ISOLATION LEVEL {isolation}; SELECT FROM pg_class LIMIT 1"));
                other.run("UPDATE counter SET n = n + 1 WHERE k = 1");
                rewrite.split("; ").for_each(|statement| other.run(statement));
                let error = session.try_rows(write).err().and_then(|error| error.code().cloned());
                assert_eq!(
                    error.map(|code| code.code().to_owned()),
                    Some("40001".into()),
                    "{isolation}: {write} after {rewrite}"
                );
                session.run("ROLLBACK");
                session.run(&format!("BEGIN ISOLATION LEVEL {isolation}"));
                session.run(write);
                session.run("ROLLBACK");
            }
        }
    }
    assert_eq!(session.rows("SELECT n FROM counter WHERE k = 1"), ["1"]);
    // What was read in a savepoint is remembered by the client, but no lock is kept that a rewrite would wait for.
    session.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SAVEPOINT s");
    assert_eq!(session.rows("SELECT n FROM counter WHERE k = 1"), ["1"]);
    session.run("ROLLBACK TO s");
    other.run("UPDATE counter SET n = 10 WHERE k = 1");
    other.run("VACUUM FULL counter");
    assert!(session.error("UPDATE counter SET n = 1 + 1 WHERE k = 1").starts_with("40001"));
    session.run("ROLLBACK");
    assert_eq!(session.rows("SELECT n FROM counter WHERE k = 1"), ["10"]);
}

#[test]
fn a_rewrite_hinders_no_writes_but_those_of_rows_it_has_rewritten_for_an_older_snapshot() {
    let cluster = cluster();
    let (mut session, mut other) = (cluster.connect(), cluster.connect());
    create_counter(&mut session);
    session.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM pg_class LIMIT 1");
    other.run("VACUUM FULL counter");
    session.run("INSERT INTO counter VALUES (2, 0, 'new'); UPDATE counter SET n = n + 1 WHERE k = 2");
    session.run("UPDATE counter SET n = n + 1 WHERE k = 2; DELETE FROM counter WHERE k = 3; COMMIT");
    session.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM pg_class LIMIT 1");
    session.run("ALTER TABLE counter ALTER word TYPE text USING word || 'z'");
    session.run("UPDATE counter SET n = n + 5; COMMIT");
    session.run("BEGIN; SELECT FROM pg_class LIMIT 1");
    other.run("VACUUM FULL counter");
    session.run("UPDATE counter SET n = n + 1 WHERE k = 1; COMMIT");
    assert_eq!(session.rows("SELECT k, n FROM counter ORDER BY k"), ["1|6", "2|7"]);
}

#[test]
fn a_row_that_only_a_flush_has_moved_is_no_serialization_failure() {
    let cluster = cluster();
    let (mut session, mut other) = (cluster.connect(), cluster.connect());
    create_counter(&mut session);
    session.run("UPDATE counter SET n = 1 WHERE k = 1");
    session.run("BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT FROM counter");
    other.flush("counter");
    assert_eq!(session.rows("UPDATE counter SET n = n + 1 WHERE k = 1 RETURNING n"), ["2"]);
    session.run("COMMIT");
    assert_eq!(other.rows("SELECT * FROM counter"), ["1|2|x"]);
}

/// Two transactions that each read what the other writes: the second to end must fail.
fn assert_write_skew_is_caught(cluster: &Cluster, reads: [&str; 2], writes: [&str; 2]) {
    let (mut first, mut second) = (cluster.connect(), cluster.connect());
    first.run("BEGIN ISOLATION LEVEL SERIALIZABLE");
    second.run("BEGIN ISOLATION LEVEL SERIALIZABLE");
    first.run(reads[0]);
    second.run(reads[1]);
    first.run(writes[0]);
    first.run("COMMIT");
    let result = second.try_rows(writes[1]).and_then(|_| second.try_rows("COMMIT"));
    let code = result.as_ref().err().and_then(|error| error.code()).map(|code| code.code());
    assert_eq!(code, Some("40001"), "{reads:?} {writes:?}: {result:?}");
}

#[test]
fn write_skew_is_caught_under_serializable() {
    let cluster = cluster();
    let mut session = cluster.connect();
    session.run(
        "CREATE TABLE duty (ward text, doctor int, on_call boolean, PRIMARY KEY (ward, doctor)) USING cass;
         CREATE INDEX duty_on_call ON duty (on_call);
         INSERT INTO duty SELECT w, d, true FROM unnest(ARRAY['a', 'b']) w, generate_series(1, 2) d",
    );
    let count = "SELECT count(*) FROM duty WHERE ward = 'a' AND on_call";
    let leave = |doctor: u32| format!("UPDATE duty SET on_call = false WHERE ward = 'a' AND doctor = {doctor}");
    for place in ["delta", "segment"] {
        println!("rows in: {place}");
        let reset = "INSERT INTO duty SELECT w, d, true FROM unnest(ARRAY['a', 'b']) w, generate_series(1, 2) d; DELETE FROM duty WHERE doctor > 2";
        let mut prepare = || {
            session.run(reset);
            if place == "segment" {
                session.flush("duty");
            }
        };
        prepare();
        assert_write_skew_is_caught(&cluster, [count, count], [&leave(1), &leave(2)]);
        // Rows that were not there when they were looked for: in a slice, by the whole key, by a full read.
        let insert = |doctor: u32| format!("INSERT INTO duty VALUES ('a', {doctor}, false)");
        for read in [
            "SELECT FROM duty WHERE ward = 'a' AND doctor > 2",
            "SELECT FROM duty WHERE ward = 'a' AND doctor IN (7, 8)",
            "SELECT count(*) FROM duty",
            "SET LOCAL enable_seqscan = off; SELECT FROM duty WHERE NOT on_call",
        ] {
            prepare();
            assert_write_skew_is_caught(&cluster, [read, read], [&insert(7), &insert(8)]);
        }
    }
}

#[test]
fn disjoint_partitions_do_not_fail_under_serializable() {
    let cluster = cluster();
    let (mut first, mut second) = (cluster.connect(), cluster.connect());
    first.run(
        "CREATE TABLE t (p int, c int, PRIMARY KEY (p, c)) USING cass;
         INSERT INTO t SELECT p, c FROM generate_series(1, 50) p, generate_series(1, 40) c",
    );
    first.run("BEGIN ISOLATION LEVEL SERIALIZABLE");
    second.run("BEGIN ISOLATION LEVEL SERIALIZABLE");
    first.run("SELECT count(*) FROM t WHERE p = 1; INSERT INTO t VALUES (1, 100)");
    second.run("SELECT count(*) FROM t WHERE p = 49; INSERT INTO t VALUES (49, 100)");
    first.run("COMMIT");
    second.run("COMMIT");
}
