//! Bitmap scans over secondary indexes give the rows that a heap gives, in the delta and in segments.

use cass_server_tests::{Cluster, Session};

/// A cluster whose executor would ask for pages ahead, and a table of cass and one of heap with the same rows and indexes.
fn twins() -> (Cluster, Session) {
    let cluster = Cluster::with_settings(&[
        ("effective_io_concurrency", "100"),
        ("cass.enforcement", "off"),
        ("allow_in_place_tablespaces", "on"),
    ]);
    let mut session = cluster.connect();
    for (table, access_method) in [("c", "cass"), ("h", "heap")] {
        session.run(&format!(
            "CREATE TABLE {table} (id int PRIMARY KEY, a int, b int, words text[]) USING {access_method};
             INSERT INTO {table} SELECT i, i % 50, i % 70, ARRAY['w' || i % 5, 'v' || i % 7] FROM generate_series(1, 7000) i;
             CREATE INDEX ON {table} (a);
             CREATE INDEX ON {table} (b);
             CREATE INDEX ON {table} USING gin (words)"
        ));
    }
    session.run("ANALYZE c, h");
    session.run("SET enable_seqscan = off; SET enable_indexscan = off; SET cpu_tuple_cost = 10");
    (cluster, session)
}

/// Changes both tables in the same way.
fn change(session: &mut Session, sql: &str) {
    for table in ["c", "h"] {
        session.run(&sql.replace("TABLE", table));
    }
}

/// Asserts that the queries use bitmaps and give the same for both tables.
fn assert_equal(session: &mut Session, when: &str) {
    for (condition, node) in [
        ("a = 7", "Bitmap Heap Scan"),
        ("a = 7 OR b = 8", "BitmapOr"),
        ("a < 10 AND b < 5", "BitmapAnd"),
        ("words @> '{w1,v3}'", "Bitmap Heap Scan"),
        ("a IN (1, 2, 51) AND id > 3000", "Bitmap Heap Scan"),
    ] {
        let query = |table: &str| format!("SELECT id, a, b, words FROM {table} WHERE {condition} ORDER BY id");
        let plan = session.rows(&format!("EXPLAIN {}", query("c"))).join("\n");
        assert!(plan.contains(node) && plan.contains("Bitmap Heap Scan on c"), "{condition}: {plan}");
        let expected = session.rows(&query("h"));
        assert!(!expected.is_empty(), "{condition}");
        assert_eq!(session.rows(&query("c")), expected, "{condition}, {when}");
    }
}

#[test]
fn bitmap_scans_give_the_rows_of_a_heap() {
    let (_cluster, mut session) = twins();
    assert_equal(&mut session, "rows in the delta");
    session.flush("c");
    assert_equal(&mut session, "rows in a segment");
    change(&mut session, "UPDATE TABLE SET a = (a + 1) % 50 WHERE id % 3 = 0");
    change(&mut session, "DELETE FROM TABLE WHERE id % 11 = 0");
    change(
        &mut session,
        "INSERT INTO TABLE SELECT i, i % 50, i % 70, ARRAY['w1', 'v3'] FROM generate_series(8000, 8500) i",
    );
    assert_equal(&mut session, "changed rows in the delta over a segment");
    session.flush("c");
    assert_equal(&mut session, "after VACUUM");
}

