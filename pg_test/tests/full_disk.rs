//! A full disk is an error in whatever writes; nothing is lost, and all goes on once there is room.

use cass_server_tests::{give_to_server_user, Cluster, Session};
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

const MEGABYTE: usize = 1 << 20;
const FULL: &str = "53100";

/// A small file system of its own, and a file in it that takes its room.
struct Disk {
    folder: TempDir,
}

impl Disk {
    /// Panics where file systems cannot be mounted: the tests need root.
    fn new(megabytes: usize) -> Disk {
        let folder = tempfile::Builder::new().prefix("cass-disk").tempdir_in("/var/tmp").expect("a folder");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={megabytes}m"), "cass-test"]).arg(folder.path());
        assert!(mount.status().expect("mount").success(), "{mount:?} failed; it needs root");
        give_to_server_user(folder.path());
        Disk { folder }
    }

    fn ballast(&self) -> PathBuf {
        self.folder.path().join("ballast")
    }

    /// Leaves so much room.
    fn leave(&self, bytes: usize) {
        let mut ballast = File::create(self.ballast()).expect("a file");
        let page = [1; 4096];
        while ballast.write_all(&page).is_ok() {}
        let written = ballast.metadata().expect("its size").len();
        ballast.set_len(written.saturating_sub(bytes as u64)).expect("it becomes shorter");
    }

    fn empty(&self) {
        fs::remove_file(self.ballast()).expect("the ballast goes");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.folder.path()).status();
    }
}

/// A table on a small disk, with rows in a segment and in the delta. The disk comes first, so that it is dropped last.
fn create(megabytes: usize) -> (Disk, Cluster, Session) {
    let disk = Disk::new(megabytes);
    let cluster = Cluster::with_settings(&[("cass.enforcement", "off")]);
    let mut session = cluster.connect();
    session.run(&format!("CREATE TABLESPACE small LOCATION '{}'", disk.folder.path().display()));
    session.run(
        "CREATE TABLE t (k int PRIMARY KEY, v int, w text) USING cass TABLESPACE small;
         ALTER TABLE t ALTER w SET STORAGE PLAIN;
         INSERT INTO t SELECT k, k, md5(k::text) FROM generate_series(1, 3000) k",
    );
    session.flush("t");
    session.run("UPDATE t SET v = v + 1 WHERE k <= 500; DELETE FROM t WHERE k > 2900");
    (disk, cluster, session)
}

const ALL: &str = "SELECT count(*), sum(v), count(DISTINCT w), min(k), max(k) FROM t";

/// Runs what needs more room than there is, and again when there is enough.
fn fails_and_succeeds(
    session: &mut Session,
    disk: &Disk,
    room: usize,
    mut run: impl FnMut(&mut Session) -> Result<(), String>,
) {
    let before = session.rows(ALL);
    disk.leave(room);
    for _ in 0..2 {
        let error = run(session).expect_err("the disk is full");
        assert!(error.starts_with(FULL), "{error}");
        assert_eq!(session.rows(ALL), before, "after {error}");
        assert_eq!(session.rows("SELECT * FROM cass_check('t')"), [""; 0]);
    }
    disk.empty();
    run(session).unwrap_or_else(|error| panic!("there is room: {error}"));
}

fn fails(session: &mut Session, disk: &Disk, room: usize, sql: &str) {
    fails_and_succeeds(session, disk, room, |session| {
        session.try_rows(sql).map(drop).map_err(|error| {
            error
                .as_db_error()
                .map_or_else(|| error.to_string(), |error| format!("{} {}", error.code().code(), error.message()))
        })
    });
}

#[test]
fn small_writes_to_a_full_disk_are_an_error() {
    let (disk, _cluster, mut session) = create(16);
    fails(
        &mut session,
        &disk,
        0,
        "INSERT INTO t SELECT k, 1, repeat(md5(k::text), 8) FROM generate_series(5001, 8000) k",
    );
    fails(&mut session, &disk, 0, "UPDATE t SET w = repeat(md5(k::text), 9)");
    fails(&mut session, &disk, 0, "DELETE FROM t WHERE k > 300");
    assert_eq!(session.rows("SELECT count(*) FROM t"), ["300"]);
}

#[test]
fn a_flush_a_merge_and_an_index_on_a_full_disk_are_errors() {
    let (disk, _cluster, mut session) = create(64);
    session.run("INSERT INTO t SELECT k, 1, md5(k::text) || md5((-k)::text) FROM generate_series(5001, 30000) k");
    let before = session.rows(ALL);
    fails(&mut session, &disk, 0, "VACUUM t");
    assert_eq!(session.rows(ALL), before);
    assert_eq!(session.delta_rows_of("t"), 0);
    session.run("UPDATE t SET v = v + 1");
    session.run("SET cass.eager_merge_size = '64MB'");
    let before = session.rows(ALL);
    // There is room for the flushed rows, and none for those of both segments.
    fails(&mut session, &disk, MEGABYTE, "VACUUM t");
    assert_eq!((session.rows(ALL), session.segments_of("t")), (before, 1));
    fails(&mut session, &disk, 0, "CREATE INDEX ON t (w) TABLESPACE small");
    assert_eq!(session.value("SELECT count(*) FROM t WHERE w = md5('77')"), "1");
    let before = session.rows(ALL);
    fails(&mut session, &disk, 0, "VACUUM FULL t");
    assert_eq!(session.rows(ALL), before);
    session.run("ALTER TABLE t SET TABLESPACE pg_default");
    fails(&mut session, &disk, 0, "ALTER TABLE t SET TABLESPACE small");
    assert_eq!(session.rows(ALL), before);
}

#[test]
fn a_load_that_becomes_a_segment_on_a_full_disk_is_an_error() {
    let (disk, _cluster, mut session) = create(128);
    session.run("CREATE TABLE source (k int, w text); ALTER TABLE source ALTER w SET STORAGE PLAIN");
    session.run(
        "INSERT INTO source SELECT k, (SELECT string_agg(md5((k * 1000 + i)::text), '') FROM generate_series(1, 230) i)
         FROM generate_series(10001, 22000) k",
    );
    let segments = session.segments_of("t");
    fails(&mut session, &disk, 8 * MEGABYTE, "INSERT INTO t SELECT k, 0, w FROM source");
    assert_eq!(session.segments_of("t"), segments + 1, "the load was to become a segment");
    assert_eq!(session.value("SELECT count(*) FROM t t JOIN source s USING (k) WHERE t.w = s.w"), "12000");
}
