//! `cass_check`: nothing of sound tables, and the fault of each kind of damage.

use cass_server_tests::{Cluster, Session};

const CREATE: &str = "CREATE TABLE t (a int, b int, v text, PRIMARY KEY (a, b)) USING cass";

/// 20 partitions of 100 rows in a segment, and some of them again in the delta.
fn create(session: &mut Session) {
    session.run(CREATE);
    session
        .run("INSERT INTO t SELECT a, b, md5(a || '.' || b) FROM generate_series(1, 20) a, generate_series(1, 100) b");
    session.flush("t");
    session.run("INSERT INTO t SELECT a, 1, 'again' FROM generate_series(1, 5) a; DELETE FROM t WHERE a = 6 AND b = 6");
}

#[test]
fn a_sound_table_has_no_faults() {
    let cluster = Cluster::new();
    let mut session = cluster.connect();
    session.run(CREATE);
    session.assert_sound("t");
    session.run("DROP TABLE t");
    create(&mut session);
    session.assert_sound("t");
    session.run("CREATE INDEX ON t (v)");
    session.run("CREATE INDEX ON t USING hash (v)");
    session.run("CREATE INDEX ON t USING gin (string_to_array(v, 'a'))");
    session.run("CREATE INDEX ON t USING gist (point(a, b))");
    session.run("CREATE INDEX ON t USING spgist (v)");
    session.run("CREATE INDEX ON t (b DESC, length(v)) INCLUDE (v) WHERE a % 2 = 0");
    session.assert_sound("t");
    session.run("UPDATE t SET v = repeat(v, 300) WHERE a = 3; UPDATE t SET b = 1000 WHERE a = 4 AND b = 4");
    session.assert_sound("t");
    session.run("VACUUM t");
    session.assert_sound("t");
}
