//! What ALTER TABLE and CREATE INDEX do to tables with rows, in a segment and in the delta.

use cass_server_tests::{Cluster, Session};

/// Three rows of table t; flushed into a segment or not.
fn create(session: &mut Session, in_segment: bool) {
    session.run(
        "DROP TABLE IF EXISTS t;
         CREATE TABLE t (k int PRIMARY KEY, a text, b text) USING cass;
         INSERT INTO t VALUES (1, 'one', 'uno'), (2, 'two', 'due'), (3, 'three', NULL)",
    );
    if in_segment {
        session.flush("t");
    }
}

fn cluster() -> Cluster {
    Cluster::with_settings(&[("cass.enforcement", "off"), ("allow_in_place_tablespaces", "on")])
}

#[test]
fn a_rewrite_can_compute_from_a_column_that_the_same_statement_drops() {
    let cluster = cluster();
    let mut session = cluster.connect();
    for in_segment in [true, false] {
        create(&mut session, in_segment);
        session.run("ALTER TABLE t ALTER a TYPE text USING k || a || ' and ' || coalesce(b, 'none'), DROP COLUMN b");
        assert_eq!(
            session.rows("SELECT * FROM t ORDER BY k"),
            ["1|1one and uno", "2|2two and due", "3|3three and none"],
            "in a segment: {in_segment}"
        );
        session.run("ALTER TABLE t ADD b int");
        assert_eq!(session.rows("SELECT b FROM t"), ["∅"; 3], "in a segment: {in_segment}");
    }
}

#[test]
fn row_ids_of_a_move_that_was_rolled_back_are_not_given_again() {
    let cluster = cluster();
    let (mut session, mut other) = (cluster.connect(), cluster.connect());
    session.run("CREATE TABLESPACE place LOCATION ''");
    session.run(
        "CREATE TABLE t (k int PRIMARY KEY, v text) USING cass;
         CREATE INDEX t_v ON t (v);
         INSERT INTO t VALUES (1, 'first')",
    );
    for rolled_back in ["ALTER TABLE t SET TABLESPACE place", "UPDATE t SET v = v; CLUSTER t USING t_v"] {
        session.run(&format!(
            "BEGIN; {rolled_back}; INSERT INTO t SELECT k, 'ghost' FROM generate_series(100, 300) k; ROLLBACK"
        ));
        for (writer, first) in [(&mut session, 10), (&mut other, 310), (&mut cluster.connect(), 610)] {
            writer.run(&format!("INSERT INTO t SELECT k, 'real' FROM generate_series({first}, {first} + 150) k"));
        }
        assert_eq!(session.rows("SELECT count(*), count(DISTINCT ctid) FROM t"), ["454|454"], "{rolled_back}");
        for (value, rows) in [("ghost", "0"), ("real", "453"), ("first", "1")] {
            session.run("SET enable_seqscan = off");
            assert_eq!(session.rows(&format!("SELECT count(*) FROM t WHERE v = '{value}'")), [rows], "{rolled_back}");
        }
        session.run("DELETE FROM t WHERE v = 'real'");
    }
}

#[test]
fn the_delta_goes_with_its_table_to_another_tablespace() {
    let cluster = cluster();
    let mut session = cluster.connect();
    let rows = ["1|one|uno", "2|two|due", "3|three|∅"];
    for (number, statement) in [
        "ALTER TABLE t SET TABLESPACE",
        "ALTER TABLE ALL IN TABLESPACE pg_default SET TABLESPACE",
        "ALTER TABLE t ALTER a TYPE varchar(100) USING a || '', SET TABLESPACE",
    ]
    .into_iter()
    .enumerate()
    {
        create(&mut session, true);
        session.run(&format!("CREATE TABLESPACE space_{number} LOCATION ''"));
        session.run("INSERT INTO t VALUES (3, 'three')");
        session.run(&format!("BEGIN; {statement} space_{number}; ROLLBACK"));
        assert_eq!(session.rows("SELECT * FROM t ORDER BY k"), rows, "{statement}");
        session.run(&format!("{statement} space_{number}"));
        assert_eq!(session.rows("SELECT * FROM t ORDER BY k"), rows, "{statement}");
        let elsewhere = "SELECT count(*) FROM pg_class WHERE relname ~ ('^cass_delta_' || 't'::regclass::oid) \
                         AND reltablespace <> (SELECT reltablespace FROM pg_class WHERE oid = 't'::regclass)";
        assert_eq!(session.value(elsewhere), "0", "{statement}");
        session.run("UPDATE t SET b = 'tre' WHERE k = 3; DELETE FROM t WHERE k = 1");
        session.run(&format!("ALTER TABLE ALL IN TABLESPACE space_{number} SET TABLESPACE pg_default"));
        session.run(&format!("DROP TABLESPACE space_{number}"));
        assert_eq!(session.rows("SELECT * FROM t ORDER BY k"), ["2|two|due", "3|three|tre"], "{statement}");
    }
}

#[test]
fn an_index_is_built_although_settings_ask_for_workers() {
    let cluster = cluster();
    let mut session = cluster.connect();
    for settings in ["SET min_parallel_table_scan_size = 0", "ALTER TABLE t SET (parallel_workers = 2)"] {
        create(&mut session, true);
        session.run(&format!("RESET ALL; {settings}"));
        session.run("CREATE INDEX t_a ON t (a); CREATE UNIQUE INDEX ON t (b); REINDEX TABLE t");
        session.run("SET enable_seqscan = off");
        assert_eq!(session.rows("SELECT k FROM t WHERE a = 'two'"), ["2"], "{settings}");
    }
}
