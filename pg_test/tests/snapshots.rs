//! What a snapshot sees does not hang on where rows are: in the delta, on their way into a segment, or in one.

use cass_server_tests::{Cluster, Session};

/// Rows (k, 10 * k) for k from 1 to 20, with an index on v; half of them in a segment.
fn create(session: &mut Session) {
    session.run(
        "CREATE TABLE t (k int PRIMARY KEY, v int) USING cass;
         CREATE INDEX t_v ON t (v);
         INSERT INTO t SELECT k, 10 * k FROM generate_series(1, 10) k",
    );
    session.flush("t");
    session.run("INSERT INTO t SELECT k, 10 * k FROM generate_series(11, 20) k");
}

const ALL: &str = "SELECT k, v FROM t ORDER BY k";
const BY_INDEX: &str = "SELECT k, v FROM t WHERE v BETWEEN 0 AND 10000 ORDER BY v, k";

fn cluster() -> Cluster {
    Cluster::with_settings(&[("cass.enforcement", "off")])
}

/// By the table's rows, and by its index on v.
fn both_ways(session: &mut Session) -> [Vec<String>; 2] {
    let all = session.rows(ALL);
    session.run("SET enable_seqscan = off; SET enable_bitmapscan = off");
    let by_index = session.rows(BY_INDEX);
    session.run("RESET enable_seqscan; RESET enable_bitmapscan");
    [all, by_index]
}

#[test]
fn rows_that_vacuum_publishes_survive_readers_that_meet_them_in_progress() {
    let cluster = cluster();
    let (mut session, mut blocker, mut reader) = (cluster.connect(), cluster.connect(), cluster.connect());
    create(&mut session);
    session.run("DELETE FROM t WHERE k = 3; UPDATE t SET v = 5 WHERE k = 4; SELECT pg_stat_force_next_flush()");
    let expected = session.rows(ALL);
    let published = session.segments_of("t");
    session.run("CREATE TABLE other (x int) USING heap");
    // Planned before the index is locked.
    reader.run(&format!("PREPARE all_rows AS {ALL}; EXECUTE all_rows"));
    // VACUUM has flushed when it comes to the index, and waits there.
    blocker.run("BEGIN; ALTER INDEX t_v SET TABLESPACE pg_default");
    let vacuum = cluster.connect().in_background("VACUUM t");
    vacuum.wait_until_blocked(&mut reader);
    // A later transaction ends, so that one that ignores VACUUM's takes it for ended.
    reader.run("INSERT INTO other VALUES (1)");
    assert_eq!(reader.rows("EXECUTE all_rows"), expected);
    assert_eq!(reader.segments_of("t"), published, "published before the end of VACUUM");
    reader.run("SELECT * FROM cass_catalog.segment");
    blocker.run("COMMIT");
    vacuum.finish();
    assert_eq!(reader.delta_rows_of("t"), 0);
    assert_eq!(
        both_ways(&mut reader),
        [expected.clone(), {
            let mut by_v = expected;
            by_v.sort_by_key(|row| row.split('|').nth(1).and_then(|v| v.parse::<i32>().ok()));
            by_v
        }]
    );
}

#[test]
fn a_snapshot_sees_the_same_rows_after_flushes_and_merges() {
    let cluster = cluster();
    let (mut writer, mut reader) = (cluster.connect(), cluster.connect());
    create(&mut writer);
    reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
    let before = both_ways(&mut reader);
    reader.run(&format!("DECLARE rest CURSOR FOR {ALL}"));
    assert_eq!(reader.rows("FETCH 1 FROM rest"), ["1|10"]);
    writer.run("VACUUM t");
    assert_eq!(both_ways(&mut reader), before, "after a flush of rows that it sees");
    for round in 1..=6 {
        writer.run(&format!(
            "UPDATE t SET v = v + 1000 WHERE k = {round};
             DELETE FROM t WHERE k = {round} + 10;
             INSERT INTO t VALUES ({round} + 100, {round}), ({round} + 6, {round} + 2000)"
        ));
        writer.run("VACUUM t");
        assert_eq!(both_ways(&mut reader), before, "after round {round}");
        assert_eq!(reader.rows("SELECT v FROM t WHERE k = 1"), ["10"]);
        assert_eq!(reader.rows(&format!("SELECT v FROM t WHERE k = {round} + 100")), [""; 0]);
    }
    assert_eq!(reader.rows("FETCH ALL FROM rest"), before[0][1..]);
    reader.run("COMMIT");
    let now = both_ways(&mut reader);
    assert_eq!(now[0].len(), 22, "20, less 6 deleted, and 6 new ones and 2 of the deleted inserted");
    writer.run("VACUUM t");
    assert_eq!(writer.delta_rows_of("t"), 0, "no older snapshot is left");
    assert_eq!(both_ways(&mut reader), now);
}

