//! One VACUUM command gives the space back that rows took in the delta, without waiting for anybody and without taking a row
//! from anybody.

use cass_server_tests::{Cluster, Session, Shutdown};
use std::time::{Duration, Instant};

/// An empty btree is its metapage.
const EMPTY: &str = "0|8192|8192";

fn cluster() -> Cluster {
    Cluster::with_settings(&[("cass.enforcement", "off")])
}

fn create(session: &mut Session) {
    session.run("CREATE TABLE t (p int, c int, v text, PRIMARY KEY (p, c)) USING cass");
}

fn write(session: &mut Session, partition: u32) {
    session.run(&format!("INSERT INTO t SELECT {partition}, c, md5(c::text) FROM generate_series(1, 2000) c"));
}

/// Bytes of a table's delta, and of its btrees.
fn delta_of(session: &mut Session, table: &str) -> String {
    let delta = session.value(&format!("SELECT 'pg_toast.cass_delta_' || '{table}'::regclass::oid"));
    session.value(&format!(
        "SELECT pg_relation_size('{delta}'), pg_relation_size('{delta}_key'), pg_relation_size('{delta}_row')"
    ))
}

fn delta(session: &mut Session) -> String {
    delta_of(session, "t")
}

/// The metapage's flag that the delta may hold rows, which pg_upgrade does not carry.
fn dirty(session: &mut Session) -> String {
    session.value("SELECT get_byte(get_raw_page('t', 0), 34)")
}

const SUMMARY: &str = "SELECT count(*), count(DISTINCT p), md5(string_agg(v, ',' ORDER BY p, c)) FROM t";

#[test]
fn one_vacuum_leaves_nothing_of_the_delta() {
    let cluster = cluster();
    let mut session = cluster.connect();
    create(&mut session);
    session.run("CREATE EXTENSION pageinspect");
    for round in 1..=3 {
        write(&mut session, round);
        let rows = session.value(SUMMARY);
        assert_ne!(delta(&mut session), EMPTY);
        session.run("VACUUM t");
        assert_eq!(delta(&mut session), EMPTY, "round {round}");
        assert_eq!(session.value(SUMMARY), rows, "round {round}");
        let (total, main) = ("pg_total_relation_size('t')", "pg_relation_size('t')");
        assert_eq!(session.value(&format!("SELECT {total} < {main} + 65536 FROM t LIMIT 1")), "t", "round {round}");
    }
    assert_eq!(dirty(&mut session), "0");
    write(&mut session, 4);
    assert_eq!(dirty(&mut session), "1");
}

#[test]
fn vacuum_of_several_tables_empties_the_delta_of_each() {
    let cluster = cluster();
    let mut session = cluster.connect();
    let tables = ["a", "b", "h"];
    session.run(
        "CREATE TABLE a (k int PRIMARY KEY, v text) USING cass; CREATE TABLE b (k int PRIMARY KEY, v text) USING cass;
         CREATE TABLE h (k int PRIMARY KEY, v text) USING heap",
    );
    for vacuum in ["VACUUM a, h, b", "VACUUM", "VACUUM (ANALYZE, PARALLEL 0) b, a"] {
        session.run("TRUNCATE h");
        for table in tables {
            session.run(&format!("INSERT INTO {table} SELECT k, 'x' FROM generate_series(1, 1000) k"));
        }
        session.run(vacuum);
        assert_eq!([delta_of(&mut session, "a"), delta_of(&mut session, "b")], [EMPTY, EMPTY], "{vacuum}");
        assert_eq!(session.value("SELECT (SELECT count(*) FROM a) + (SELECT count(*) FROM b)"), "2000");
    }
}

#[test]
fn a_rewritten_or_truncated_table_leaves_nothing_in_the_delta_either() {
    let cluster = cluster();
    let mut session = cluster.connect();
    create(&mut session);
    for (statement, rows) in [("VACUUM FULL t", 4000), ("TRUNCATE t; VACUUM t", 0), ("CLUSTER; VACUUM t", 4000)] {
        write(&mut session, 1);
        write(&mut session, 2);
        statement.split("; ").for_each(|statement| session.run(statement));
        assert_eq!(delta(&mut session), EMPTY, "{statement}");
        assert_eq!(session.count("SELECT count(*) FROM t"), rows, "{statement}");
    }
}

#[test]
fn vacuum_keeps_to_its_options_and_privileges() {
    let cluster = cluster();
    let mut session = cluster.connect();
    create(&mut session);
    session.run(
        "CREATE ROLE owner LOGIN; CREATE ROLE other LOGIN; GRANT SELECT ON t TO other; ALTER TABLE t OWNER TO owner",
    );
    write(&mut session, 1);
    for refused in ["ANALYZE t", "SET ROLE other; VACUUM t", "VACUUM (TRUNCATE false) t"] {
        refused.split("; ").for_each(|statement| session.run(statement));
        session.run("RESET ROLE");
        assert_ne!(delta(&mut session), EMPTY, "{refused}");
    }
    write(&mut session, 2);
    session.run("VACUUM (INDEX_CLEANUP off) t");
    assert_ne!(delta(&mut session), EMPTY);
    assert_eq!(session.error("BEGIN; VACUUM t"), "25001 VACUUM cannot run inside a transaction block");
    session.run("ROLLBACK");
    session.run("SET ROLE owner");
    session.run("VACUUM t");
    session.run("RESET ROLE");
    assert_eq!(delta(&mut session), EMPTY);
    assert_eq!(session.count("SELECT count(*) FROM t"), 4000);
}

