//! What loads, sorts and merges take of memory: `maintenance_work_mem` and 64 MB, whatever the size of the table.

use cass_server_tests::{Cluster, Session};
use std::fs;
use std::thread::sleep;
use std::time::Duration;

const MEGABYTE: u64 = 1 << 20;
/// `maintenance_work_mem` of these tests.
const SETTING: u64 = 16 * MEGABYTE;

/// Memory of a process's own, in bytes.
fn own_memory(process: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() * 1024
}

/// Runs a statement; how much the backend's memory grew at the most.
fn growth(session: Session, sql: &str) -> (Session, u64) {
    let process = session.process();
    let before = own_memory(process);
    assert!(before > 0, "no memory of process {process} is known");
    let running = session.in_background(sql);
    let mut most = before;
    while !running.is_finished() {
        most = most.max(own_memory(process));
        sleep(Duration::from_millis(5));
    }
    (running.finish().0, most - before)
}

#[test]
fn loads_merges_and_rewrites_stay_within_their_memory() {
    let cluster = Cluster::with_settings(&[
        ("cass.enforcement", "off"),
        ("maintenance_work_mem", "16MB"),
        ("work_mem", "4MB"),
        ("max_parallel_workers_per_gather", "0"),
    ]);
    let mut session = cluster.connect();
    session.run(
        "CREATE TABLE source (k int, w text) USING heap; ALTER TABLE source ALTER w SET STORAGE PLAIN;
         INSERT INTO source SELECT k, (SELECT string_agg(md5((k * 1000 + i)::text), '') FROM generate_series(1, 200) i)
           FROM generate_series(1, 40000) k;
         CREATE TABLE t (k int PRIMARY KEY, w text) USING cass; ALTER TABLE t ALTER w SET STORAGE PLAIN;
         SET cass.eager_merge_size = '1GB'",
    );
    let bytes = session.count("SELECT pg_relation_size('source')");
    assert!(bytes > 3 * (SETTING + 64 * MEGABYTE), "{bytes} bytes would fit");
    for (sql, segments) in [
        ("INSERT INTO t SELECT k, w FROM source", 1),
        ("UPDATE t SET w = reverse(w) WHERE k > 20000", 1),
        ("VACUUM t", 1),
        ("VACUUM FULL t", 1),
        ("SELECT * FROM cass_check('t')", 1),
        ("CREATE INDEX ON t (left(w, 20))", 1),
    ] {
        let grown;
        (session, grown) = growth(session, sql);
        assert!(grown < SETTING + 64 * MEGABYTE, "{sql}: {} MB", grown / MEGABYTE);
        assert_eq!(session.count("SELECT count(*) FROM cass_segments('t')"), segments, "after {sql}");
    }
    assert_eq!(session.value("SELECT count(*) FROM t JOIN source s USING (k) WHERE t.w = CASE WHEN k > 20000 THEN reverse(s.w) ELSE s.w END"), "40000");
}