#[test]
fn a_transaction_sees_its_own_row_and_not_that_which_a_flush_moved_after_its_snapshot() {
    let cluster = cluster();
    let (mut writer, mut vacuum) = (cluster.connect(), cluster.connect());
    // Where an earlier flush has left room in the delta, the transaction's rows come to lie before the moved ones, else behind.
    for earlier_flush in [true, false] {
        if earlier_flush {
            create(&mut vacuum);
        } else {
            vacuum.run(
                "CREATE TABLE t (k int PRIMARY KEY, v int) USING cass;
                 CREATE INDEX t_v ON t (v);
                 INSERT INTO t SELECT k, 10 * k FROM generate_series(1, 20) k",
            );
        }
        writer.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM t");
        vacuum.flush("t");
        for statement in
            ["INSERT INTO t VALUES (15, 7), (1, 9)", "DELETE FROM t WHERE k = 16", "UPDATE t SET v = 8 WHERE k = 17"]
        {
            writer.run(statement);
        }
        assert_eq!(writer.rows("SELECT v FROM t WHERE k IN (1, 15, 16, 17) ORDER BY k"), ["9", "7", "8"]);
        let [all, by_index] = both_ways(&mut writer);
        assert_eq!(all.len(), 19);
        assert_eq!(by_index[..3], ["15|7", "17|8", "1|9"]);
        assert_eq!(by_index.len(), 19);
        writer.run("COMMIT");
        vacuum.flush("t");
        assert_eq!(both_ways(&mut writer), [all, by_index]);
        vacuum.run("DROP TABLE t");
    }
}

#[test]
fn a_row_id_names_no_other_row_after_300_updates() {
    let cluster = cluster();
    let mut session = cluster.connect();
    create(&mut session);
    let first = session.value("SELECT ctid FROM t WHERE k = 11");
    let in_segment = session.value("SELECT ctid FROM t WHERE k = 5");
    assert_eq!(session.rows(&format!("SELECT k FROM t WHERE ctid = '{in_segment}'")), ["5"]);
    let delta = session.value("SELECT 'pg_toast.cass_delta_' || 't'::regclass::oid");
    for round in 1..=300 {
        session.run(&format!("UPDATE t SET v = {round} + 5000 WHERE k = 11; INSERT INTO t VALUES (5, {round} + 6000)"));
        match round % 50 {
            0 => session.run(&format!("VACUUM {delta}")),
            25 if round > 100 => session.run("VACUUM t"),
            _ => {}
        }
    }
    for ctid in [first, in_segment] {
        assert_eq!(session.rows(&format!("SELECT k, v FROM t WHERE ctid = '{ctid}'")), [""; 0], "ctid {ctid}");
    }
    session.run("SET enable_seqscan = off; SET enable_bitmapscan = off");
    let plan = session.rows("EXPLAIN (COSTS off) SELECT k, v FROM t WHERE v > 5000").join(" ");
    assert!(plan.contains("Index Scan using t_v"), "{plan}");
    assert_eq!(session.rows("SELECT k, v FROM t WHERE v > 5000 ORDER BY v"), ["11|5300", "5|6300"]);
    assert_eq!(session.rows("SELECT k FROM t WHERE v IN (50, 110, 5001, 5299, 6299)"), [""; 0]);
    let ids = session.rows("SELECT ctid FROM t");
    for ctid in &ids {
        assert_eq!(session.rows(&format!("SELECT ctid FROM t WHERE ctid = '{ctid}'")), [ctid.as_str()]);
    }
}

