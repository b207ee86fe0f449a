//! Merges of segments keep what is newest, and what hides older rows elsewhere.

use cass_server_tests::{Cluster, Session};

/// Sequences of the segments, oldest first: `low-high`.
fn sequences(session: &mut Session) -> Vec<String> {
    session.rows(
        "SELECT format('%s-%s', sequence_low, sequence_high) FROM cass_catalog.segment
         WHERE relation = 't'::regclass AND published ORDER BY sequence_low",
    )
}

#[test]
fn a_tombstone_outlives_merges_that_leave_an_older_segment_out() {
    let cluster = Cluster::with_settings(&[("cass.enforcement", "off")]);
    let mut session = cluster.connect();
    // So large that merges of the small ones which follow are not worth rewriting it.
    session.run(
        "CREATE TABLE t (k int PRIMARY KEY, v text) USING cass;
         INSERT INTO t SELECT k, (SELECT string_agg(md5((k + h * 100000)::text), '') FROM generate_series(0, 58) h)
           FROM generate_series(1, 12000) k",
    );
    session.flush("t");
    let oldest = sequences(&mut session);
    assert_eq!(oldest.len(), 1);
    let mut merged = false;
    for round in 1..=9 {
        session.run(&format!("DELETE FROM t WHERE k = {round}; INSERT INTO t VALUES ({round} + 100, 'new')"));
        session.flush("t");
        let now = sequences(&mut session);
        assert_eq!(now[0], oldest[0], "the oldest segment is left out");
        merged |= now[1..].iter().any(|sequence| sequence.split_once('-').is_some_and(|(low, high)| low != high));
        assert_eq!(session.count("SELECT count(*) FROM t"), 12_000 - round);
        assert_eq!(session.count("SELECT count(*) FROM t WHERE k <= 9"), 9 - round);
        assert_eq!(session.count(&format!("SELECT count(*) FROM t WHERE k = {round}")), 0);
        assert_eq!(session.count("SELECT count(*) FROM t WHERE v = 'new'"), round);
    }
    assert!(merged, "nothing was merged: {:?}", sequences(&mut session));
    session.run("VACUUM FULL t");
    // Takes the segments of the table's earlier files off the list.
    session.flush("t");
    let left = session.value(
        "SELECT count(*), sum(row_count), sum(tombstone_count) FROM cass_catalog.segment
         WHERE relation = 't'::regclass AND published",
    );
    assert_eq!(left, "1|11991|0", "one segment, without tombstones");
    assert_eq!(session.count("SELECT count(*) FROM t WHERE k <= 9"), 0);
}

#[test]
fn a_small_table_that_is_updated_and_vacuumed_again_and_again_is_read_from_one_segment() {
    let cluster = Cluster::with_settings(&[("cass.enforcement", "off")]);
    let mut session = cluster.connect();
    let pages = |session: &mut Session, eager_merge_size: &str| {
        session.run(&format!(
            "SET cass.eager_merge_size = '{eager_merge_size}';
             CREATE TABLE t (p int, c int, v text, PRIMARY KEY (p, c)) USING cass;
             INSERT INTO t SELECT p, c, md5(p || '.' || c) FROM generate_series(1, 20) p, generate_series(1, 200) c"
        ));
        session.run("VACUUM t");
        for round in 1..=10 {
            session.run(&format!("UPDATE t SET v = '{round}' WHERE c % 10 = {round} % 10"));
            session.run("VACUUM t");
        }
        // The first read of a session opens the segments.
        let read = "SELECT p, c, v FROM t WHERE p = 7";
        let rows = session.rows(read);
        assert_eq!((rows.len(), rows[0].as_str(), rows[9].as_str()), (200, "7|1|1", "7|10|10"));
        let plan = session.rows(&format!("EXPLAIN (ANALYZE, COSTS off) {read}")).join("|");
        let pages = plan.split("Pages: ").nth(1).and_then(|rest| rest.split('|').next().and_then(|n| n.parse().ok()));
        let segments = session.segments_of("t");
        session.run("DROP TABLE t");
        (segments, pages.unwrap_or_else(|| panic!("no pages in {plan}")))
    };
    let (apart, pages_apart): (u64, u64) = pages(&mut session, "0");
    let (segments, read): (u64, u64) = pages(&mut session, "4MB");
    println!("{apart} segments and {pages_apart} pages, {segments} and {read} merged eagerly");
    assert!(apart > 1, "{apart} segments");
    assert_eq!(segments, 1);
    assert!(read <= 4 && read < pages_apart, "{read} pages, {pages_apart} of {apart} segments");
}
