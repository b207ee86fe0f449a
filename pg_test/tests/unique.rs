//! Unique indexes and exclusion constraints on other columns than the key hold among sessions, wherever the rows are.

use cass_server_tests::{Cluster, Session};

/// What keeps values of v apart, and the error of one that is taken.
const KINDS: [(&str, &str); 2] = [("UNIQUE (v)", "23505"), ("EXCLUDE USING btree (v WITH =)", "23P01")];

/// Runs a test for each kind of constraint, with the rows (k, k) for k from 1 to 3 in a segment and in the delta.
fn in_each_place(test: impl Fn(&Cluster, &mut Session, &str)) {
    let cluster = Cluster::with_settings(&[("cass.enforcement", "off")]);
    let mut session = cluster.connect();
    for (constraint, code) in KINDS {
        for in_segment in [true, false] {
            println!("{constraint}, in a segment: {in_segment}");
            session.run(&format!(
                "DROP TABLE IF EXISTS t; CREATE TABLE t (k int PRIMARY KEY, v int, {constraint}) USING cass;
                 INSERT INTO t SELECT k, k FROM generate_series(1, 3) k"
            ));
            if in_segment {
                session.flush("t");
            }
            test(&cluster, &mut session, code);
        }
    }
}

const WRITES: [&str; 3] =
    ["INSERT INTO t VALUES (9, 5)", "UPDATE t SET v = 5 WHERE k = 2", "UPDATE t SET k = 9, v = 5 WHERE k = 2"];

#[test]
fn a_value_that_another_transaction_gives_is_waited_for_and_then_taken() {
    in_each_place(|cluster, observer, code| {
        for change in ["UPDATE t SET v = 5 WHERE k = 1", "INSERT INTO t VALUES (1, 5)", "INSERT INTO t VALUES (7, 5)"] {
            for write in WRITES {
                let mut first = cluster.connect();
                first.run(&format!("BEGIN; {change}"));
                let second = cluster.connect().in_background(write);
                second.wait_until_blocked(observer);
                first.run("COMMIT");
                let (_, result) = second.join();
                assert!(result.as_ref().is_err_and(|error| error.starts_with(code)), "{change}, {write}: {result:?}");
                observer.run("UPDATE t SET v = 1 WHERE k = 1; DELETE FROM t WHERE k = 7");
                assert_eq!(observer.rows("SELECT k, v FROM t ORDER BY k"), ["1|1", "2|2", "3|3"], "{change}, {write}");
            }
        }
    });
}

#[test]
fn a_value_that_another_transaction_gives_up_is_free_once_that_commits() {
    in_each_place(|cluster, observer, code| {
        for change in
            ["UPDATE t SET v = 8 WHERE k = 3", "DELETE FROM t WHERE k = 3", "UPDATE t SET k = 30, v = 8 WHERE k = 3"]
        {
            for (end, is_free) in [("COMMIT", true), ("ROLLBACK", false)] {
                let mut first = cluster.connect();
                first.run(&format!("BEGIN; {change}"));
                let second = cluster.connect().in_background("UPDATE t SET v = 3 WHERE k = 2");
                second.wait_until_blocked(observer);
                first.run(end);
                let (_, result) = second.join();
                let failed = result.as_ref().is_err_and(|error| error.starts_with(code));
                assert_eq!(result.is_ok(), is_free, "{change}, {end}: {result:?}");
                assert_eq!(failed, !is_free, "{change}, {end}: {result:?}");
                observer.run("UPDATE t SET v = 2 WHERE k = 2; DELETE FROM t WHERE k = 30; INSERT INTO t VALUES (3, 3)");
            }
        }
    });
}

#[test]
fn many_writers_among_vacuums_leave_no_value_twice() {
    let cluster = Cluster::with_settings(&[("cass.enforcement", "off")]);
    let mut session = cluster.connect();
    session.run("CREATE TABLE t (k int PRIMARY KEY, v int UNIQUE) USING cass");
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let mut session = cluster.connect();
            std::thread::spawn(move || {
                for round in 0..400_u32 {
                    let (k, v) = ((round * 7 + writer * 3) % 12, (round * 5 + writer * 11) % 15);
                    // A value that is taken is an error, and a deadlock may be one.
                    let _ = session.try_rows(&match round % 3 {
                        0 => format!("INSERT INTO t VALUES ({k}, {v})"),
                        1 => format!("UPDATE t SET v = {v} WHERE k = {k}"),
                        _ => format!("DELETE FROM t WHERE k = {k}"),
                    });
                }
            })
        })
        .collect();
    while writers.iter().any(|writer| !writer.is_finished()) {
        session.run("VACUUM t");
    }
    writers.into_iter().for_each(|writer| writer.join().expect("a writer panicked"));
    assert_eq!(session.rows("SELECT v, count(*) FROM t GROUP BY v HAVING count(*) > 1"), [""; 0]);
    session.run("REINDEX TABLE t");
}
