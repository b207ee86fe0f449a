//! The visibility map spares reads the list of segments and the delta, and never shows a snapshot anything else than they would.

use cass_server_tests::{Cluster, Session, Shutdown};
use std::path::PathBuf;
use std::time::Duration;

const ALL: &str = "SELECT k, v FROM t ORDER BY k";

fn cluster() -> Cluster {
    Cluster::with_settings(&[("cass.enforcement", "off")])
}

/// Rows (k, 10 * k) for k from 1 to 20, all in a segment, and the map telling so.
fn create(session: &mut Session) -> Vec<String> {
    session.run(
        "CREATE TABLE t (k int PRIMARY KEY, v int) USING cass;
         CREATE INDEX t_v ON t (v);
         INSERT INTO t SELECT k, 10 * k FROM generate_series(1, 20) k",
    );
    settle(session);
    session.rows(ALL)
}

/// VACUUM until the delta is empty and the map has been told so.
fn settle(session: &mut Session) {
    session.flush("t");
    session.run("VACUUM t");
}

/// Shared buffers that a read of one row touches, once the session has met the table.
fn buffers_of_a_read(session: &mut Session) -> u64 {
    let query = "SELECT v FROM t WHERE k = 7";
    session.rows(query);
    let plan = session.rows(&format!("EXPLAIN (ANALYZE, BUFFERS, COSTS off) {query}")).join("\n");
    let execution = plan.split("Planning").next().unwrap_or_default();
    let hits = execution.split("shared hit=").nth(1).map(|rest| rest.split_whitespace().next().unwrap_or_default());
    hits.map_or(0, |hits| hits.parse().unwrap_or_else(|_| panic!("no number of buffers in:\n{plan}")))
}

/// The file that has the map.
fn map_file(cluster: &Cluster, session: &mut Session) -> PathBuf {
    let path = session.value("SELECT pg_relation_filepath('t')");
    cluster.data().join(format!("{path}_fsm"))
}

#[test]
fn reads_open_neither_list_nor_delta_once_both_are_settled() {
    let cluster = cluster();
    let mut session = cluster.connect();
    create(&mut session);
    assert!(buffers_of_a_read(&mut session) <= 2, "{} buffers", buffers_of_a_read(&mut session));
    session.run("INSERT INTO t VALUES (21, 210)");
    assert!(buffers_of_a_read(&mut session) > 2, "the delta must be asked");
    settle(&mut session);
    assert!(buffers_of_a_read(&mut session) <= 2, "{} buffers", buffers_of_a_read(&mut session));
    assert!(buffers_of_a_read(&mut cluster.connect()) <= 2);
}

#[test]
fn rows_written_after_a_lock_beside_vacuum_are_seen() {
    let cluster = cluster();
    let (mut session, mut locker) = (cluster.connect(), cluster.connect());
    create(&mut session);
    for round in 1..=50 {
        session.run(&format!("INSERT INTO t VALUES (5, {round})"));
        let lock = locker.in_background("SELECT FROM t WHERE k IN (1, 2, 3) FOR UPDATE");
        session.run("VACUUM t");
        locker = lock.finish().0;
        session.run(&format!("UPDATE t SET v = {round} WHERE k = 7"));
        assert_eq!(session.value("SELECT v FROM t WHERE k = 7"), round.to_string());
    }
}

#[test]
fn a_snapshot_older_than_what_the_map_tells_does_not_go_by_it() {
    let cluster = cluster();
    let (mut writer, mut reader, mut idle) = (cluster.connect(), cluster.connect(), cluster.connect());
    let before = create(&mut writer);
    for session in [&mut reader, &mut idle] {
        session.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
        session.run("SELECT 1 FROM pg_class LIMIT 1");
    }
    assert_eq!(reader.rows(ALL), before);
    writer.run("UPDATE t SET v = -k WHERE k % 2 = 0; DELETE FROM t WHERE k = 3; INSERT INTO t VALUES (30, 300)");
    let after = writer.rows(ALL);
    for _ in 0..3 {
        writer.run("VACUUM t");
        assert_eq!(reader.rows(ALL), before);
        assert_eq!(writer.rows(ALL), after);
        assert_eq!(cluster.connect().rows(ALL), after);
    }
    assert_eq!(idle.rows(ALL), before, "one that reads the table for the first time");
    reader.run("COMMIT");
    idle.run("COMMIT");
    assert_eq!(reader.rows(ALL), after);
    settle(&mut writer);
    for session in [&mut reader, &mut idle, &mut cluster.connect()] {
        assert_eq!(session.rows(ALL), after);
    }
}

