//! What VACUUM gives back: blocks, chunks of large values, index entries, list rows of tables that are gone.

use cass_server_tests::{Cluster, Installation, Session};

fn cluster() -> Cluster {
    Cluster::with_settings(&[("cass.enforcement", "off")])
}

/// Flushes four small segments, so that the policy merges them, and vacuums once more.
fn merge(session: &mut Session) {
    for round in 0..4 {
        session.run(&format!("INSERT INTO t (a, b) VALUES (1000, {round})"));
        session.run("VACUUM t");
    }
    session.run("VACUUM t");
}

fn blocks(session: &mut Session) -> u64 {
    session.count("SELECT pg_relation_size('t') / 8192")
}

#[test]
fn the_file_stops_growing_while_rows_are_overwritten() {
    let cluster = cluster();
    let mut session = cluster.connect();
    session.run("CREATE TABLE t (a int, b int, v text, PRIMARY KEY (a, b)) USING cass");
    let round = |session: &mut Session, number: u32| {
        session.run(&format!(
            "INSERT INTO t SELECT a, b, md5('{number}' || b) FROM generate_series(1, 4) a, generate_series(1, 500) b"
        ));
        session.run("VACUUM t");
    };
    (1..=20).for_each(|number| round(&mut session, number));
    let before = blocks(&mut session);
    (21..=60).for_each(|number| round(&mut session, number));
    assert!(blocks(&mut session) <= before, "{} blocks have become {}", before, blocks(&mut session));
    assert_eq!(session.value("SELECT count(*), count(DISTINCT v) FROM t"), "2000|500");
}

#[test]
fn runs_are_kept_while_a_snapshot_may_read_them() {
    let cluster = cluster();
    let (mut session, mut reader, mut locker) = (cluster.connect(), cluster.connect(), cluster.connect());
    session.run("CREATE TABLE t (a int, b int, v text, PRIMARY KEY (a, b)) USING cass");
    for a in 1..=4 {
        session.run(&format!("INSERT INTO t SELECT {a}, b, md5({a} || '.' || b) FROM generate_series(1, 500) b"));
        if a < 4 {
            session.flush("t");
        }
    }
    // A locked row stays in the delta, so that there is something to flush later that the reader sees.
    locker.run("BEGIN; SELECT FROM t WHERE a = 4 AND b = 1 FOR UPDATE");
    let all = "SELECT count(*), md5(string_agg(v, ',' ORDER BY a, b)) FROM t";
    reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
    let before = reader.value(all);
    let old_end = session.count("SELECT max(first_block + page_count) FROM cass_segments('t')");
    session.run("VACUUM t");
    assert_eq!(session.segments_of("t"), 1, "the merge has taken place");
    assert_eq!(reader.value(all), before);
    locker.run("COMMIT");
    session.run("VACUUM t");
    assert_eq!(session.segments_of("t"), 2, "the row that was locked has been flushed");
    let first_block = "SELECT first_block FROM cass_segments('t') ORDER BY run_id DESC LIMIT 1";
    assert!(session.count(first_block) >= old_end, "a run that the reader sees is used again");
    assert_eq!(reader.value(all), before);
    reader.run("COMMIT");
    session.run("INSERT INTO t VALUES (5, 1, '')");
    session.flush("t");
    assert_eq!(session.count(first_block), 1, "the old runs' blocks are used again");
}

