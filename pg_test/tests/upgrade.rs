//! pg_upgrade carries segments, not deltas: it is stopped until all rows lie in segments, and then carries everything.

use cass_server_tests::{Cluster, Installation, Session, Shutdown};

const SETTINGS: &[(&str, &str)] = &[("cass.enforcement", "off"), ("max_prepared_transactions", "2")];
const PREPARE: &str = "CALL cass_prepare_upgrade()";
const TABLES: [&str; 6] = ["readings", "members", "\"Odd Name\"", "own_types", "unplaced", "app.events"];

/// 15.20 notes a version of each column among its options (`catalog/pg_attribute.h`, `ATTRIBUTE_VERSION_ATTOPTION`). Releases of later
/// versions from before that dump it as an option, and refuse it when they restore it, of heap tables too.
const FORGET_COLUMN_VERSIONS: &str = "UPDATE pg_attribute
   SET attoptions = nullif(ARRAY(SELECT o FROM unnest(attoptions) o WHERE o NOT LIKE 'pg_attver=%'), '{}') WHERE attoptions IS NOT NULL";

/// Tables with rows in segments and in deltas, overwritten and deleted ones too.
fn create(session: &mut Session) {
    session.run(
        r#"CREATE TABLE readings (sensor_id text, gone int, day date, ts timestamptz, value float8 CHECK (value < 1000), status text,
             PRIMARY KEY (sensor_id, day, ts)) USING cass
             WITH (partition_key = 'sensor_id, day', clustering_order = 'ts DESC', autovacuum_enabled = off);
           CREATE INDEX readings_status ON readings (status);
           CREATE INDEX readings_value ON readings USING hash (value) WHERE value > 5;
           CREATE TABLE members (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL, big text,
             doubled int GENERATED ALWAYS AS (length(name) * 2) STORED) USING cass;
           CREATE TABLE "Odd Name" ("a ""b" int, "C" numeric(6,2), CONSTRAINT "its key" PRIMARY KEY ("C", "a ""b")) USING cass;
           CREATE TABLE own_types (i tinyint, at timeuuid, n varint, PRIMARY KEY (i, n)) USING cass;
           CREATE TABLE unplaced (n int) USING cass;
           CREATE SCHEMA app;
           CREATE TABLE app.events (id int PRIMARY KEY, code text UNIQUE, kind text, EXCLUDE (kind WITH =) WHERE (id = 1)) USING cass;
           CREATE INDEX ON app.events (lower(kind)) INCLUDE (code);
           CREATE VIEW app.kinds AS SELECT id, kind, count(*) FROM app.events GROUP BY id;
           INSERT INTO app.events SELECT n, 'c' || n, 'k' || n FROM generate_series(1, 9) n;
           INSERT INTO readings SELECT 's' || s, 1, '2026-09-01'::date + d, timestamptz '2026-09-01' + m * interval '7 minutes', s + d + m / 10.0, 'st' || m % 5
             FROM generate_series(1, 5) s, generate_series(0, 2) d, generate_series(1, 30) m;
           INSERT INTO members (name, big) SELECT 'n' || n, (SELECT string_agg(md5((n * i)::text), '') FROM generate_series(1, 300) i)
             FROM generate_series(1, 20) n;
           INSERT INTO "Odd Name" SELECT a, a / 4.0 FROM generate_series(1, 20) a;
           INSERT INTO own_types SELECT (n % 100)::int::tinyint, '5132b130-ae79-11e4-ab27-0800200c9a66', n::varint FROM generate_series(1, 200) n;
           INSERT INTO unplaced SELECT generate_series(1, 30);"#,
    );
    for table in TABLES {
        session.flush(table);
    }
    session.run(
        r#"ALTER TABLE readings DROP COLUMN gone, ADD COLUMN later int DEFAULT 7;
           UPDATE readings SET value = 666, status = 'changed' WHERE sensor_id = 's2'; DELETE FROM readings WHERE sensor_id = 's3';
           INSERT INTO readings VALUES ('s1', '2026-09-01', '2026-09-01 00:07:00+00', 7, NULL, NULL), ('new', '2026-09-01', 'epoch', 8, 'x', 1);
           UPDATE members SET big = repeat(md5(name), 400) WHERE id > 15; DELETE FROM members WHERE id = 3;
           DELETE FROM unplaced WHERE n = 7; INSERT INTO unplaced VALUES (31);
           INSERT INTO own_types VALUES ('5', NULL, '99999999999999999999')"#,
    );
}