#[test]
fn what_was_rolled_back_is_not_there() {
    let cluster = cluster();
    let mut session = cluster.connect();
    create(&mut session);
    let before = both_ways(&mut session);
    session.run(
        "BEGIN; DELETE FROM t WHERE k < 15; SAVEPOINT s; INSERT INTO t VALUES (1, 1), (2, 2); ROLLBACK TO s;
         TRUNCATE t; INSERT INTO t VALUES (3, 3); ROLLBACK",
    );
    assert_eq!(both_ways(&mut session), before);
    session.run("VACUUM t");
    assert_eq!(both_ways(&mut session), before);
    session.run("BEGIN; TRUNCATE t; INSERT INTO t VALUES (3, 3); SAVEPOINT s; TRUNCATE t; ROLLBACK TO s; COMMIT");
    assert_eq!(session.rows(ALL), ["3|3"]);
    session.run("VACUUM t");
    assert_eq!(both_ways(&mut session), [["3|3"], ["3|3"]]);
}

#[test]
fn an_older_snapshot_sees_the_same_rows_after_vacuum_full() {
    let cluster = cluster();
    let (mut writer, mut reader) = (cluster.connect(), cluster.connect());
    create(&mut writer);
    let large = |text: &str, n: usize| format!("repeat('{text}', {n})");
    writer.run(&format!(
        "ALTER TABLE t ADD w text; ALTER TABLE t ALTER w SET STORAGE EXTERNAL; UPDATE t SET w = {}",
        large("old", 9000)
    ));
    writer.flush("t");
    const VALUES: &str = "SELECT sum(length(w)), min(left(w, 3)), max(left(w, 3)) FROM t";
    for rewrite in [
        "VACUUM FULL t",
        "VACUUM t; VACUUM FULL t",
        "CLUSTER t USING t_v",
        "VACUUM FULL t; VACUUM t; VACUUM FULL t; VACUUM t",
    ] {
        let (before, values) = (both_ways(&mut writer), writer.rows(VALUES));
        reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM pg_class LIMIT 1");
        writer.run(&format!(
            "UPDATE t SET v = v + 1, w = {} WHERE k % 3 = 0; DELETE FROM t WHERE k % 7 = 0",
            large("new", 8000)
        ));
        writer.run(&format!("INSERT INTO t SELECT k, k, {} FROM generate_series(7, 35, 7) k", large("add", 7000)));
        let (after, new_values) = (both_ways(&mut writer), writer.rows(VALUES));
        for statement in rewrite.split("; ") {
            writer.run(statement);
            assert_eq!(both_ways(&mut writer), after, "{rewrite}, at {statement}");
            assert_eq!(writer.rows(VALUES), new_values, "{rewrite}, at {statement}");
        }
        assert_eq!(both_ways(&mut reader), before, "{rewrite}");
        assert_eq!(reader.rows(VALUES), values, "{rewrite}");
        reader.run("COMMIT");
        assert_eq!(both_ways(&mut reader), after, "{rewrite}, ended");
        writer.run("VACUUM FULL t");
        assert_eq!(
            writer.value("SELECT count(*) FROM cass_segments('t')"),
            "1",
            "{rewrite}, nobody reads what is older"
        );
        assert_eq!((both_ways(&mut writer), writer.rows(VALUES)), (after, new_values), "{rewrite}, compacted");
    }
}

#[test]
fn changes_of_a_transaction_survive_its_cluster_and_its_rollback() {
    let cluster = cluster();
    let mut session = cluster.connect();
    create(&mut session);
    let before = both_ways(&mut session);
    session.run("BEGIN; UPDATE t SET v = v + 1 WHERE k < 5; SAVEPOINT s; CLUSTER t USING t_v");
    let inside = both_ways(&mut session);
    assert_eq!(inside[0][..5], ["1|11", "2|21", "3|31", "4|41", "5|50"]);
    session.run("INSERT INTO t VALUES (30, 0); ROLLBACK TO s");
    assert_eq!(both_ways(&mut session), inside);
    session.run("ROLLBACK");
    assert_eq!(both_ways(&mut session), before);
    session.run("BEGIN; UPDATE t SET v = v + 1 WHERE k < 5; CLUSTER t USING t_v; INSERT INTO t VALUES (30, 0); COMMIT");
    assert_eq!(session.rows("SELECT v FROM t WHERE k IN (4, 5, 30) ORDER BY k"), ["41", "50", "0"]);
    session.flush("t");
    assert_eq!(session.rows("SELECT v FROM t WHERE k IN (4, 5, 30) ORDER BY k"), ["41", "50", "0"]);
}