#[test]
fn chunks_of_large_values_go_with_the_last_copy_of_their_row() {
    let cluster = cluster();
    let mut session = cluster.connect();
    session.run(
        "CREATE TABLE t (a int, b int, v text, PRIMARY KEY (a, b)) USING cass;
         ALTER TABLE t ALTER v SET STORAGE EXTERNAL;
         INSERT INTO t SELECT a, b, repeat('v', 5000) FROM generate_series(1, 5) a, generate_series(1, 20) b",
    );
    let toast = session.value("SELECT reltoastrelid::regclass FROM pg_class WHERE relname = 't'");
    let values = format!("SELECT count(DISTINCT chunk_id) FROM {toast}");
    assert_eq!(session.count(&values), 100);
    session.flush("t");
    session.run("UPDATE t SET b = b WHERE a = 1; DELETE FROM t WHERE a = 2; INSERT INTO t SELECT 3, b, 'small' FROM generate_series(1, 20) b");
    merge(&mut session);
    assert_eq!(session.segments_of("t"), 2, "the merge has taken place");
    assert_eq!(session.count(&values), 60);
    assert_eq!(session.value("SELECT count(*), sum(length(v)) FROM t"), "84|300100");
}

#[test]
fn index_entries_go_with_their_rows() {
    if !Installation::default().has_library("pageinspect") {
        return;
    }
    let cluster = cluster();
    let mut session = cluster.connect();
    session.run(
        "CREATE TABLE t (a int, b int, v int, PRIMARY KEY (a, b)) USING cass; CREATE INDEX t_v ON t (v);
         CREATE EXTENSION pageinspect;
         INSERT INTO t SELECT a, b, 100 * a + b FROM generate_series(1, 5) a, generate_series(1, 20) b",
    );
    session.flush("t");
    session.run("UPDATE t SET v = v + 1000 WHERE a = 1; DELETE FROM t WHERE a = 2; SELECT pg_stat_force_next_flush()");
    merge(&mut session);
    let entries = "SELECT count(*) FROM bt_page_items('t_v', 1)";
    assert_eq!(session.count(entries), 84, "80 rows, and four with NULL");
    session.run("SET enable_seqscan = off");
    assert_eq!(session.value("SELECT count(*), min(v), max(v) FROM t WHERE v > 0"), "80|301|1120");
}

#[test]
fn list_rows_of_lives_and_tables_that_are_gone_are_swept() {
    let cluster = cluster();
    let mut session = cluster.connect();
    session.run(
        "CREATE TABLE gone (a int PRIMARY KEY) USING cass; INSERT INTO gone SELECT generate_series(1, 10);
         CREATE TABLE t (a int, b int, PRIMARY KEY (a, b)) USING cass; INSERT INTO t SELECT 1, generate_series(1, 10)",
    );
    session.flush("gone");
    session.flush("t");
    session.run("TRUNCATE t; DROP TABLE gone; INSERT INTO t SELECT 2, generate_series(1, 10)");
    session.flush("t");
    assert_eq!(session.rows("SELECT relation::regclass, row_count FROM cass_catalog.segment"), ["t|10"]);
}

#[test]
fn segments_show_their_rows_to_those_who_may_read_the_table() {
    let cluster = cluster();
    let mut session = cluster.connect();
    session.run(
        "CREATE ROLE somebody; CREATE TABLE t (a text, b int, PRIMARY KEY (a, b)) USING cass;
         INSERT INTO t SELECT 'x', generate_series(1, 4)",
    );
    session.flush("t");
    session.run("DELETE FROM t WHERE b = 1");
    session.run("VACUUM t");
    assert_eq!(
        session
            .rows("SELECT run_id, rows, tombstones, bulk, min_token = cass_token('x'::text) FROM cass_segments('t')"),
        ["2|1|1|f|t", "1|4|0|f|t"]
    );
    assert_eq!(
        session.rows("SELECT page, position, key, tombstone, kind FROM cass_segment_rows('t', 1) LIMIT 2"),
        ["0|0|a=x, b=1|f|row", "0|1|a=x, b=2|f|row"]
    );
    assert_eq!(
        session.rows("SELECT key, tombstone, kind, write_time <= now() FROM cass_segment_rows('t', 2)"),
        ["a=x, b=1|t|row tombstone|t"]
    );
    assert_eq!(session.error("SELECT * FROM cass_segment_rows('t', 3)"), "22023 table \"t\" has no segment 3");
    session.run("SET ROLE somebody");
    assert_eq!(session.error("SELECT * FROM cass_segments('t')"), "42501 permission denied for table t");
    assert_eq!(session.error("SELECT min_key FROM cass_catalog.segment"), "42501 permission denied for table segment");
    assert_eq!(session.value("SELECT sum(row_count) FROM cass_catalog.segment"), "5");
    assert_eq!(session.error("DELETE FROM cass_catalog.segment"), "42501 permission denied for table segment");
}

