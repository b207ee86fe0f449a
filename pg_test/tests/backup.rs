//! Backups, archives and rewinds of a cluster give back its cass tables: PostgreSQL's own tools need no help.

use cass_server_tests::{Cluster, Session, Shutdown};
use std::fs;

const ALL: &str = "SELECT p, c, left(v, 20), length(v) FROM t ORDER BY p, c";

fn cluster(settings: &[(&str, &str)]) -> Cluster {
    let cluster =
        Cluster::with_settings(&[&[("cass.enforcement", "off"), ("wal_level", "replica")], settings].concat());
    cluster.connect().run(
        "CREATE TABLE t (p int, c int, v text, PRIMARY KEY (p, c)) USING cass;
         CREATE INDEX t_v ON t USING hash (v);
         INSERT INTO t SELECT p, c, md5(p::text || c) FROM generate_series(1, 20) p, generate_series(1, 50) c",
    );
    cluster.connect().flush("t");
    cluster
}

/// Changes rows, moves them into a segment, and leaves some in the delta.
fn change(session: &mut Session, round: u32) {
    session.run(&format!(
        "UPDATE t SET v = 'round {round} ' || md5(c::text) WHERE p = {round};
         DELETE FROM t WHERE p = {round} + 1 AND c % 3 = 0;
         INSERT INTO t SELECT {round} + 1000, c, repeat(md5(c::text), 200) FROM generate_series(1, 20) c"
    ));
    session.run("VACUUM t");
    session.run(&format!("INSERT INTO t SELECT 5, c, 'again {round}' FROM generate_series(40, 60) c"));
}

fn assert_sound(cluster: &mut Cluster, expected: &[String], context: &str) {
    let mut session = cluster.connect();
    assert_eq!(session.rows(ALL), expected, "{context}");
    let by_index = "SET enable_seqscan = off; SELECT p, c FROM t WHERE v = md5('1345')";
    assert_eq!(session.rows(by_index), ["13|45"], "{context}");
    drop(session);
    cluster.stop(Shutdown::Fast);
    let checked = cluster.run_server_tool("pg_checksums", &["--check"]);
    assert!(checked.contains("Bad checksums:  0"), "{context}: {checked}");
    cluster.start();
}

#[test]
fn a_base_backup_taken_during_writes_verifies_and_has_what_was_committed_before_it_ended() {
    let primary = cluster(&[]);
    let mut writer = primary.connect();
    change(&mut writer, 1);
    let before = writer.rows(ALL);
    // Rows of partitions from 2000 on come while the backup runs.
    let load = primary.connect().in_background(
        &(0..30)
            .map(|n| {
                format!("INSERT INTO t SELECT 2000 + {n}, c, 'during' FROM generate_series(1, 50) c; COMMIT; BEGIN;")
            })
            .collect::<String>(),
    );
    let mut backup = primary.backup();
    let _ = load.join();
    writer.run("VACUUM t");
    let verified = backup.run_server_tool("pg_verifybackup", &[]);
    assert!(verified.contains("backup successfully verified"), "{verified}");
    backup.start();
    let rows = backup.connect().rows(ALL);
    let (during, others): (Vec<String>, Vec<String>) = rows.iter().cloned().partition(|row| row.contains("|during|"));
    assert_eq!(others, before);
    assert_eq!(during.len() % 50, 0, "a transaction is there as a whole or not at all");
    change(&mut backup.connect(), 2);
    let expected = backup.connect().rows(ALL);
    assert_sound(&mut backup, &expected, "written to");
}

#[test]
fn a_recovery_to_a_point_between_flush_and_merge_shows_the_table_of_that_moment() {
    let archive = tempfile::Builder::new().prefix("cass-wal-").tempdir_in("/tmp").expect("no folder for the archive");
    fs::set_permissions(archive.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).expect("chmod");
    let command = format!("cp %p {}/%f", archive.path().display());
    let primary = cluster(&[("archive_mode", "on"), ("archive_command", &command)]);
    let backup = primary.backup();
    let mut session = primary.connect();
    let mut moments = Vec::new();
    for round in 1..=3 {
        change(&mut session, round);
        moments.push((format!("changed_{round}"), session.rows(ALL), session.segments_of("t")));
        session.run(&format!("SELECT pg_create_restore_point('changed_{round}')"));
    }
    session.run("SET cass.eager_merge_size = '100MB'");
    session.run("VACUUM t");
    assert_eq!(session.segments_of("t"), 1, "merged");
    moments.push(("merged".into(), session.rows(ALL), 1));
    session.run("SELECT pg_create_restore_point('merged'); DELETE FROM t");
    session.run("SELECT pg_switch_wal()");
    session.run("CHECKPOINT");
    cass_server_tests::wait_until("the last segment is archived", || {
        session
            .value("SELECT last_archived_wal >= pg_walfile_name(pg_current_wal_lsn() - 16777216) FROM pg_stat_archiver")
            == "t"
    });
    let restore = format!("cp {}/%f %p", archive.path().display());
    for (name, rows, segments) in &moments {
        let mut restored = backup.copy();
        restored.configure(&[
            ("archive_mode", "off"),
            ("restore_command", &restore),
            ("recovery_target_name", name),
            ("recovery_target_action", "promote"),
        ]);
        restored.mark("recovery.signal");
        restored.start();
        let mut session = restored.connect();
        cass_server_tests::wait_until("it is promoted", || session.value("SELECT pg_is_in_recovery()") == "f");
        assert_eq!(&session.rows(ALL), rows, "{name}");
        assert_eq!(session.segments_of("t"), *segments, "{name}");
        drop(session);
        assert_sound(&mut restored, rows, name);
    }
}

#[test]
fn a_primary_that_was_left_behind_is_rewound_to_the_new_one() {
    let mut old = cluster(&[("wal_keep_size", "512MB")]);
    let new = old.standby();
    let mut writer = old.connect();
    change(&mut writer, 1);
    new.catch_up_with(&old);
    new.promote();
    // Both go on by themselves: what the old one does is to be undone.
    (2..=3).for_each(|round| change(&mut writer, round));
    writer.run("INSERT INTO t SELECT 3000, c, 'lost' FROM generate_series(1, 500) c");
    writer.run("VACUUM t");
    writer.run("VACUUM FULL t");
    let mut session = new.connect();
    (4..=5).for_each(|round| change(&mut session, round));
    session.run("CHECKPOINT");
    drop(writer);
    old.stop(Shutdown::Fast);
    let source = format!("host={} port=5432 user=postgres dbname=postgres", new.socket().display());
    old.run_server_tool("pg_rewind", &["--source-server", &source, "--write-recovery-conf", "--no-sync"]);
    old.start();
    old.catch_up_with(&new);
    assert_eq!(old.connect().rows(ALL), session.rows(ALL));
    change(&mut session, 6);
    old.catch_up_with(&new);
    let expected = session.rows(ALL);
    assert_sound(&mut old, &expected, "rewound, and following");
}