#[test]
fn an_older_snapshot_sees_a_rewritten_table_as_of_the_rewrite() {
    let cluster = cluster();
    let (mut writer, mut reader) = (cluster.connect(), cluster.connect());
    create(&mut writer);
    let rows = writer.rows(ALL);
    for rewrite in
        ["ALTER TABLE t ADD w float DEFAULT random()", "VACUUM t; ALTER TABLE t ADD x float DEFAULT random()"]
    {
        reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM pg_class LIMIT 1");
        for statement in rewrite.split("; ") {
            writer.run(statement);
        }
        assert_eq!(both_ways(&mut reader), [rows.clone(), rows.clone()], "{rewrite}");
        writer.run("VACUUM t");
        assert_eq!(both_ways(&mut reader), [rows.clone(), rows.clone()], "{rewrite}, VACUUM");
        reader.run("COMMIT");
        assert_eq!(both_ways(&mut reader), [rows.clone(), rows.clone()], "{rewrite}, ended");
    }
}

#[test]
fn a_rewrite_that_is_rolled_back_leaves_nothing_in_the_list_after_vacuum() {
    let cluster = cluster();
    let mut session = cluster.connect();
    create(&mut session);
    let rows = session.rows(ALL);
    session.run("VACUUM t");
    let lives = "SELECT count(DISTINCT storage_id) FROM cass_catalog.segment";
    session.run("BEGIN; ALTER TABLE t ADD w float DEFAULT random(); ROLLBACK");
    assert_eq!(session.value(lives), "2", "the row outlives the rollback");
    assert_eq!(session.rows(ALL), rows);
    session.run("VACUUM t");
    assert_eq!(session.value(lives), "1");
    assert_eq!(session.rows(ALL), rows);
}

#[test]
fn vacuum_spares_the_rewrite_of_a_table_that_it_does_not_see() {
    let cluster = cluster();
    let (mut writer, mut other) = (cluster.connect(), cluster.connect());
    other.run("CREATE TABLE other (k int PRIMARY KEY) USING cass; INSERT INTO other VALUES (1)");
    writer.run("BEGIN");
    writer.run("CREATE TABLE t (k int PRIMARY KEY, v int) USING cass");
    writer.run("INSERT INTO t SELECT k, 10 * k FROM generate_series(1, 20) k");
    writer.run("ALTER TABLE t ADD w float DEFAULT random()");
    other.run("VACUUM other");
    writer.run("COMMIT");
    assert_eq!(other.value("SELECT count(*) FROM t"), "20");
}

#[test]
fn an_older_snapshot_finds_its_rows_after_reindex() {
    let cluster = cluster();
    let (mut writer, mut reader) = (cluster.connect(), cluster.connect());
    create(&mut writer);
    for reindex in ["REINDEX INDEX t_v", "REINDEX TABLE t", "REINDEX INDEX CONCURRENTLY t_v"] {
        if reindex.contains("CONCURRENTLY") {
            // It would wait for the older snapshot.
            writer.run(reindex);
        }
        reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM pg_class LIMIT 1");
        // By the writer: what the reader has read, it keeps locked, so that REINDEX would wait for it.
        let before = both_ways(&mut writer);
        writer.run("UPDATE t SET v = v + 1; DELETE FROM t WHERE k = 7; INSERT INTO t VALUES (7, 70)");
        if !reindex.contains("CONCURRENTLY") {
            writer.run(reindex);
        }
        assert_eq!(both_ways(&mut reader), before, "{reindex}");
        reader.run("COMMIT");
        writer.run("SET enable_seqscan = off");
        let plan = writer.rows(&format!("EXPLAIN {BY_INDEX}")).join(" ");
        assert!(plan.contains("t_v"), "{plan}");
        writer.run("RESET enable_seqscan");
    }
}
