//! Rows are locked, and locks waited for, as on a heap table, wherever the row is: in a segment or in the delta.

use cass_server_tests::{Cluster, Session};

/// Where the rows of a table are.
#[derive(Clone, Copy, Debug)]
enum Place {
    Segment,
    Delta,
}

/// Rows (k, v, n = 10 * k) for k from 1 to 5.
fn create(session: &mut Session, place: Place) {
    session.run(
        "DROP TABLE IF EXISTS t;
         CREATE TABLE t (k int PRIMARY KEY, v text, n int) USING cass;
         INSERT INTO t SELECT k, 'v' || k, 10 * k FROM generate_series(1, 5) k",
    );
    match place {
        Place::Segment => session.flush("t"),
        Place::Delta => assert_eq!(session.delta_rows_of("t"), 5),
    }
}

/// Runs a test in a cluster of its own, for each place of rows.
fn in_each_place(test: impl Fn(&Cluster, &mut Session)) {
    let cluster = Cluster::with_settings(&[("cass.enforcement", "off")]);
    for place in [Place::Segment, Place::Delta] {
        println!("rows in: {place:?}");
        let mut session = cluster.connect();
        create(&mut session, place);
        test(&cluster, &mut session);
    }
}

#[test]
fn a_delete_waits_for_a_key_share_lock_and_an_update_does_not() {
    in_each_place(|cluster, observer| {
        let (mut child, mut updater) = (cluster.connect(), cluster.connect());
        child.run("BEGIN; SELECT FROM t WHERE k = 1 FOR KEY SHARE");
        updater.run("UPDATE t SET n = 11 WHERE k = 1");
        let delete = updater.in_background("DELETE FROM t WHERE k = 1");
        delete.wait_until_blocked(observer);
        assert_eq!(child.rows("SELECT n FROM t WHERE k = 1"), ["11"]);
        child.run("COMMIT");
        let (mut updater, _) = delete.finish();
        assert_eq!(updater.rows("SELECT k FROM t ORDER BY k"), ["2", "3", "4", "5"]);
    });
}

#[test]
fn a_change_of_the_key_waits_for_a_key_share_lock() {
    in_each_place(|cluster, observer| {
        let mut child = cluster.connect();
        child.run("BEGIN; SELECT FROM t WHERE k = 1 FOR KEY SHARE");
        let update = cluster.connect().in_background("UPDATE t SET k = 100 WHERE k = 1");
        update.wait_until_blocked(observer);
        child.run("ROLLBACK");
        update.finish();
        assert_eq!(observer.rows("SELECT k FROM t ORDER BY k"), ["2", "3", "4", "5", "100"]);
    });
}

#[test]
fn a_key_share_lock_waits_for_a_delete_and_not_for_an_update() {
    in_each_place(|cluster, observer| {
        let (mut deleter, mut updater) = (cluster.connect(), cluster.connect());
        updater.run("BEGIN; UPDATE t SET n = 0 WHERE k = 1; INSERT INTO t VALUES (3, 'new', 0)");
        deleter.run("BEGIN; DELETE FROM t WHERE k = 2");
        let mut child = cluster.connect();
        child.run("SET lock_timeout = '20s'");
        assert_eq!(child.rows("SELECT k FROM t WHERE k = 1 FOR KEY SHARE"), ["1"]);
        assert_eq!(child.rows("SELECT k FROM t WHERE k = 3 FOR KEY SHARE"), ["3"]);
        let lock = child.in_background("SELECT k FROM t WHERE k = 2 FOR KEY SHARE");
        lock.wait_until_blocked(observer);
        deleter.run("COMMIT");
        assert_eq!(lock.finish().1, [""; 0]);
        updater.run("COMMIT");
    });
}

#[test]
fn a_key_share_lock_waits_for_a_delete_that_follows_an_update_of_the_same_transaction() {
    in_each_place(|cluster, observer| {
        for conflict in ["DELETE FROM t WHERE k = 1", "UPDATE t SET k = 100 WHERE k = 1"] {
            let mut writer = cluster.connect();
            writer.run(&format!("BEGIN; UPDATE t SET n = 0 WHERE k = 1; {conflict}"));
            let lock = cluster.connect().in_background("SELECT n FROM t WHERE k = 1 FOR KEY SHARE");
            lock.wait_until_blocked(observer);
            writer.run("ROLLBACK");
            assert_eq!(lock.finish().1, ["10"]);
        }
    });
}

