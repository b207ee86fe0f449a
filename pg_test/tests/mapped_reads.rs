//! Reads of flushed partitions: through the memory map, few pages, none of them in shared buffers.

use cass_server_tests::{Cluster, Session};

/// Accesses to shared buffers of a table's main fork, by all sessions whose statistics have arrived.
fn buffer_accesses(session: &mut Session, table: &str) -> u64 {
    session.run("SELECT pg_stat_force_next_flush()");
    session.run("SELECT pg_stat_clear_snapshot()");
    session.count(&format!(
        "SELECT heap_blks_hit + heap_blks_read FROM pg_statio_all_tables WHERE relid = '{table}'::regclass"
    ))
}

/// The number that EXPLAIN ANALYZE gives for `what`.
fn explained(session: &mut Session, what: &str, query: &str) -> u64 {
    let plan = session.rows(&format!("EXPLAIN (ANALYZE, COSTS off) {query}")).join("\n");
    let number = plan.lines().find_map(|line| line.trim().strip_prefix(&format!("{what}: ")));
    number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no {what} in:\n{plan}"))
}

#[test]
fn a_warm_partition_read_uses_the_map_and_no_shared_buffers() {
    let cluster = Cluster::new();
    let mut session = cluster.connect();
    session.run(
        "CREATE TABLE readings (sensor int, ts int, v text, PRIMARY KEY (sensor, ts)) USING cass
           WITH (clustering_order = 'ts DESC');
         INSERT INTO readings SELECT s, t, md5(t::text) FROM generate_series(1, 20) s, generate_series(1, 500) t",
    );
    session.flush("readings");
    let newest = "SELECT ts FROM readings WHERE sensor = 7 ORDER BY ts DESC LIMIT 2";
    assert_eq!(session.rows(newest), ["500", "499"]);
    let before = buffer_accesses(&mut session, "readings");
    for _ in 0..50 {
        assert_eq!(session.rows(newest), ["500", "499"]);
    }
    assert_eq!(buffer_accesses(&mut session, "readings"), before);
    let file = session.value("SELECT pg_relation_filepath('readings')");
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", session.process())).unwrap_or_default();
    assert!(maps.contains(&file), "{file} is not mapped:\n{maps}");
}

#[test]
fn the_newest_rows_of_a_partition_of_a_million_touch_at_most_four_pages() {
    let cluster = Cluster::new();
    let mut session = cluster.connect();
    session.run(
        "CREATE TABLE events (stream int, ts int, v text, PRIMARY KEY (stream, ts)) USING cass
           WITH (clustering_order = 'ts DESC');
         INSERT INTO events SELECT 1, t, repeat(chr(65 + t % 26), 60) FROM generate_series(1, 1000000) t",
    );
    session.run("VACUUM FULL events");
    // The first read of a session opens the segment by its footer.
    let oldest = "SELECT ts FROM events WHERE stream = 1 ORDER BY ts LIMIT 1";
    assert_eq!(session.rows(oldest), ["1"]);
    let newest = "SELECT ts FROM events WHERE stream = 1 ORDER BY ts DESC LIMIT 20";
    let pages = explained(&mut session, "Pages", newest);
    assert!((1..=4).contains(&pages), "{pages} pages");
    assert_eq!(explained(&mut session, "Segments Read", newest), 1);
    let rows = session.rows(newest);
    assert_eq!((rows.len(), rows[0].as_str(), rows[19].as_str()), (20, "1000000", "999981"));
}
