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
