//! VACUUM gives back the space of what it has moved out of the delta, at once, and keeps what a snapshot may still need.

use cass_server_tests::{Cluster, Session, Shutdown};
use std::time::{Duration, Instant};

const ALL: &str = "SELECT count(*), sum(v), min(k), max(k) FROM t";

/// An empty table in a cluster where nothing but the tests vacuums.
fn create() -> (Cluster, Session) {
    let cluster = Cluster::with_settings(&[("cass.enforcement", "off"), ("autovacuum", "off")]);
    let mut session = cluster.connect();
    session.run("CREATE TABLE t (k int PRIMARY KEY, v int, w text) USING cass");
    (cluster, session)
}

fn fill(session: &mut Session, first: u32) {
    session.run(&format!(
        "INSERT INTO t SELECT k, k % 7, repeat(md5(k::text), 3) FROM generate_series({first}, {first} + 7999) k"
    ));
}

/// Bytes of the heap of the delta of `table`, and of its indexes.
fn delta_of(session: &mut Session, table: &str) -> (u64, u64) {
    let delta = format!("(SELECT oid FROM pg_class WHERE relname = 'cass_delta_' || '{table}'::regclass::oid)");
    (
        session.count(&format!("SELECT pg_relation_size({delta})")),
        session.count(&format!("SELECT pg_indexes_size({delta})")),
    )
}

#[test]
fn one_vacuum_leaves_a_delta_without_pages_and_with_small_indexes() {
    let (_cluster, mut session) = create();
    for round in 0..3 {
        fill(&mut session, 1 + round * 4_000);
        let rows = session.rows(ALL);
        let (heap, indexes) = delta_of(&mut session, "t");
        assert!(heap > 800_000 && indexes > 200_000, "{heap} and {indexes} bytes");
        session.run("VACUUM t");
        assert_eq!(delta_of(&mut session, "t"), (0, 2 * 8192), "round {round}");
        assert_eq!(session.rows(ALL), rows, "round {round}");
        assert_eq!(session.rows("SELECT v FROM t WHERE k = 20"), ["6"]);
    }
    session.run("INSERT INTO t VALUES (20, 1, ''), (70000, 2, '')");
    assert_eq!(session.rows("SELECT v FROM t WHERE k IN (20, 70000) ORDER BY k"), ["1", "2"]);
}

#[test]
fn vacuum_of_several_tables_and_of_the_database_gives_back_the_space_of_each() {
    let (_cluster, mut session) = create();
    session.run("CREATE TABLE u (LIKE t INCLUDING ALL) USING cass; CREATE TABLE other (x int) USING heap");
    for vacuum in ["VACUUM t, other, u", "VACUUM", "VACUUM (ANALYZE, VERBOSE, SKIP_LOCKED)", "VACUUM FULL t, u"] {
        fill(&mut session, 1);
        session.run("INSERT INTO u SELECT * FROM t");
        session.run(vacuum);
        for table in ["t", "u"] {
            assert_eq!(delta_of(&mut session, table), (0, 2 * 8192), "{table} after {vacuum}");
            assert_eq!(session.count(&format!("SELECT count(*) FROM {table}")), 8_000, "{table} after {vacuum}");
        }
    }
    fill(&mut session, 1);
    session.run("VACUUM (TRUNCATE false) t");
    assert!(delta_of(&mut session, "t").0 > 0, "TRUNCATE false shrinks nothing");
    session.run("ANALYZE t");
    assert!(session.error("BEGIN; VACUUM t").contains("cannot run inside a transaction block"));
}

#[test]
fn an_older_snapshot_keeps_its_rows_in_the_delta() {
    let (cluster, mut session) = create();
    fill(&mut session, 1);
    session.run("VACUUM t");
    session.run("UPDATE t SET v = 100 WHERE k <= 5000");
    let mut reader = cluster.connect();
    reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
    let before = reader.rows(ALL);
    session.run("UPDATE t SET v = 200 WHERE k <= 5000");
    session.run("DELETE FROM t WHERE k > 7500");
    let after = session.rows(ALL);
    for _ in 0..2 {
        session.run("VACUUM t");
        assert_eq!(reader.rows(ALL), before);
        assert_eq!(session.rows(ALL), after);
    }
    assert_ne!(delta_of(&mut session, "t").0, 0);
    reader.run("COMMIT");
    session.run("VACUUM t");
    assert_eq!(reader.rows(ALL), after);
    assert_eq!(delta_of(&mut session, "t"), (0, 2 * 8192));
}

#[test]
fn vacuum_neither_waits_for_a_writer_nor_loses_its_rows() {
    let (cluster, mut session) = create();
    fill(&mut session, 1);
    let mut writer = cluster.connect();
    writer.run("BEGIN; INSERT INTO t VALUES (90000, 5, 'open')");
    session.run("VACUUM t");
    assert_eq!(session.count("SELECT count(*) FROM t"), 8_000);
    writer.run("INSERT INTO t VALUES (90001, 5, 'open'); COMMIT");
    assert_eq!(session.count("SELECT count(*) FROM t"), 8_002);
    session.run("VACUUM t");
    assert_eq!(session.rows("SELECT v FROM t WHERE k IN (90000, 90001)"), ["5", "5"]);
    assert_eq!(delta_of(&mut session, "t"), (0, 2 * 8192));
}