#[test]
fn an_older_snapshot_keeps_its_rows_and_with_them_the_delta() {
    let cluster = cluster();
    let (mut session, mut reader) = (cluster.connect(), cluster.connect());
    create(&mut session);
    write(&mut session, 1);
    reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM pg_class LIMIT 1");
    let before = session.value(SUMMARY);
    session.run("UPDATE t SET v = v || '!'");
    write(&mut session, 2);
    let after = session.value(SUMMARY);
    for _ in 0..2 {
        session.run("VACUUM t");
        assert_ne!(delta(&mut session), EMPTY);
        assert_eq!(session.value(SUMMARY), after);
    }
    assert_eq!(reader.value(SUMMARY), before);
    session.run("VACUUM t");
    assert_eq!(reader.value(SUMMARY), before);
    reader.run("COMMIT");
    session.run("VACUUM t");
    assert_eq!(delta(&mut session), EMPTY);
    assert_eq!([session.value(SUMMARY), reader.value(SUMMARY)], [after.clone(), after]);
}

#[test]
fn nobody_waits_for_a_transaction_that_uses_the_delta_and_nothing_is_lost() {
    let cluster = cluster();
    let (mut session, mut other) = (cluster.connect(), cluster.connect());
    create(&mut session);
    for use_of_delta in
        ["INSERT INTO t VALUES (9, 9, 'new')", "SELECT count(*) FROM t", "UPDATE t SET v = 'new' WHERE p = 1 AND c = 1"]
    {
        write(&mut session, 1);
        other.run("BEGIN");
        other.run(use_of_delta);
        let start = Instant::now();
        session.run("VACUUM t");
        assert!(start.elapsed() < Duration::from_secs(3), "{use_of_delta}: VACUUM took {:?}", start.elapsed());
        assert_ne!(delta(&mut session), EMPTY, "{use_of_delta}");
        other.run("INSERT INTO t VALUES (9, 10, 'newer'); COMMIT");
        let rows = other.value(SUMMARY);
        session.run("VACUUM t");
        assert_eq!(delta(&mut session), EMPTY, "{use_of_delta}");
        assert_eq!(session.value(SUMMARY), rows, "{use_of_delta}");
    }
    assert_eq!(session.rows("SELECT c, v FROM t WHERE p = 9 OR v = 'new' ORDER BY c"), ["1|new", "9|new", "10|newer"]);
}

#[test]
fn an_older_snapshot_of_a_standby_keeps_its_rows() {
    let primary = Cluster::with_settings(&[("cass.enforcement", "off"), ("max_standby_streaming_delay", "-1")]);
    let mut session = primary.connect();
    create(&mut session);
    write(&mut session, 1);
    let standby = primary.standby();
    let mut reader = standby.connect();
    standby.catch_up_with(&primary);
    reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM pg_class LIMIT 1");
    let before = session.value(SUMMARY);
    session.run("UPDATE t SET v = v || '!'");
    session.run("VACUUM t");
    assert_eq!(delta(&mut session), EMPTY);
    let after = session.value(SUMMARY);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(reader.value(SUMMARY), before);
    reader.run("COMMIT");
    standby.catch_up_with(&primary);
    assert_eq!(reader.value(SUMMARY), after);
    assert_eq!(delta(&mut reader), EMPTY);
    write(&mut session, 2);
    standby.catch_up_with(&primary);
    assert_eq!(reader.value(SUMMARY), session.value(SUMMARY));
}

#[test]
fn a_kill_while_the_btrees_get_new_files_loses_nothing() {
    let mut cluster = cluster();
    let (mut session, mut locker) = (cluster.connect(), cluster.connect());
    create(&mut session);
    write(&mut session, 1);
    let rows = session.value(SUMMARY);
    // The last thing that making a btree anew does is to look into pg_index.
    locker.run("BEGIN; LOCK TABLE pg_index IN SHARE MODE");
    let vacuum = cluster.connect().in_background("VACUUM t");
    vacuum.wait_until_blocked(&mut session);
    let heap = session.value("SELECT pg_relation_size(('pg_toast.cass_delta_' || 't'::regclass::oid)::regclass)");
    assert_eq!(heap, "0", "the second step has come to the btrees");
    cluster.kill();
    cluster.start();
    let mut session = cluster.connect();
    assert_eq!(session.value(SUMMARY), rows);
    write(&mut session, 2);
    let rows = session.value(SUMMARY);
    session.run("VACUUM t");
    assert_eq!(delta(&mut session), EMPTY);
    assert_eq!(session.value(SUMMARY), rows);
    cluster.restart(Shutdown::Immediate);
    assert_eq!(cluster.connect().value(SUMMARY), rows);
}
