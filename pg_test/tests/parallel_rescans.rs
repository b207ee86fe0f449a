//! A parallel read that is repeated gives each row once a time.

use cass_server_tests::Cluster;

#[test]
fn a_repeated_parallel_read_gives_each_row_once_a_time() {
    let cluster = Cluster::with_settings(&[("cass.enforcement", "off"), ("max_parallel_workers_per_gather", "4")]);
    let mut session = cluster.connect();
    session.run(
        "CREATE TABLE unplaced (k int, v int) USING cass;
         INSERT INTO unplaced SELECT k, k % 4 FROM generate_series(1, 10000) k;
         CREATE TABLE placed (k int PRIMARY KEY, v int) USING cass;
         INSERT INTO placed SELECT k, k % 4 FROM generate_series(1, 10000) k;
         ANALYZE;
         ALTER TABLE unplaced SET (parallel_workers = 4);
         ALTER TABLE placed SET (parallel_workers = 4)",
    );
    for flushed in [false, true] {
        for table in ["unplaced", "placed"] {
            if flushed {
                session.flush(table);
            }
            session.run(
                "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
                 SET enable_material = off; SET enable_hashagg = off; SET enable_hashjoin = off; SET enable_mergejoin = off",
            );
            let query = format!(
                "SELECT x, v, n FROM (SELECT v, count(k) AS n FROM {table} GROUP BY v ORDER BY v) s \
                 RIGHT JOIN (VALUES (1), (2), (3)) l(x) ON true"
            );
            let plan = session.rows(&format!("EXPLAIN {query}")).join("\n");
            assert!(plan.contains("Gather"), "{plan}");
            let expected: Vec<String> = (1..=3).flat_map(|x| (0..4).map(move |v| format!("{x}|{v}|2500"))).collect();
            assert_eq!(session.rows(&query), expected, "{table}, flushed: {flushed}\n{plan}");
        }
    }
}
