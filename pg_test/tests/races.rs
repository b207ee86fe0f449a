//! Statements that come between two steps of another one: each stops at a point of the engine (`src/pg/injection.rs`) until the
//! other has had its turn.

use cass_server_tests::{Cluster, Session, Stopped};

const ROWS: &str = "SELECT count(*), count(DISTINCT k), sum(v) FROM t";

/// A table of 100 rows, all in the delta.
fn table() -> (Cluster, Session) {
    let cluster = Cluster::with_settings(&[("cass.enforcement", "off")]);
    let mut session = cluster.connect();
    session.run(
        "CREATE TABLE t (k int PRIMARY KEY, v int) USING cass WITH (autovacuum_enabled = off);
         INSERT INTO t SELECT k, 1 FROM generate_series(1, 100) k",
    );
    (cluster, session)
}

#[test]
fn each_row_is_shown_once_at_every_step_of_a_flush() {
    for point in ["segment-written", "segment-published", "flush-deleted"] {
        let (cluster, mut session) = table();
        let mut old = cluster.connect();
        old.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
        assert_eq!(old.value(ROWS), "100|100|100");
        let flush = Stopped::at(&cluster, point, "VACUUM t");
        assert_eq!(session.value(ROWS), "100|100|100", "at {point}");
        assert_eq!(old.value(ROWS), "100|100|100", "at {point}");
        flush.finish();
        assert_eq!(session.value(ROWS), "100|100|100", "after {point}");
        assert_eq!(old.value(ROWS), "100|100|100", "after {point}");
        assert_eq!(session.segments_of("t"), 1);
    }
}

/// The list of segments and the delta are looked at one after the other, but with one snapshot.
#[test]
fn a_reader_shows_each_row_once_though_a_flush_comes_between_list_and_delta() {
    let (cluster, mut session) = table();
    let reader = Stopped::at(&cluster, "segments-listed", ROWS);
    session.run("VACUUM t");
    assert_eq!(session.segments_of("t"), 1);
    assert_eq!(reader.finish().1, ["100|100|100"]);
}

#[test]
fn an_update_between_the_steps_of_a_flush_is_not_lost() {
    for point in ["segment-written", "segment-published"] {
        let (cluster, mut session) = table();
        let flush = Stopped::at(&cluster, point, "VACUUM t");
        session.run("UPDATE t SET v = v + 1 WHERE k <= 10; DELETE FROM t WHERE k = 100");
        assert_eq!(session.value(ROWS), "99|99|109", "at {point}");
        flush.finish();
        assert_eq!(session.value(ROWS), "99|99|109", "after {point}");
        session.run("VACUUM t");
        assert_eq!(session.value(ROWS), "99|99|109", "after the next VACUUM");
    }
}

#[test]
fn an_insert_that_has_found_no_row_overwrites_one_that_came_meanwhile() {
    let (cluster, mut session) = table();
    for key in [50, 1000] {
        // A key of a segment, and a new one.
        session.flush("t");
        let insert = Stopped::at(&cluster, "delta-probed", &format!("INSERT INTO t VALUES ({key}, 7)"));
        session.run(&format!("INSERT INTO t VALUES ({key}, 6)"));
        insert.finish();
        assert_eq!(session.rows(&format!("SELECT v FROM t WHERE k = {key}")), ["7"]);
        assert_eq!(session.count(&format!("SELECT count(*) FROM (SELECT k FROM t OFFSET 0) s WHERE k = {key}")), 1);
    }
}

/// An anchor is a row of the delta too: what is noted about an empty delta would hide all that is written after it.
#[test]
fn who_locks_rows_waits_while_the_delta_is_noted_as_empty() {
    let (cluster, mut session) = table();
    let vacuum = Stopped::at(&cluster, "delta-flag-cleared", "VACUUM t");
    let mut locker = cluster.connect();
    locker.run("BEGIN");
    let locker = locker.in_background("SELECT v FROM t WHERE k = 5 FOR UPDATE");
    locker.wait_until_blocked_by("relation", &mut session);
    vacuum.finish();
    let (mut locker, rows) = locker.finish();
    assert_eq!(rows, ["1"]);
    locker.run("UPDATE t SET v = 2 WHERE k = 5; COMMIT");
    assert_eq!(session.rows("SELECT v FROM t WHERE k = 5"), ["2"]);
    assert_eq!(session.value(ROWS), "100|100|101");
}