#[test]
fn a_crash_at_any_moment_of_vacuum_loses_nothing() {
    let (mut cluster, mut session) = create();
    for round in 0..6_u64 {
        fill(&mut session, 1 + round as u32 * 2_000);
        session.run("DELETE FROM t WHERE k % 11 = 0");
        let rows = session.rows(ALL);
        session = cluster.crash_during("VACUUM t", Duration::from_millis(20 + 60 * round));
        assert_eq!(session.rows(ALL), rows, "round {round}");
        session.run("VACUUM t");
        cluster.restart(Shutdown::Immediate);
        session = cluster.connect();
        assert_eq!(session.rows(ALL), rows, "round {round}, after the crash behind VACUUM");
        assert_eq!(delta_of(&mut session, "t"), (0, 2 * 8192), "round {round}");
    }
}

#[test]
fn a_standby_follows() {
    let (primary, mut session) = create();
    fill(&mut session, 1);
    let standby = primary.standby();
    let mut reader = standby.connect();
    for round in 0..3 {
        session.run("VACUUM t");
        fill(&mut session, 4_000 * round);
        session.run("VACUUM t");
        session.run("INSERT INTO t VALUES (1, 1, '')");
        standby.catch_up_with(&primary);
        assert_eq!(reader.rows(ALL), session.rows(ALL), "round {round}");
        assert_eq!(delta_of(&mut reader, "t").1, 2 * 2 * 8192, "round {round}");
    }
}

#[test]
fn a_rewritten_or_truncated_table_leaves_nothing_in_the_delta_either() {
    let (_cluster, mut session) = create();
    for (statements, rows) in [("VACUUM FULL t", 8_000), ("TRUNCATE t; VACUUM t", 0), ("CLUSTER; VACUUM t", 8_000)] {
        fill(&mut session, 1);
        statements.split("; ").for_each(|statement| session.run(statement));
        assert_eq!(delta_of(&mut session, "t"), (0, 2 * 8192), "{statements}");
        assert_eq!(session.count("SELECT count(*) FROM t"), rows, "{statements}");
    }
}

#[test]
fn nobody_waits_for_a_transaction_that_uses_the_delta_and_nothing_is_lost() {
    let (cluster, mut session) = create();
    let mut other = cluster.connect();
    let uses = ["INSERT INTO t VALUES (90000, 9, 'new')", "SELECT count(*) FROM t", "UPDATE t SET v = 100 WHERE k = 5"];
    for use_of_delta in uses {
        fill(&mut session, 1);
        other.run("BEGIN");
        other.run(use_of_delta);
        let start = Instant::now();
        session.run("VACUUM t");
        // PostgreSQL tries for five seconds to lock a heap that it wants to shrink.
        assert!(start.elapsed() < Duration::from_secs(4), "{use_of_delta}: VACUUM took {:?}", start.elapsed());
        assert_ne!(delta_of(&mut session, "t").0, 0, "{use_of_delta}");
        other.run("INSERT INTO t VALUES (90001, 9, 'newer'); COMMIT");
        let rows = other.rows(ALL);
        session.run("VACUUM t");
        assert_eq!(delta_of(&mut session, "t"), (0, 2 * 8192), "{use_of_delta}");
        assert_eq!(session.rows(ALL), rows, "{use_of_delta}");
    }
    assert_eq!(session.rows("SELECT k, v FROM t WHERE v > 6 ORDER BY k"), ["5|100", "90000|9", "90001|9"]);
}

#[test]
fn an_older_snapshot_of_a_standby_keeps_its_rows() {
    let (primary, mut session) = create();
    primary.configure(&[("max_standby_streaming_delay", "-1")]);
    fill(&mut session, 1);
    let standby = primary.standby();
    let mut reader = standby.connect();
    standby.catch_up_with(&primary);
    reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM pg_class LIMIT 1");
    let before = session.rows(ALL);
    session.run("UPDATE t SET v = v + 100");
    session.run("VACUUM t");
    assert_eq!(delta_of(&mut session, "t"), (0, 2 * 8192));
    let after = session.rows(ALL);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(reader.rows(ALL), before);
    reader.run("COMMIT");
    standby.catch_up_with(&primary);
    assert_eq!(reader.rows(ALL), after);
    assert_eq!(delta_of(&mut reader, "t"), (0, 2 * 8192));
}

#[test]
fn a_kill_while_the_indexes_get_new_files_loses_nothing() {
    let (mut cluster, mut session) = create();
    let mut locker = cluster.connect();
    fill(&mut session, 1);
    let rows = session.rows(ALL);
    // The last thing that making an index anew does is to look into pg_index.
    locker.run("BEGIN; LOCK TABLE pg_index IN SHARE MODE");
    let vacuum = cluster.connect().in_background("VACUUM t");
    vacuum.wait_until_blocked(&mut session);
    let delta = "(SELECT oid FROM pg_class WHERE relname = 'cass_delta_' || 't'::regclass::oid)";
    let heap = session.count(&format!("SELECT pg_relation_size({delta})"));
    assert_eq!(heap, 0, "the second step has come to the indexes, which are locked");
    cluster.kill();
    cluster.start();
    let mut session = cluster.connect();
    assert_eq!(session.rows(ALL), rows);
    fill(&mut session, 4_000);
    let rows = session.rows(ALL);
    session.run("VACUUM t");
    assert_eq!(delta_of(&mut session, "t"), (0, 2 * 8192));
    assert_eq!(session.rows(ALL), rows);
    cluster.restart(Shutdown::Immediate);
    assert_eq!(cluster.connect().rows(ALL), rows);
}