#[test]
fn a_transaction_sees_its_own_changes_and_a_rollback_takes_them_back() {
    let cluster = cluster();
    let (mut session, mut other) = (cluster.connect(), cluster.connect());
    let before = create(&mut session);
    session.run("BEGIN; SAVEPOINT s; INSERT INTO t VALUES (1, 0), (40, 400)");
    assert_eq!(session.value("SELECT sum(v) FROM t WHERE k IN (1, 40)"), "400");
    assert_eq!(other.rows(ALL), before);
    session.run("ROLLBACK TO s");
    assert_eq!(session.rows(ALL), before);
    session.run("TRUNCATE t; INSERT INTO t VALUES (1, 1)");
    assert_eq!(session.rows(ALL), ["1|1"]);
    session.run("ROLLBACK");
    assert_eq!(session.rows(ALL), before);
    session.run("TRUNCATE t");
    settle(&mut session);
    assert_eq!(other.rows(ALL), Vec::<String>::new());
}

#[test]
fn a_map_that_is_lost_or_damaged_costs_no_row() {
    let mut cluster = cluster();
    let mut session = cluster.connect();
    let rows = create(&mut session);
    let file = map_file(&cluster, &mut session);
    drop(session);
    for damage in ["emptied", "removed", "overwritten"] {
        cluster.stop(Shutdown::Fast);
        match damage {
            "emptied" => std::fs::write(&file, []),
            "removed" => std::fs::remove_file(&file),
            _ => std::fs::write(&file, vec![0x5a; 8192]),
        }
        .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        cluster.start();
        let mut session = cluster.connect();
        assert_eq!(session.rows(ALL), rows, "{damage}");
        session.run("UPDATE t SET v = 10 * k WHERE k = 5");
        settle(&mut session);
        assert_eq!(session.rows(ALL), rows, "{damage}, and made anew");
        assert!(buffers_of_a_read(&mut session) <= 2, "{damage}");
    }
}

#[test]
fn a_crash_between_the_steps_of_vacuum_leaves_no_map_that_hides_rows() {
    let mut cluster = cluster();
    let mut session = cluster.connect();
    create(&mut session);
    for round in 1..=4 {
        session.run(&format!("UPDATE t SET v = v + {round}; INSERT INTO t VALUES (100 + {round}, 0)"));
        let rows = session.rows(ALL);
        session = cluster.crash_during("VACUUM t", Duration::from_millis(3 * round));
        assert_eq!(session.rows(ALL), rows, "round {round}");
        session.run("VACUUM t");
        session.run(&format!("INSERT INTO t VALUES (200 + {round}, 0)"));
        let rows = session.rows(ALL);
        cluster.kill();
        cluster.start();
        session = cluster.connect();
        assert_eq!(session.rows(ALL), rows, "round {round}, after the crash behind VACUUM");
    }
}

#[test]
fn a_standby_goes_by_the_map_of_its_primary_and_misses_nothing() {
    let primary = cluster();
    let mut writer = primary.connect();
    create(&mut writer);
    let standby = primary.standby();
    let mut reader = standby.connect();
    for round in 1..=4 {
        writer.run(&format!("UPDATE t SET v = v + {round} WHERE k % 3 = 0; INSERT INTO t VALUES (100 + {round}, 0)"));
        standby.catch_up_with(&primary);
        assert_eq!(reader.rows(ALL), writer.rows(ALL), "round {round}, before VACUUM");
        writer.run("VACUUM t");
        standby.catch_up_with(&primary);
        assert_eq!(reader.rows(ALL), writer.rows(ALL), "round {round}, after VACUUM");
        writer.run("VACUUM t");
        standby.catch_up_with(&primary);
        assert_eq!(reader.rows(ALL), writer.rows(ALL), "round {round}, after the second VACUUM");
    }
    // What the map was told is not waited for at the end of VACUUM, but goes out with the next commit.
    // Segments are read from their files once a restartpoint has written them.
    writer.run("CREATE TABLE other ()");
    writer.run("CHECKPOINT");
    standby.catch_up_with(&primary);
    reader.run("CHECKPOINT");
    assert!(buffers_of_a_read(&mut standby.connect()) <= 2);
}

#[test]
fn index_only_scans_do_not_take_the_map_for_a_heaps() {
    let cluster = cluster();
    let mut session = cluster.connect();
    create(&mut session);
    session.run("DELETE FROM t WHERE v = 70; UPDATE t SET v = 1000 WHERE v = 80");
    session.run("SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexscan = off");
    let by_index = |session: &mut Session| session.rows("SELECT v FROM t WHERE v BETWEEN 60 AND 90 ORDER BY v");
    assert_eq!(by_index(&mut session), ["60", "90"]);
    session.run("VACUUM (INDEX_CLEANUP off) t");
    session.run("VACUUM (INDEX_CLEANUP off) t");
    assert_eq!(by_index(&mut session), ["60", "90"]);
}