#[test]
fn a_key_share_lock_that_passed_an_update_outlasts_the_commit_of_the_update() {
    in_each_place(|cluster, observer| {
        let (mut updater, mut child) = (cluster.connect(), cluster.connect());
        updater.run("BEGIN; UPDATE t SET n = 11 WHERE k = 1; UPDATE t SET n = 12 WHERE k = 1");
        child.run("BEGIN; SELECT FROM t WHERE k = 1 FOR KEY SHARE");
        updater.run("COMMIT");
        let delete = updater.in_background("DELETE FROM t WHERE k = 1");
        delete.wait_until_blocked(observer);
        child.run("COMMIT");
        delete.finish();
        assert_eq!(observer.rows("SELECT k FROM t ORDER BY k"), ["2", "3", "4", "5"]);
    });
}

#[test]
fn sharers_of_a_row_do_not_wait_for_one_another() {
    in_each_place(|cluster, observer| {
        let (mut first, mut second) = (cluster.connect(), cluster.connect());
        first.run("BEGIN; SELECT FROM t WHERE k = 1 FOR SHARE");
        second.run("BEGIN; SET LOCAL lock_timeout = '20s'; SELECT FROM t WHERE k = 1 FOR SHARE");
        first.run("ROLLBACK");
        let update = cluster.connect().in_background("UPDATE t SET n = 12 WHERE k = 1");
        update.wait_until_blocked(observer);
        second.run("COMMIT");
        update.finish();
        assert_eq!(observer.rows("SELECT n FROM t WHERE k = 1"), ["12"]);
    });
}

#[test]
fn for_update_waits_skips_or_fails_as_it_is_told_to() {
    in_each_place(|cluster, observer| {
        let (mut first, mut second) = (cluster.connect(), cluster.connect());
        first.run("BEGIN; SELECT FROM t WHERE k IN (1, 3) FOR UPDATE");
        assert_eq!(second.rows("SELECT k FROM t WHERE n <= 40 ORDER BY k FOR UPDATE SKIP LOCKED"), ["2", "4"]);
        let refused = second.error("SELECT k FROM t WHERE k = 3 FOR UPDATE NOWAIT");
        assert_eq!(refused, "55P03 could not obtain lock on row in relation \"t\"");
        let waiting = second.in_background("SELECT k, v, n FROM t WHERE k = 3 FOR UPDATE");
        waiting.wait_until_blocked(observer);
        first.run("UPDATE t SET v = 'changed' WHERE k = 3; COMMIT");
        assert_eq!(waiting.finish().1, ["3|changed|30"], "the row as it is when the lock is had");
    });
}

#[test]
fn a_lock_ends_with_its_transaction_and_leaves_the_row_as_it_was() {
    in_each_place(|cluster, observer| {
        let mut locker = cluster.connect();
        locker.run("BEGIN; SELECT FROM t FOR UPDATE; ROLLBACK; BEGIN; SELECT FROM t FOR NO KEY UPDATE; COMMIT");
        locker.run("BEGIN; SAVEPOINT s; SELECT FROM t FOR UPDATE; ROLLBACK TO s");
        observer.run("SET lock_timeout = '20s'; DELETE FROM t WHERE k = 5");
        assert_eq!(observer.rows("SELECT * FROM t ORDER BY k"), ["1|v1|10", "2|v2|20", "3|v3|30", "4|v4|40"]);
        locker.run("COMMIT");
        observer.flush("t");
        assert_eq!(observer.rows("SELECT * FROM t ORDER BY k"), ["1|v1|10", "2|v2|20", "3|v3|30", "4|v4|40"]);
    });
}

