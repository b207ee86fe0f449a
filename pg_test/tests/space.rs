//! VACUUM gives back the space of what it has moved out of the delta, at once, and keeps what a snapshot may still need.

use cass_server_tests::{Cluster, Session, Shutdown};
use std::time::Duration;

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
