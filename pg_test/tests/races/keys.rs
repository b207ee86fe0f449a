//! Writers and lockers of one key, each between two steps of the other.

use crate::cluster;
use cass_server_tests::{Cluster, Session, Stopped};

/// Rows (k, 'v', 'w') for k from 1 to 5, in a segment; none for key 7.
fn create(session: &mut Session) {
    session.run(
        "CREATE TABLE t (k int PRIMARY KEY, v text, w text) USING cass;
         INSERT INTO t SELECT k, 'v', 'w' FROM generate_series(1, 5) k",
    );
    session.flush("t");
    session.run("VACUUM t");
}

/// Stops an INSERT that names the column v of a key at a point, and runs one that names w; whether that one is to wait for the first
/// one's end is for the engine to say. Then the first one ends, and the row has what those that are committed have given it.
fn insert_at_once(cluster: &Cluster, point: &str, key: i32, end: &str) {
    let (mut session, mut observer) = (cluster.connect(), cluster.connect());
    create(&mut session);
    let first = Stopped::at(cluster, point, &format!("BEGIN; INSERT INTO t (k, v) VALUES ({key}, 'first')"));
    let second = cluster.connect().in_background(&format!("INSERT INTO t (k, w) VALUES ({key}, 'second')"));
    // Who comes upon an anchor in the making does not wait for a lock, but looks again and again.
    if point != "anchor-won" && !(point == "delta-indexed" && key == 1) {
        second.wait_until_blocked_or_finished(&mut observer);
    }
    let mut first = first.finish().0;
    first.run(end);
    second.finish();
    let before = if key == 1 { "v" } else { "∅" };
    let v = if end == "COMMIT" { "first" } else { before };
    for step in ["both have ended", "a flush"] {
        let row = format!("{key}|{v}|second");
        let by_key = session.value(&format!("SELECT * FROM t WHERE k = {key}"));
        assert_eq!(by_key, row, "{step}, {point}, {end}");
        let all = session.rows("SELECT * FROM t ORDER BY k");
        assert_eq!(all.len(), if key == 1 { 5 } else { 6 }, "{step}, {point}, {end}: {all:?}");
        assert!(all.contains(&row), "{step}, {point}, {end}: {all:?}");
        session.flush("t");
    }
    session.assert_sound("t");
    session.run("DROP TABLE t");
}

/// Rule 6: of two that have found no row of a key, one wins, and the other completes his row from that one's.
#[test]
fn two_inserts_of_one_key_leave_one_row_that_has_what_both_have_given() {
    let cluster = cluster();
    for key in [1, 7] {
        for end in ["COMMIT", "ROLLBACK"] {
            for point in ["delta-probed", "delta-inserted", "delta-indexed"] {
                insert_at_once(&cluster, point, key, end);
            }
        }
    }
    for end in ["COMMIT", "ROLLBACK"] {
        insert_at_once(&cluster, "anchor-won", 1, end);
        insert_at_once(&cluster, "delta-replaced", 1, end);
    }
}

/// Rule 6: what the segments have is asked after the delta was; in between a flush may have moved the row from the one to the other.
#[test]
fn an_insert_completes_its_row_from_one_that_a_flush_moves_while_it_looks_for_it() {
    let cluster = cluster();
    let mut session = cluster.connect();
    create(&mut session);
    for (statement, row) in [
        ("INSERT INTO t (k, v) VALUES (7, 'late')", "7|late|moved"),
        ("UPDATE t SET v = v || ', late' WHERE k = 7", "7|moved, late|moved"),
    ] {
        session.run("INSERT INTO t VALUES (7, 'moved', 'moved')");
        let write = Stopped::at(&cluster, "delta-probed", statement);
        session.run("VACUUM t");
        write.finish();
        assert_eq!(session.rows("SELECT * FROM t WHERE k = 7"), [row]);
        session.run("DELETE FROM t WHERE k = 7");
        session.flush("t");
    }
}

/// Rule 7: he whose anchor another one comes upon is not waited for, neither while he makes it nor afterwards.
#[test]
fn two_who_share_a_row_of_a_segment_do_not_wait_for_the_one_who_has_written_its_anchor() {
    let cluster = cluster();
    let mut session = cluster.connect();
    for point in ["delta-inserted", "delta-indexed", "anchor-won"] {
        create(&mut session);
        let first = Stopped::at(&cluster, point, "BEGIN; SELECT w FROM t WHERE k = 1 FOR KEY SHARE");
        let second = cluster.connect().in_background("BEGIN; SELECT w FROM t WHERE k = 1 FOR KEY SHARE");
        if point == "delta-inserted" {
            // Its anchor is not in the index yet, and loses.
            second.wait_until_finished();
        } else {
            std::thread::sleep(std::time::Duration::from_millis(100));
            assert!(!second.is_finished(), "{point}: whose anchor it is, is not decided");
        }
        let (mut first, row) = first.finish();
        assert_eq!(row, ["w"]);
        let (mut second, row) = second.finish();
        assert_eq!(row, ["w"]);
        // The anchor outlives him who has written it, and with it the other one's lock.
        first.run("ROLLBACK");
        let delete = cluster.connect().in_background("DELETE FROM t WHERE k = 1");
        delete.wait_until_blocked(&mut session);
        assert_eq!(session.rows("SELECT w FROM t WHERE k = 1"), ["w"]);
        second.run("COMMIT");
        delete.finish();
        assert_eq!(session.rows("SELECT k FROM t ORDER BY k"), ["2", "3", "4", "5"]);
        session.run("DROP TABLE t");
    }
}