fn rows(session: &mut Session) -> Vec<Vec<String>> {
    TABLES.iter().map(|table| session.rows(&format!("SELECT t::text FROM {table} t ORDER BY t::text"))).collect()
}

/// What psql shows of the tables, without the constraints that 18 makes of NOT NULL.
fn described(cluster: &Cluster) -> Vec<String> {
    let commands: Vec<String> = TABLES.iter().map(|table| format!("\\d+ {table}")).collect();
    let mut psql = vec!["-X"];
    commands.iter().for_each(|command| psql.extend(["-c", command]));
    // The psql of one version for all servers: headings differ.
    let shown = cluster.run_client_of(&Installation::default(), "psql", &psql);
    let of_18 = |line: &&str| line.contains("Not-null constraints:") || line.contains("\" NOT NULL \"");
    shown.lines().filter(|line| !of_18(line)).map(str::to_owned).collect()
}

#[test]
fn pg_upgrade_stops_at_rows_in_a_delta_and_names_tables_and_remedy() {
    let mut old = Cluster::with_settings(SETTINGS);
    let mut session = old.connect();
    session.run(
        "CREATE TABLE clean (k int PRIMARY KEY) USING cass; CREATE TEMPORARY TABLE own (k int PRIMARY KEY) USING cass;
         INSERT INTO own VALUES (1)",
    );
    session.run("CREATE DATABASE other");
    old.connect_to("other")
        .run("CREATE EXTENSION cass; CREATE TABLE dirty (k int PRIMARY KEY) USING cass; INSERT INTO dirty VALUES (1)");
    // Neither a dump nor a server in its usual mode minds.
    old.run_client("pg_dump", &["--dbname=other", "--file=/dev/null"]);
    old.stop(Shutdown::Fast);
    let new = Cluster::empty(SETTINGS);
    for options in [&["--check"] as &[&str], &[]] {
        let printed = new.try_upgrade_from(&old, options).expect_err("rows of table dirty would be lost");
        assert!(
            printed.contains("ERROR:  cass tables of database \"other\" are not prepared for pg_upgrade"),
            "{printed}"
        );
        assert!(printed.contains("may hold rows: public.dirty.\n"), "{printed}");
        assert!(printed.contains("run CALL cass_prepare_upgrade() in database \"other\""), "{printed}");
    }
    old.start();
    old.connect_to("other").run(PREPARE);
    old.stop(Shutdown::Fast);
    new.upgrade_from(&old, &["--check"]);
}

#[test]
fn a_prepared_cluster_is_upgraded_with_all_its_rows() {
    for mode in MODES {
        assert_upgraded(&Installation::default(), mode);
    }
}

/// From 15 to 18, say: where `CASS_OLD_PGBIN` names the programs of an older version.
#[test]
fn a_prepared_cluster_of_an_older_version_is_upgraded_with_all_its_rows() {
    let Some(older) = Installation::older() else { return };
    assert_ne!(older.version(), Installation::default().version());
    for mode in MODES {
        assert_upgraded(&older, mode);
    }
    if Installation::default()
        .command("pg_upgrade")
        .arg("--help")
        .output()
        .is_ok_and(|help| String::from_utf8_lossy(&help.stdout).contains("--swap"))
    {
        assert_upgraded(&older, &["--swap"]);
    }
}

/// Copying, and hard links.
const MODES: [&[&str]; 2] = [&[], &["--link"]];