#[test]
fn a_condition_is_tested_again_on_the_row_that_was_waited_for() {
    in_each_place(|cluster, observer| {
        let mut first = cluster.connect();
        first.run("BEGIN; UPDATE t SET n = n + 100 WHERE k IN (1, 2); DELETE FROM t WHERE k = 5");
        let statements = [
            ("UPDATE t SET v = 'seen' WHERE k = 1 AND n > 100 RETURNING n, v", vec!["110|seen"]),
            ("UPDATE t SET v = 'seen' WHERE k = 2 AND n < 100 RETURNING n, v", vec![]),
            ("UPDATE t SET v = 'seen' WHERE k = 5 RETURNING k", vec![]),
        ];
        // The snapshot of each is older than the first transaction's end.
        let waiting = statements.map(|(sql, expected)| (cluster.connect().in_background(sql), expected));
        // The first cannot match before it has waited: its condition is false in its snapshot.
        waiting[1..].iter().for_each(|(statement, _)| statement.wait_until_blocked(observer));
        first.run("COMMIT");
        let results: Vec<_> =
            waiting.into_iter().map(|(statement, expected)| (statement.finish().1, expected)).collect();
        assert_eq!(results[0].0, [""; 0], "its condition is false in its snapshot");
        for (rows, expected) in &results[1..] {
            assert_eq!(rows, expected);
        }
        assert_eq!(observer.rows("SELECT * FROM t ORDER BY k"), ["1|v1|110", "2|v2|120", "3|v3|30", "4|v4|40"]);
    });
}

#[test]
fn who_waited_for_a_row_that_got_another_key_is_told_so() {
    in_each_place(|cluster, observer| {
        for sql in [
            "UPDATE t SET n = 0 WHERE k IN (3, 4)",
            "DELETE FROM t WHERE k IN (3, 4)",
            "UPDATE t SET k = 50 WHERE k = 4",
            "SELECT FROM t WHERE k = 4 FOR KEY SHARE",
        ] {
            let mut first = cluster.connect();
            first.run("BEGIN; UPDATE t SET k = 40 WHERE k = 4");
            let waiting = cluster.connect().in_background(sql);
            waiting.wait_until_blocked(observer);
            first.run("COMMIT");
            let (mut session, result) = waiting.join();
            assert!(result.as_ref().is_err_and(|error| error.starts_with("40001")), "{sql}: {result:?}");
            assert_eq!(session.rows("SELECT * FROM t WHERE k > 2 ORDER BY k"), ["3|v3|30", "5|v5|50", "40|v4|40"]);
            session.run("UPDATE t SET k = 4 WHERE k = 40");
        }
        observer.run("VACUUM t");
        assert_eq!(observer.rows("SELECT * FROM t WHERE k > 2 ORDER BY k"), ["3|v3|30", "4|v4|40", "5|v5|50"]);
        observer.run("UPDATE t SET k = 40 WHERE k = 4");
        observer.flush("t");
        assert_eq!(observer.rows("SELECT * FROM t WHERE k > 2 ORDER BY k"), ["3|v3|30", "5|v5|50", "40|v4|40"]);
        assert_eq!(observer.delta_rows_of("t"), 0, "the tombstone went into a segment");
    });
}

#[test]
fn an_update_that_waited_builds_on_the_row_it_waited_for() {
    in_each_place(|cluster, observer| {
        let mut first = cluster.connect();
        first.run("BEGIN; UPDATE t SET n = n + 1, v = 'first' WHERE k = 1");
        let plain = cluster.connect().in_background("UPDATE t SET n = n + 1 WHERE k = 1 AND n < 1000 RETURNING n, v");
        plain.wait_until_blocked(observer);
        first.run("COMMIT");
        assert_eq!(plain.finish().1, ["12|first"]);
        // With another table beside it, the join is tested again too.
        first.run("BEGIN; UPDATE t SET n = 3 WHERE k = 2");
        let joined = cluster.connect().in_background(
            "UPDATE t SET v = o.x FROM (VALUES (20, 'twenty'), (3, 'three')) o (n, x) WHERE t.k = 2 AND t.n + 0 = o.n RETURNING t.v",
        );
        joined.wait_until_blocked(observer);
        first.run("ROLLBACK");
        assert_eq!(joined.finish().1, ["twenty"]);
    });
}

