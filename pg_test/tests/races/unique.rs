//! Unique indexes: rows that hold a value are found while they move and while they are written.

use crate::cluster;
use cass_server_tests::{Session, Stopped};

/// Rows (k, 10 * k) for k from 1 to 5, in the delta, with v unique.
fn create(session: &mut Session) {
    session.run(
        "CREATE TABLE t (k int PRIMARY KEY, v int UNIQUE) USING cass;
         INSERT INTO t SELECT k, 10 * k FROM generate_series(1, 5) k",
    );
}

const ROWS: [&str; 5] = ["1|10", "2|20", "3|30", "4|40", "5|50"];

fn rows(session: &mut Session) -> Vec<String> {
    session.rows("SELECT k, v FROM t ORDER BY k")
}

/// Rule 3: a row is looked for in the delta first, and in the segments as they are listed afterwards.
#[test]
fn a_value_is_taken_though_a_flush_moves_its_row_while_it_is_looked_for() {
    let cluster = cluster();
    let (mut session, mut observer) = (cluster.connect(), cluster.connect());
    for statement in ["INSERT INTO t VALUES (6, 30)", "UPDATE t SET v = 30 WHERE k = 4"] {
        create(&mut session);
        let writer = Stopped::at(&cluster, "delta-traced", statement);
        session.run("VACUUM t");
        let (_, result) = writer.go_on().join();
        assert!(result.as_ref().is_err_and(|error| error.starts_with("23505")), "{statement}: {result:?}");
        assert_eq!(rows(&mut session), ROWS);
        session.run("DROP TABLE t");
        for step in ["segment-written", "segment-published", "flush-deleted"] {
            create(&mut session);
            let flush = Stopped::at(&cluster, step, "VACUUM t");
            let writer = cluster.connect().in_background(statement);
            writer.wait_until_blocked_or_finished(&mut observer);
            flush.finish();
            let (_, result) = writer.join();
            assert!(
                result.as_ref().is_err_and(|error| error.starts_with("23505")),
                "{statement} at {step}: {result:?}"
            );
            assert_eq!(rows(&mut session), ROWS);
            session.run("DROP TABLE t");
        }
    }
}

/// Of two that give a new value at once, the one whose index entry comes second waits for the other one's end.
#[test]
fn a_value_that_is_given_twice_at_once_is_had_by_one() {
    let cluster = cluster();
    let (mut session, mut observer) = (cluster.connect(), cluster.connect());
    for in_segment in [true, false] {
        // The first one has yet to write its row, or its index entries.
        for (point, first) in [
            ("delta-probed", "INSERT INTO t VALUES (6, 60)"),
            ("delta-inserted", "INSERT INTO t VALUES (6, 60)"),
            ("delta-indexed", "INSERT INTO t VALUES (6, 60)"),
            ("delta-replaced", "UPDATE t SET v = 60 WHERE k = 1"),
        ] {
            for end in ["COMMIT", "ROLLBACK"] {
                create(&mut session);
                if in_segment {
                    session.flush("t");
                }
                let first = Stopped::at(&cluster, point, first);
                let mut second = cluster.connect();
                second.run("BEGIN; UPDATE t SET v = 60 WHERE k = 2");
                let first = first.go_on();
                first.wait_until_blocked_by("transactionid", &mut observer);
                second.run(end);
                let (_, result) = first.join();
                if end == "COMMIT" {
                    assert!(result.as_ref().is_err_and(|error| error.starts_with("23505")), "{point}: {result:?}");
                } else {
                    assert!(result.is_ok(), "{point}: {result:?}");
                }
                assert_eq!(session.count("SELECT count(*) FROM t WHERE v = 60"), 1, "{point}, {end}");
                assert_eq!(rows(&mut session).iter().filter(|row| row.ends_with("|60")).count(), 1, "{point}, {end}");
                session.assert_sound("t");
                session.run("DROP TABLE t");
            }
        }
    }
}