fn assert_upgraded(from: &Installation, mode: &[&str]) {
    let mut old = Cluster::of(from, SETTINGS);
    let mut session = old.connect();
    create(&mut session);
    session.run(PREPARE);
    for table in TABLES {
        assert_eq!(session.delta_rows_of(table), 0, "{table}");
    }
    let (expected, shown) = (rows(&mut session), described(&old));
    if *from != Installation::default() {
        session.run(FORGET_COLUMN_VERSIONS);
    }
    old.stop(Shutdown::Fast);
    let mut new = Cluster::empty(SETTINGS);
    new.upgrade_from(&old, mode);
    new.start();
    let mut session = new.connect();
    assert_eq!(rows(&mut session), expected, "{mode:?}");
    assert_eq!(described(&new), shown, "{mode:?}");
    reads_segments(&mut session);
    takes_writes(&mut session);
    is_dumped(&new, &mut session);
}

/// A partition is read from segments, since nothing else has been carried.
fn reads_segments(session: &mut Session) {
    let deltas = "SELECT count(*) FROM pg_class WHERE relname ~ '^cass_delta_[0-9]+$'";
    assert_eq!(session.count(deltas), 0);
    let plan = session.rows(
        "EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) SELECT * FROM readings WHERE sensor_id = 's2' AND day = '2026-09-01'",
    );
    assert!(plan[0].contains("Custom Scan (CassScan) on readings (actual rows=30"), "{plan:?}");
    assert!(plan.contains(&"  Segments Read: 2".to_owned()), "{plan:?}");
    assert!(plan.contains(&"  Delta Rows: 0".to_owned()), "{plan:?}");
}

/// Inserts, updates and deletes, by indexes too, and VACUUM.
fn takes_writes(session: &mut Session) {
    let sums = "SELECT count(*), sum(value), count(*) FILTER (WHERE status = 'st3'), count(*) FILTER (WHERE value = 666) FROM readings";
    session.run("SET enable_seqscan = off");
    let by_index = session.rows("EXPLAIN (COSTS off) UPDATE readings SET value = 500 WHERE status = 'st3'").join("\n");
    assert!(by_index.contains("readings_status"), "{by_index}");
    assert_eq!(session.rows("SELECT count(*) FROM readings WHERE status = 'st3'"), ["54"]);
    assert_eq!(session.rows("SELECT count(*) FROM readings WHERE value = 666"), ["90"]);
    session.run(
        "UPDATE readings SET value = 500 WHERE status = 'st3'; DELETE FROM readings WHERE status = 'st4'; DELETE FROM readings WHERE value = 666;
         INSERT INTO readings VALUES ('new', '2026-09-01', 'epoch', 9, 'over', 2), ('newer', '2026-09-01', 'epoch', 10, 'y', 3)",
    );
    session.run("SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_seqscan = on");
    let written = session.rows(sums);
    assert_eq!(session.rows("SELECT count(*) FROM readings WHERE value = 500"), ["54"]);
    assert!(written[0].starts_with("218|") && written[0].ends_with("|54|0"), "{written:?}");
    session.run("INSERT INTO members (name) VALUES ('after')");
    assert_eq!(session.rows("SELECT id, doubled FROM members WHERE name = 'after'"), ["21|10"]);
    session.run("INSERT INTO unplaced VALUES (32)");
    // The other two have been given no delta.
    for table in ["readings", "members", "unplaced"] {
        session.flush(table);
    }
    session.run("VACUUM");
    assert_eq!(session.rows(sums), written);
    session.run("RESET enable_indexscan; RESET enable_indexonlyscan; RESET enable_seqscan");
    assert_eq!(session.rows("SELECT count(*) FROM readings WHERE status IN ('st3', 'over')"), ["55"]);
}

fn is_dumped(cluster: &Cluster, session: &mut Session) {
    let file = cluster.socket().join("dump");
    let path = file.to_string_lossy();
    cluster.run_client("pg_dump", &["--file", &path]);
    session.run("CREATE DATABASE restored");
    cluster.run_client("psql", &["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", "restored", "-f", &path]);
    assert_eq!(rows(&mut cluster.connect_to("restored")), rows(session));
}

