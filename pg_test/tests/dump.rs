//! What pg_dump, publications and logical decoding make of cass tables.

use cass_server_tests::{wait_until, Cluster, Installation, Session};
use std::fs;
use std::path::Path;

const TABLES: [&str; 4] = ["readings", "members", "\"Odd Name\"", "plain"];

fn create(session: &mut Session) {
    session.run(
        r#"CREATE TABLE readings (sensor_id text, day date, ts timestamptz, value float8 CHECK (value < 1000), status text DEFAULT 'ok',
             PRIMARY KEY (sensor_id, day, ts)) USING cass
             WITH (partition_key = 'sensor_id, day', clustering_order = 'ts DESC', autovacuum_enabled = off);
           CREATE INDEX readings_status ON readings (status);
           CREATE TABLE members (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL, big text,
             doubled int GENERATED ALWAYS AS (length(name) * 2) STORED) USING cass;
           CREATE TABLE "Odd Name" ("a ""b" int, "C" numeric(6,2), n int, CONSTRAINT "its key" PRIMARY KEY ("C", "a ""b")) USING cass;
           CREATE TABLE plain (k int PRIMARY KEY, reading text) USING heap;
           COMMENT ON TABLE readings IS 'of sensors';
           CREATE VIEW latest AS SELECT * FROM readings WHERE sensor_id = 's1' AND day = '2026-09-01';
           INSERT INTO readings SELECT 's' || s, '2026-09-01'::date + d, timestamptz '2026-09-01' + m * interval '7 minutes', s + d + m / 10.0
             FROM generate_series(1, 5) s, generate_series(0, 2) d, generate_series(1, 30) m;
           INSERT INTO members (name, big) SELECT 'n' || n, repeat(md5(n::text), 300) FROM generate_series(1, 20) n;
           INSERT INTO "Odd Name" SELECT a, a / 4.0, NULL FROM generate_series(1, 20) a;
           INSERT INTO plain SELECT k, 's' || k FROM generate_series(1, 10) k;"#,
    );
    session.flush("readings");
    session.run(
        "SET cass.enforcement = off;
         UPDATE readings SET value = -1 WHERE sensor_id = 's2'; DELETE FROM readings WHERE sensor_id = 's3';
         INSERT INTO readings VALUES ('s1', '2026-09-01', '2026-09-01 00:07:00+00', 7, NULL)",
    );
}

fn rows(session: &mut Session) -> Vec<Vec<String>> {
    TABLES.iter().map(|table| session.rows(&format!("SELECT t::text FROM {table} t ORDER BY t::text"))).collect()
}

/// What psql shows of the tables.
fn described(cluster: &Cluster, database: &str) -> String {
    let mut psql = vec!["-X", "-d", database, "-c", "\\d+ latest"];
    let commands: Vec<String> = TABLES.iter().map(|table| format!("\\d+ {table}")).collect();
    commands.iter().for_each(|command| psql.extend(["-c", command]));
    cluster.run_client("psql", &psql)
}

/// A dump as text, without the random words of psql's restricted mode.
fn dumped(cluster: &Cluster, database: &str, options: &[&str]) -> Vec<String> {
    let dump = cluster.run_client("pg_dump", &[&["-d", database], options].concat());
    dump.lines().filter(|line| !line.contains("restrict ")).map(str::to_owned).collect()
}

/// The content of a file, or of those in a folder.
fn files_of(path: &Path) -> Vec<Vec<u8>> {
    match fs::read_dir(path) {
        Ok(folder) => folder.flatten().flat_map(|entry| files_of(&entry.path())).collect(),
        Err(_) => vec![fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))],
    }
}

#[test]
fn a_restored_dump_has_the_same_tables_and_rows() {
    let cluster = Cluster::with_settings(&[("cass.enforcement", "strict")]);
    let mut session = cluster.connect();
    create(&mut session);
    let (expected, shown) = (rows(&mut session), described(&cluster, "postgres"));
    assert!(shown.contains("PRIMARY KEY, cass_key (sensor_id, day, ts DESC)"), "{shown}");
    let dumps: [(&str, &[&str]); 4] = [
        ("plain", &["--format=plain"]),
        ("inserts", &["--format=plain", "--rows-per-insert=7"]),
        ("custom", &["--format=custom"]),
        ("directory", &["--format=directory", "--jobs=4", "--compress=0"]),
    ];
    let text = dumped(&cluster, "postgres", &[]);
    for (name, options) in dumps {
        let file = cluster.socket().join(name);
        let path = file.to_string_lossy();
        cluster.run_client("pg_dump", &[options, &["--file", &path]].concat());
        let dump: String = files_of(&file).iter().map(|file| String::from_utf8_lossy(file).into_owned()).collect();
        assert!(dump.contains("readings"), "{name}: the dump is empty");
        for hidden in ["cass_delta", "cass_catalog.segment"] {
            assert!(!dump.contains(hidden), "{name}: {hidden} is in the dump");
        }
        session.run(&format!("CREATE DATABASE restored_{name}"));
        let database = format!("restored_{name}");
        match name {
            "custom" | "directory" => {
                cluster.run_client("pg_restore", &["--exit-on-error", "--jobs=4", "-d", &database, &path])
            }
            _ => cluster.run_client("psql", &["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", &database, "-f", &path]),
        };
        let mut restored = cluster.connect_to(&database);
        restored.run("SET cass.enforcement = off");
        assert_eq!(rows(&mut restored), expected, "{name}");
        assert_eq!(described(&cluster, &database), shown, "{name}");
        assert_eq!(dumped(&cluster, &database, &[]), text, "{name}: dumped again");
        let refused = cluster.connect_to(&database).error("SELECT * FROM readings WHERE day = '2026-09-01'");
        assert!(refused.starts_with("42K01"), "{name}: {refused}");
        // It is a table like the first: a key is overwritten, and VACUUM flushes.
        restored.run("INSERT INTO readings VALUES ('s1', '2026-09-01', '2026-09-01 00:07:00+00', 8, 'over')");
        // The session that pg_dump had may still be about to end.
        wait_until("VACUUM flushes", || {
            restored.run("VACUUM readings");
            restored.delta_rows_of("readings") == 0
        });
        assert_eq!(restored.rows("SELECT value, status FROM readings WHERE sensor_id = 's1' AND ts = '2026-09-01 00:07:00+00' AND day = '2026-09-01'"), ["8|over"]);
    }
}