#[test]
fn the_list_ignores_what_logical_replication_applies() {
    let cluster = cluster();
    let mut session = cluster.connect();
    session.run("CREATE TABLE t (a int PRIMARY KEY) USING cass; INSERT INTO t VALUES (1)");
    session.flush("t");
    let copy = "INSERT INTO cass_catalog.segment SELECT relation, storage_id, run_id + 1, first_block, page_count, published,
                bulk, sequence_low, sequence_high, row_count, tombstone_count, min_key, max_key FROM cass_catalog.segment";
    session.run(&format!("SET session_replication_role = replica; {copy}; UPDATE cass_catalog.segment SET run_id = 9; DELETE FROM cass_catalog.segment"));
    assert_eq!(session.rows("SELECT run_id FROM cass_catalog.segment"), ["1"]);
}

#[test]
fn deleted_rows_go_with_their_tombstones_once_they_are_a_quarter() {
    let cluster = cluster();
    let mut session = cluster.connect();
    session.run(
        "CREATE TABLE t (a int, b int, v text, PRIMARY KEY (a, b)) USING cass;
         INSERT INTO t SELECT a, b, md5(a || '.' || b) FROM generate_series(1, 10) a, generate_series(1, 100) b",
    );
    session.flush("t");
    session.run("DELETE FROM t WHERE a = 1");
    session.flush("t");
    let contents = "SELECT sum(rows), sum(tombstones) FROM cass_segments('t')";
    assert_eq!(session.value(contents), "1100|100", "a tenth is not worth it");
    session.run("DELETE FROM t WHERE a < 6");
    session.flush("t");
    assert_eq!(session.value(contents), "500|0");
    assert_eq!(session.value("SELECT count(*), min(a) FROM t"), "500|6");
    session.run("DELETE FROM t");
    session.flush("t");
    assert_eq!(session.segments_of("t"), 0, "nothing is left");
    assert_eq!(session.value("SELECT count(*) FROM t"), "0");
}

#[test]
fn no_relation_of_a_rewritten_table_holds_back_the_freezing_of_transaction_ids() {
    let cluster = cluster();
    let mut session = cluster.connect();
    session.run(
        "CREATE TABLE t (a int, b int, v text, PRIMARY KEY (a, b)) USING cass;
         INSERT INTO t VALUES (1, 1, repeat(md5('x'), 1000))",
    );
    session.run("VACUUM FULL t");
    let frozen = "SELECT bool_and(relfrozenxid IN (0::text::xid, txid_current()::text::xid) OR age(relfrozenxid) < 20)
                  FROM pg_class t WHERE oid = 't'::regclass OR oid = (SELECT reltoastrelid FROM pg_class WHERE relname = 't')";
    let toast = "SELECT relfrozenxid <> 0::text::xid FROM pg_class WHERE oid = (SELECT reltoastrelid FROM pg_class WHERE relname = 't')";
    assert_eq!((session.value(frozen), session.value(toast)), ("t".into(), "t".into()));
    session.run("ALTER TABLE t ALTER v TYPE varchar(100000) USING v || 'x'");
    for _ in 0..50 {
        session.run("SELECT txid_current()");
    }
    session.run("VACUUM FREEZE t");
    assert_eq!((session.value(frozen), session.value(toast)), ("t".into(), "t".into()));
    assert_eq!(session.value("SELECT length(v) FROM t"), "32001");
}