#[test]
fn the_first_write_after_an_upgrade_makes_the_delta_or_leaves_no_trace() {
    let mut old = Cluster::with_settings(SETTINGS);
    let mut session = old.connect();
    session.run("CREATE TABLE t (k int PRIMARY KEY, v int) USING cass; INSERT INTO t VALUES (1, 1)");
    session.run(PREPARE);
    old.stop(Shutdown::Fast);
    let mut new = Cluster::empty(SETTINGS);
    new.upgrade_from(&old, &[]);
    new.start();
    let mut session = new.connect();
    session.run("BEGIN; INSERT INTO t VALUES (2, 2); ROLLBACK");
    assert_eq!(session.rows("SELECT * FROM t"), ["1|1"]);
    session.run(
        "BEGIN; SAVEPOINT s; INSERT INTO t VALUES (2, 2); ROLLBACK TO s; COMMIT; BEGIN; INSERT INTO t VALUES (3, 3)",
    );
    new.kill();
    new.start();
    let mut session = new.connect();
    assert_eq!(session.rows("SELECT * FROM t"), ["1|1"]);
    // Of two first writes, the second waits for the first one's delta.
    session.run("BEGIN; INSERT INTO t VALUES (1, 4)");
    let second = new.connect().in_background("INSERT INTO t VALUES (2, 5)");
    second.wait_until_blocked(&mut new.connect());
    session.run("COMMIT");
    second.finish();
    assert_eq!(session.rows("SELECT * FROM t ORDER BY k"), ["1|4", "2|5"]);
    session.run(PREPARE);
    new.stop(Shutdown::Fast);
    let newer = Cluster::empty(SETTINGS);
    newer.upgrade_from(&new, &[]);
}

#[test]
fn a_delta_made_by_one_first_write_is_read_and_stops_the_next_upgrade() {
    let mut old = Cluster::with_settings(SETTINGS);
    let mut session = old.connect();
    session.run("CREATE TABLE t (k int PRIMARY KEY) USING cass");
    // The visibility map tells the new cluster that the delta is empty.
    session.run(PREPARE);
    old.stop(Shutdown::Fast);
    let mut new = Cluster::empty(SETTINGS);
    new.upgrade_from(&old, &[]);
    new.start();
    new.connect().run("INSERT INTO t VALUES (1)");
    assert_eq!(new.connect().rows("SELECT * FROM t"), ["1"]);
    new.stop(Shutdown::Fast);
    let printed = Cluster::empty(SETTINGS).try_upgrade_from(&new, &["--check"]).expect_err("a row would be lost");
    assert!(printed.contains("may hold rows: public.t.\n"), "{printed}");
}

/// A delta's indexes take the predicate locks of readers, and the deltas are not there yet.
#[test]
fn write_skew_is_caught_in_tables_that_have_no_delta_yet() {
    let mut old = Cluster::with_settings(SETTINGS);
    let mut session = old.connect();
    for table in ["both_read", "first_written", "delta_made"] {
        session.run(&format!(
            "CREATE TABLE {table} (doctor int PRIMARY KEY, on_call boolean) USING cass;
             INSERT INTO {table} VALUES (1, true), (2, true)"
        ));
    }
    session.run(PREPARE);
    old.stop(Shutdown::Fast);
    let mut new = Cluster::empty(SETTINGS);
    new.upgrade_from(&old, &[]);
    new.start();
    let count = |table: &str| format!("SELECT count(*) FROM {table} WHERE on_call");
    let leave = |table: &str, doctor: u32| format!("UPDATE {table} SET on_call = false WHERE doctor = {doctor}");
    let begin = |table: &str, read: &str| {
        let mut session = new.connect();
        // A snapshot is taken in any case.
        session.run("BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT FROM pg_class LIMIT 1");
        session.run(read);
        (session, table.to_owned())
    };
    let assert_refused = |(mut session, table): (Session, String)| {
        let result = session.try_rows(&leave(&table, 2)).and_then(|_| session.try_rows("COMMIT"));
        let code = result.as_ref().err().and_then(|error| error.code()).map(|code| code.code());
        assert_eq!(code, Some("40001"), "{table}: {result:?}");
    };

    let (mut first, table) = begin("both_read", &count("both_read"));
    let second = begin(&table, &count(&table));
    first.run(&leave(&table, 1));
    first.run("COMMIT");
    assert_refused(second);

    let (mut first, table) = begin("first_written", &count("first_written"));
    let (second, _) = begin(&table, "SELECT");
    first.run(&leave(&table, 1));
    // Nothing in the catalogs shows the first one's delta before it commits.
    let second = second.in_background(&count(&table));
    second.wait_until_blocked(&mut new.connect());
    first.run("COMMIT");
    let (second, counted) = second.finish();
    assert_eq!(counted, ["2"]);
    assert_refused((second, table));

    let (mut first, table) = begin("delta_made", &count("delta_made"));
    let second = begin(&table, &count(&table));
    new.connect().run(&format!("INSERT INTO {table} VALUES (3, true)"));
    first.run(&leave(&table, 1));
    first.run("COMMIT");
    assert_refused(second);
}