#[test]
fn parts_of_a_dump_are_restored_one_after_the_other() {
    let cluster = Cluster::with_settings(&[("cass.enforcement", "strict")]);
    let mut session = cluster.connect();
    create(&mut session);
    let expected = rows(&mut session);
    // Other OIDs than in the first database, so that nothing can go by those.
    session.run("CREATE DATABASE parts");
    session.run("CREATE DATABASE one");
    let restore = |database: &str, text: &str| {
        let mut psql = cluster.client("psql");
        psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", database, "-c", text]);
        let output = psql.output().unwrap_or_else(|error| panic!("psql: {error}"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let file = cluster.socket().join("part");
    let path = file.to_string_lossy();
    for options in [["--schema-only"], ["--data-only"]] {
        cluster.run_client("pg_dump", &["--format=custom", options[0], "--file", &path]);
        cluster.run_client("pg_restore", &["--exit-on-error", "--jobs=4", "-d", "parts", &path]);
    }
    let mut parts = cluster.connect_to("parts");
    parts.run("SET cass.enforcement = off");
    assert_eq!(rows(&mut parts), expected);
    assert_eq!(described(&cluster, "parts"), described(&cluster, "postgres"));
    // Data over data: what is there already is overwritten, and stays one row.
    parts.run("DELETE FROM plain; UPDATE readings SET value = 0 WHERE sensor_id = 's1'");
    cluster.run_client("pg_restore", &["--exit-on-error", "-d", "parts", &path]);
    assert_eq!(rows(&mut parts), expected);
    restore("one", "CREATE EXTENSION cass");
    cluster.run_client("pg_dump", &["--format=custom", "-t", "readings", "--file", &path]);
    cluster.run_client("pg_restore", &["--exit-on-error", "-d", "one", &path]);
    let mut one = cluster.connect_to("one");
    one.run("SET cass.enforcement = off");
    assert_eq!(one.rows("SELECT t::text FROM readings t ORDER BY t::text"), expected[0]);
    let options = ["-t", "readings"];
    assert_eq!(dumped(&cluster, "one", &options), dumped(&cluster, "postgres", &options));
}

#[test]
fn deltas_and_segment_lists_are_in_no_listing_of_a_users_tables() {
    let cluster = Cluster::with_settings(&[("wal_level", "logical"), ("cass.enforcement", "off")]);
    let mut session = cluster.connect();
    create(&mut session);
    assert!(session.delta_rows_of("readings") > 0);
    session.run("CREATE PUBLICATION everything FOR ALL TABLES");
    let published = session
        .rows("SELECT tablename FROM pg_publication_tables WHERE tablename LIKE 'cass%' OR schemaname = 'pg_toast'");
    assert_eq!(published, [""; 0]);
    let listed = cluster.run_client("psql", &["-X", "-c", "\\d", "-c", "\\dt", "-c", "\\di"]);
    assert!(!listed.contains("cass_delta"), "{listed}");
    session.run("DROP TABLE readings CASCADE");
    let left = session.rows("SELECT count(*) FROM pg_class WHERE relname ~ '^cass_delta' AND relkind = 't'");
    assert_eq!(left, ["2"], "the deltas of the other two tables");
    session.run("BEGIN; DROP TABLE members; ROLLBACK");
    assert_eq!(session.count("SELECT count(*) FROM members"), 20);
    session.run("DROP EXTENSION cass CASCADE");
    assert_eq!(session.rows("SELECT relname FROM pg_class WHERE relname ~ 'cass_delta'"), [""; 0]);
}

#[test]
fn logical_decoding_passes_over_deltas() {
    if !Installation::default().has_library("test_decoding") {
        return;
    }
    let cluster = Cluster::with_settings(&[("wal_level", "logical"), ("cass.enforcement", "off")]);
    let mut session = cluster.connect();
    session.run("SELECT pg_create_logical_replication_slot('decoded', 'test_decoding')");
    create(&mut session);
    session.run(
        "BEGIN; INSERT INTO plain VALUES (100, repeat('toasted', 3000)); UPDATE members SET big = repeat(md5(name), 500), name = 'x';
         DELETE FROM readings; DELETE FROM plain WHERE k = 1; COMMIT",
    );
    session.run("VACUUM");
    session.run("UPDATE members SET name = 'y' WHERE id = 3; SELECT FROM members WHERE id = 4 FOR UPDATE; UPDATE plain SET k = 200 WHERE k = 2");
    let changes = session.rows("SELECT data FROM pg_logical_slot_get_changes('decoded', NULL, NULL, 'include-xids', '0') WHERE data LIKE 'table%'");
    let hidden: Vec<&String> =
        changes.iter().filter(|change| change.contains("cass_delta") || change.contains("pg_toast")).collect();
    assert_eq!(hidden, [""; 0]);
    let of_plain = changes.iter().filter(|change| change.starts_with("table public.plain:")).count();
    assert_eq!(of_plain, 10 + 2 + 1);
}
