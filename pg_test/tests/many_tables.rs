//! A thousand tables in one database.

use cass_server_tests::Cluster;

const TABLES: u32 = 1000;

#[test]
fn a_thousand_tables_are_written_vacuumed_and_read() {
    let cluster = Cluster::with_settings(&[("cass.enforcement", "off"), ("max_locks_per_transaction", "512")]);
    let mut session = cluster.connect();
    for hundred in 0..TABLES / 100 {
        let tables: String = (hundred * 100..hundred * 100 + 100)
            .map(|n| {
                format!(
                    "CREATE TABLE t{n} (k int, c int, w text, PRIMARY KEY (k, c)) USING cass;
                     INSERT INTO t{n} SELECT 1, c, 'of {n}' FROM generate_series(1, 5) c;"
                )
            })
            .collect();
        session.run(&tables);
    }
    session.run("VACUUM");
    session.run("UPDATE t500 SET w = 'changed' WHERE k = 1 AND c = 2; DROP TABLE t501");
    let segments = session.value("SELECT count(DISTINCT relation) FROM cass_catalog.segment");
    assert_eq!(segments, "1000", "the list names the tables that a snapshot may still read");
    for mut session in [session, cluster.connect()] {
        let mut wrong = Vec::new();
        for n in (0..TABLES).filter(|n| *n != 501) {
            let rows = session.rows(&format!("SELECT count(*), min(w), max(w) FROM t{n} WHERE k = 1"));
            let least = if n == 500 { "changed".to_string() } else { format!("of {n}") };
            if rows != [format!("5|{least}|of {n}")] {
                wrong.push((n, rows));
            }
        }
        assert!(wrong.is_empty(), "{wrong:?}");
    }
    let mut session = cluster.connect();
    session.run("VACUUM");
    assert_eq!(session.value("SELECT count(DISTINCT relation) FROM cass_catalog.segment"), "999");
}
