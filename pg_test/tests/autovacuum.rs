//! Autovacuum flushes and merges by itself while rows keep coming.

use cass_server_tests::{wait_until, Cluster};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::scope;

#[test]
fn autovacuum_keeps_the_delta_and_the_number_of_segments_small_under_a_steady_load() {
    let cluster = Cluster::with_settings(&[
        ("autovacuum", "on"),
        ("autovacuum_naptime", "1s"),
        ("autovacuum_vacuum_cost_delay", "0"),
        ("cass.enforcement", "off"),
    ]);
    let mut session = cluster.connect();
    session.run(
        "CREATE TABLE t (sensor int, at int, v int, PRIMARY KEY (sensor, at)) USING cass
         WITH (clustering_order = 'at DESC', autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0,
               autovacuum_vacuum_insert_threshold = 500, autovacuum_vacuum_insert_scale_factor = 0)",
    );
    let (written, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let flushes = "SELECT autovacuum_count FROM pg_stat_user_tables WHERE relname = 't'";
    let most_segments = scope(|scope| {
        scope.spawn(|| {
            let mut writer = cluster.connect();
            while !stop.load(Ordering::Relaxed) {
                let first = written.load(Ordering::Relaxed);
                writer.run(&format!("INSERT INTO t SELECT i % 50, i, i FROM generate_series({first}, {first} + 99) i"));
                written.store(first + 100, Ordering::Relaxed);
            }
        });
        let mut most = 0;
        wait_until("autovacuum has flushed eight times", || {
            most = most.max(session.segments_of("t"));
            session.count(flushes) >= 8
        });
        stop.store(true, Ordering::Relaxed);
        most
    });
    let rows = written.load(Ordering::Relaxed);
    assert!(rows > 4_000, "{rows} rows: no load to speak of");
    assert!((1..=8).contains(&most_segments), "{most_segments} segments");
    wait_until("autovacuum has flushed what came last", || session.delta_rows_of("t") < 700);
    assert_eq!(
        session.rows("SELECT count(*), count(DISTINCT at), sum(v) FROM t"),
        [format!("{rows}|{rows}|{}", rows * (rows - 1) / 2)]
    );
    assert_eq!(session.value("SELECT min(at) FROM t WHERE sensor = 7"), "7");
}
