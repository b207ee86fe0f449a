//! Segments as files: where a file does not have what shared buffers have, is shorter than it was, or is damaged.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use cass_server_tests::{Cluster, Session, Shutdown};

const PAGE: u64 = 8192;

/// 20 partitions of 100 rows in one segment.
fn create(session: &mut Session) {
    session.run(
        "CREATE TABLE t (a int, b int, v text, PRIMARY KEY (a, b)) USING cass;
         INSERT INTO t SELECT a, b, md5(a || '.' || b) FROM generate_series(1, 20) a, generate_series(1, 100) b",
    );
    session.flush("t");
}

const ALL: &str = "SELECT count(*), sum(b), md5(string_agg(v, ',' ORDER BY a, b)) FROM t";

/// Overwrites and deletes rows and vacuums, so that segments are merged and their blocks used again.
fn churn(session: &mut Session, rounds: std::ops::Range<u32>) {
    for round in rounds {
        session.run(&format!(
            "INSERT INTO t SELECT a, {round}, 'round {round}' FROM generate_series(1, 20) a;
             DELETE FROM t WHERE a = {round}"
        ));
        session.run("VACUUM t");
    }
}

fn file_of(session: &mut Session, cluster: &Cluster, table: &str) -> std::path::PathBuf {
    cluster.data().join(session.value(&format!("SELECT pg_relation_filepath('{table}')")))
}

#[test]
fn a_standby_reads_pages_that_its_files_do_not_have_yet() {
    let primary = Cluster::new();
    let standby = primary.standby();
    let mut session = primary.connect();
    create(&mut session);
    standby.catch_up_with(&primary);
    let mut reader = standby.connect();
    assert_eq!(reader.value(ALL), session.value(ALL));
    let file = std::fs::read(file_of(&mut reader, &standby, "t")).unwrap_or_default();
    assert!(file.iter().all(|byte| *byte == 0), "the standby has written its buffers, so that this shows nothing");
    // The reader has the table's pages validated, and their blocks are used again.
    churn(&mut session, 1..8);
    standby.catch_up_with(&primary);
    assert_eq!(reader.value(ALL), session.value(ALL));
}

#[test]
fn a_promoted_standby_keeps_its_segments_and_uses_their_blocks_again() {
    let primary = Cluster::new();
    let mut standby = primary.standby();
    let mut session = primary.connect();
    create(&mut session);
    churn(&mut session, 1..6);
    standby.catch_up_with(&primary);
    let expected = session.value(ALL);
    standby.promote();
    let mut promoted = standby.connect();
    assert_eq!(promoted.value(ALL), expected);
    churn(&mut promoted, 6..12);
    let expected = promoted.value(ALL);
    promoted.run("CHECKPOINT");
    assert_eq!(promoted.value(ALL), expected, "after the checkpoint has written the buffers");
    drop(promoted);
    standby.restart(Shutdown::Immediate);
    assert_eq!(standby.connect().value(ALL), expected, "after a crash");
}

#[test]
fn a_copied_database_reads_segments_before_any_checkpoint() {
    let cluster = Cluster::new();
    let mut session = cluster.connect();
    session.run("CREATE DATABASE original");
    let mut original = cluster.connect_to("original");
    original.run("CREATE EXTENSION cass");
    create(&mut original);
    let expected = original.value(ALL);
    drop(original);
    session.run("CREATE DATABASE copy TEMPLATE original STRATEGY wal_log");
    let mut copy = cluster.connect_to("copy");
    assert_eq!(copy.value(ALL), expected);
    churn(&mut copy, 1..6);
    let churned = copy.value(ALL);
    assert_ne!(churned, expected);
    assert_eq!(cluster.connect_to("original").value(ALL), expected, "the original is not touched");
}

#[test]
fn a_file_that_another_session_empties_ends_no_reader() {
    let cluster = Cluster::new();
    let (mut reader, mut other) = (cluster.connect(), cluster.connect());
    create(&mut other);
    assert_eq!(reader.value("SELECT count(*) FROM t"), "2000");
    // The old file is cut at once; whoever touched it through an old map would be killed by SIGBUS.
    other.run("TRUNCATE t");
    assert_eq!(reader.value("SELECT count(*) FROM t"), "0");
    other.run("INSERT INTO t VALUES (1, 1, 'x')");
    other.flush("t");
    assert_eq!(reader.value("SELECT count(*) FROM t"), "1");
    other.run("VACUUM FULL t");
    assert_eq!(reader.value("SELECT count(*) FROM t"), "1");
    other.run("DROP TABLE t");
    create(&mut other);
    assert_eq!(reader.value("SELECT count(*) FROM t"), "2000");
}

#[test]
fn damage_is_an_error_that_names_the_block_and_only_for_those_who_read_it() {
    let mut cluster = Cluster::new();
    cluster.expect_damage();
    let mut session = cluster.connect();
    create(&mut session);
    let file = file_of(&mut session, &cluster, "t");
    let first = session.count("SELECT first_block FROM cass_segments('t')");
    let undamaged = session.value(
        "SELECT split_part(key, ', ', 1) FROM cass_segment_rows('t', 1) GROUP BY 1 HAVING min(page) > 0 LIMIT 1",
    );
    drop(session);
    cluster.stop(Shutdown::Fast);
    let file = OpenOptions::new().write(true).open(&file).unwrap_or_else(|error| panic!("{error}"));
    file.write_all_at(b"damage", first * PAGE + 4000).unwrap_or_else(|error| panic!("{error}"));
    cluster.start();
    let mut session = cluster.connect();
    let error = session.error("SELECT * FROM t");
    assert!(error.starts_with("XX001") && error.contains(&format!("block {first}")), "{error}");
    assert_eq!(session.value(&format!("SELECT count(*) FROM t WHERE {undamaged}")), "100");
}

#[test]
fn a_load_that_skips_the_wal_survives_a_crash() {
    let mut cluster = Cluster::with_settings(&[("wal_level", "minimal"), ("max_wal_senders", "0")]);
    let mut session = cluster.connect();
    session.run("BEGIN");
    session.run("CREATE TABLE t (a int, b int, v text) USING cass");
    session
        .run("INSERT INTO t SELECT a, b, md5(a || '.' || b) FROM generate_series(1, 20) a, generate_series(1, 100) b");
    session.run("ALTER TABLE t ADD PRIMARY KEY (a, b); COMMIT");
    let expected = session.value(ALL);
    drop(session);
    cluster.restart(Shutdown::Immediate);
    let mut session = cluster.connect();
    assert_eq!(session.value(ALL), expected);
    churn(&mut session, 1..6);
    let expected = session.value(ALL);
    drop(session);
    cluster.restart(Shutdown::Immediate);
    assert_eq!(cluster.connect().value(ALL), expected);
}

#[test]
fn temporary_tables_are_flushed_and_merged_by_their_session() {
    let cluster = Cluster::new();
    let mut session = cluster.connect();
    session.run(
        "CREATE TEMP TABLE t (a int, b int, v text, PRIMARY KEY (a, b)) USING cass;
         INSERT INTO t SELECT a, b, md5(a || '.' || b) FROM generate_series(1, 20) a, generate_series(1, 100) b",
    );
    let expected = session.value(ALL);
    session.run("VACUUM t");
    assert_eq!((session.segments_of("t"), session.value(ALL)), (1, expected));
    churn(&mut session, 1..8);
    // 13 whole partitions; of the 7 deleted ones, what later rounds have written.
    assert_eq!(session.value("SELECT count(*), count(DISTINCT a) FROM t"), "1321|19");
    assert!(session.segments_of("t") <= 4);
}