#[test]
fn preparing_says_what_is_in_the_way_and_does_the_other_tables() {
    let cluster = Cluster::with_settings(SETTINGS);
    let mut session = cluster.connect();
    session.run(
        "CREATE TABLE busy (k int PRIMARY KEY) USING cass; CREATE TABLE idle (k int PRIMARY KEY) USING cass; INSERT INTO idle VALUES (1);
         CREATE TEMPORARY TABLE own (k int PRIMARY KEY) USING cass; INSERT INTO own VALUES (1)",
    );
    let refused = |session: &mut Session, reason: &str| {
        let error = session.error(PREPARE);
        assert!(error.starts_with("55006 1 cass table is not ready for pg_upgrade"), "{error}");
        assert!(error.contains(&format!("public.busy: {reason}")), "{error}");
    };
    let mut other = cluster.connect();
    other.run("BEGIN; INSERT INTO busy VALUES (1); PREPARE TRANSACTION 'p'");
    refused(&mut session, "a transaction that writes to it or locks rows of it is open.");
    assert_eq!((session.delta_rows_of("idle"), session.segments_of("idle")), (0, 1));
    other.run("COMMIT PREPARED 'p'");
    other.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT");
    session.run("INSERT INTO busy VALUES (2)");
    refused(&mut session, "1 rows are newer than the oldest transaction.");
    // Whoever may lock rows may write an anchor at any moment.
    for lock in ["SELECT FROM busy WHERE k = 2 FOR UPDATE", "LOCK TABLE busy IN ROW SHARE MODE"] {
        other.run(&format!("COMMIT; BEGIN; {lock}"));
        refused(&mut session, "a transaction that writes to it or locks rows of it is open.");
    }
    other.run("COMMIT");
    session.run(PREPARE);
    assert_eq!(session.delta_rows_of("busy"), 0);
    assert!(session.error(&format!("BEGIN; {PREPARE}")).starts_with("25001 "));
    session.run("ROLLBACK");
    session.run("CREATE ROLE somebody; CREATE ROLE owner; ALTER DATABASE postgres OWNER TO owner; SET ROLE somebody");
    assert!(session.error(PREPARE).starts_with("42501 "));
    session.run("SET ROLE owner");
    session.run(PREPARE);
}

#[test]
fn a_lost_delta_is_an_error_for_reads_writes_and_preparing() {
    let cluster = Cluster::with_settings(SETTINGS);
    let mut session = cluster.connect();
    session.run("CREATE TABLE t (k int PRIMARY KEY, v int) USING cass; INSERT INTO t VALUES (1, 1)");
    session.flush("t");
    session.run("INSERT INTO t VALUES (2, 2)");
    // Nothing is found under the name any more, as where it has not been carried.
    session.run("UPDATE pg_class SET relname = 'lost_' || relname WHERE relname ~ '^cass_delta'");
    let statements = [
        "SELECT * FROM t",
        "SELECT * FROM t WHERE k = 1",
        "INSERT INTO t VALUES (3, 3)",
        "UPDATE t SET v = 2 WHERE k = 1",
        "CREATE INDEX ON t (v)",
        "VACUUM FULL t",
        PREPARE,
    ];
    for statement in statements {
        assert!(session.error(statement).starts_with("XX001 the delta of table \"t\" is missing"), "{statement}");
    }
    session.run("VACUUM t");
    assert!(session.error("SELECT * FROM t").starts_with("XX001 "), "VACUUM makes nothing good");
    session.run("TRUNCATE t; INSERT INTO t VALUES (4, 4)");
    session.run(PREPARE);
    assert_eq!(session.rows("SELECT * FROM t"), ["4|4"]);
}