#[test]
fn a_bitmap_that_has_lost_its_offsets_is_checked_again() {
    // More blocks of ids than fit into the least memory that a bitmap may have.
    let cluster = Cluster::with_settings(&[("cass.enforcement", "off")]);
    let mut session = cluster.connect();
    for (table, access_method) in [("c", "cass"), ("h", "heap")] {
        session.run(&format!(
            "CREATE TABLE {table} (id int PRIMARY KEY, a int, b int) USING {access_method};
             INSERT INTO {table} SELECT i, i % 50, i % 70 FROM generate_series(1, 320000) i"
        ));
        session.run(&format!("VACUUM {table}"));
        session.run(&format!("CREATE INDEX ON {table} (a)"));
    }
    session.run("ANALYZE c, h; SET enable_seqscan = off; SET enable_indexscan = off");
    change(&mut session, "UPDATE TABLE SET a = 1000 WHERE a = 3 AND id % 2 = 0");
    session.run("SET work_mem = '64kB'");
    let query = "SELECT count(*), sum(id), max(b) FROM TABLE WHERE a = 3";
    let plan = session.rows(&format!("EXPLAIN (ANALYZE, COSTS OFF) {}", query.replace("TABLE", "c"))).join("\n");
    assert!(plan.contains("lossy="), "{plan}");
    assert_eq!(session.rows(&query.replace("TABLE", "c")), session.rows(&query.replace("TABLE", "h")));
}

#[test]
fn a_bitmap_scan_reads_with_its_statements_snapshot() {
    let (cluster, mut session) = twins();
    session.flush("c");
    let count = "SELECT count(*), sum(b) FROM c WHERE a = 7 OR b = 8";
    session.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
    let before = session.rows(count);
    let mut other = cluster.connect();
    other.run("UPDATE c SET a = 7; DELETE FROM c WHERE id % 2 = 0");
    other.run("VACUUM c");
    assert_eq!(session.rows(count), before);
    session.run("COMMIT");
    assert_ne!(session.rows(count), before);
}

#[test]
fn a_repeated_bitmap_scan_starts_over() {
    let (_cluster, mut session) = twins();
    session.flush("c");
    session.run(
        "SET enable_material = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off",
    );
    let query = |table: &str| {
        format!("SELECT v.x, count(*), min(t.id) FROM (VALUES (1), (2), (1), (99)) v(x), LATERAL (SELECT id FROM {table} WHERE a = v.x OR b = v.x) t GROUP BY v.x ORDER BY 1")
    };
    let plan = session.rows(&format!("EXPLAIN {}", query("c"))).join("\n");
    assert!(plan.contains("BitmapOr"), "{plan}");
    assert_eq!(session.rows(&query("c")), session.rows(&query("h")));
}

/// Row ids of this table lie behind its last page when they are taken for TIDs of pages.
fn far_ids(mut session: Session) {
    // A rolled back copy of a table's files leaves a gap in its row ids.
    session.run("BEGIN");
    session.run("ALTER TABLE c SET TABLESPACE other");
    session.run("ROLLBACK");
}

#[test]
fn row_ids_are_never_asked_for_as_pages() {
    let (cluster, mut session) = twins();
    session.run("CREATE TABLESPACE other LOCATION ''");
    far_ids(cluster.connect());
    cluster.connect().run("UPDATE c SET b = b");
    let first = session.value("SELECT min(ctid) FROM c");
    let block = first.trim_start_matches('(').split(',').next().expect("a block");
    assert!(block.parse::<u32>().expect("a number") > 131_072, "{first}");
    assert_equal(&mut session, "rows of high ids");
    // A subquery begins anew when an UPDATE meets a row that has changed meanwhile.
    let statement =
        "UPDATE TABLE SET a = (SELECT count(*) FROM TABLE s WHERE s.a = t.a OR s.b = t.b) FROM (VALUES (0)) x";
    let statement = statement.replace("UPDATE TABLE", "UPDATE TABLE t") + " WHERE id = 77";
    let mut other = cluster.connect();
    other.run("SET enable_seqscan = off; SET enable_indexscan = off");
    for table in ["c", "h"] {
        session.run(&format!("BEGIN; UPDATE {table} SET a = 12, b = 13 WHERE id = 77"));
        let waiting = other.in_background(&statement.replace("TABLE", table));
        waiting.wait_until_blocked(&mut cluster.connect());
        session.run("COMMIT");
        other = waiting.finish().0;
    }
    assert_eq!(session.rows("SELECT a, b FROM c WHERE id = 77"), session.rows("SELECT a, b FROM h WHERE id = 77"));
}