#[test]
fn two_inserts_of_a_new_key_wait_and_leave_the_last_one() {
    in_each_place(|cluster, observer| {
        let mut first = cluster.connect();
        first.run("BEGIN; INSERT INTO t VALUES (7, 'first', 1)");
        let second = cluster.connect().in_background("INSERT INTO t VALUES (7, 'second', 2)");
        second.wait_until_blocked(observer);
        first.run("COMMIT");
        second.finish();
        assert_eq!(observer.rows("SELECT * FROM t WHERE k = 7"), ["7|second|2"]);
        first.run("BEGIN; INSERT INTO t VALUES (8, 'first', 1)");
        let second = cluster.connect().in_background("INSERT INTO t VALUES (8, 'second', 2)");
        second.wait_until_blocked(observer);
        first.run("ROLLBACK");
        second.finish();
        assert_eq!(observer.rows("SELECT * FROM t WHERE k = 8"), ["8|second|2"]);
    });
}

#[test]
fn a_key_that_is_taken_while_an_update_waits_for_it_is_a_duplicate() {
    in_each_place(|cluster, observer| {
        let mut first = cluster.connect();
        first.run("BEGIN; INSERT INTO t VALUES (7, 'first', 1)");
        let update = cluster.connect().in_background("UPDATE t SET k = 7 WHERE k = 1");
        update.wait_until_blocked(observer);
        first.run("COMMIT");
        let (_, result) = update.join();
        assert!(result.as_ref().is_err_and(|error| error.starts_with("23505")), "{result:?}");
        assert_eq!(observer.rows("SELECT k, v FROM t WHERE k IN (1, 7) ORDER BY k"), ["1|v1", "7|first"]);
    });
}

#[test]
fn a_deadlock_ends_one_of_the_two() {
    in_each_place(|cluster, observer| {
        let (mut first, mut second) = (cluster.connect(), cluster.connect());
        first.run("BEGIN; UPDATE t SET v = 'first' WHERE k = 1");
        second.run("BEGIN; UPDATE t SET v = 'second' WHERE k = 2");
        let first = first.in_background("UPDATE t SET v = 'first' WHERE k = 2; COMMIT");
        first.wait_until_blocked(observer);
        let second = second.in_background("INSERT INTO t VALUES (1, 'second', 0); COMMIT");
        let results = [first.join().1, second.join().1];
        let ended: Vec<&String> = results.iter().filter_map(|result| result.as_ref().err()).collect();
        assert!(ended.len() == 1 && ended[0].starts_with("40P01"), "{results:?}");
        let winner = if results[0].is_ok() { "first" } else { "second" };
        let rows = observer.rows("SELECT v FROM t WHERE k IN (1, 2)");
        assert_eq!(rows, [winner, winner]);
    });
}

#[test]
fn a_foreign_key_to_a_heap_table_holds() {
    let cluster = Cluster::with_settings(&[("cass.enforcement", "off")]);
    let (mut session, mut other) = (cluster.connect(), cluster.connect());
    session.run(
        "CREATE TABLE parent (id int PRIMARY KEY) USING heap; INSERT INTO parent VALUES (1), (2), (3);
         CREATE TABLE child (k int PRIMARY KEY, parent int REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE) USING cass;
         INSERT INTO child VALUES (1, 1), (2, 2), (3, 3)",
    );
    session.flush("child");
    assert!(session.error("INSERT INTO child VALUES (4, 4)").starts_with("23503"));
    session.run("DELETE FROM parent WHERE id = 1; UPDATE parent SET id = 20 WHERE id = 2");
    assert_eq!(session.rows("SELECT * FROM child ORDER BY k"), ["2|20", "3|3"]);
    other.run("BEGIN; INSERT INTO child VALUES (5, 3)");
    let delete = session.in_background("DELETE FROM parent WHERE id = 3");
    let mut observer = cluster.connect();
    delete.wait_until_blocked(&mut observer);
    other.run("COMMIT");
    delete.finish();
    assert_eq!(observer.rows("SELECT * FROM child ORDER BY k"), ["2|20"]);
}
