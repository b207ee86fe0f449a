//! What the cumulative statistics say of a cass table.

use cass_server_tests::Cluster;

#[test]
fn a_read_of_the_whole_table_and_its_rows_are_counted() {
    let cluster = Cluster::with_settings(&[("cass.enforcement", "off")]);
    let mut session = cluster.connect();
    session.run(
        "CREATE TABLE t (k int PRIMARY KEY, v int) USING cass;
         INSERT INTO t SELECT k, k FROM generate_series(1, 5) k",
    );
    session.run("SELECT * FROM t");
    session.run("SELECT * FROM t WHERE v = 2");
    session.run("SELECT * FROM t WHERE k = 2");
    session.run("SELECT pg_stat_force_next_flush()");
    let counted = "SELECT seq_scan, seq_tup_read FROM pg_stat_user_tables WHERE relname = 't'";
    assert_eq!(session.rows(counted), ["2|10"]);
}
