//! TABLESAMPLE: which rows it may give, how many, and that REPEATABLE repeats.

use cass_server_tests::{Cluster, Installation, Session, Shutdown};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

const TABLES: [&str; 3] = ["narrow", "wide", "unplaced"];

fn tables() -> (Cluster, Session) {
    let cluster = Cluster::new();
    let mut session = cluster.connect();
    session.run(
        "CREATE TABLE narrow (k int PRIMARY KEY, v int) USING cass;
         CREATE TABLE wide (k int, c int, v int, PRIMARY KEY (k, c)) USING cass;
         CREATE TABLE unplaced (k int, v int) USING cass;
         INSERT INTO narrow SELECT i, i FROM generate_series(1, 20000) i;
         INSERT INTO wide SELECT i % 3, i, i FROM generate_series(1, 20000) i;
         INSERT INTO unplaced SELECT i, i FROM generate_series(1, 20000) i",
    );
    (cluster, session)
}

/// Runs `check` with rows in the delta, in segments, and in both.
fn in_all_places(check: impl Fn(&mut Session, &str)) {
    let (_cluster, mut session) = tables();
    for table in TABLES {
        check(&mut session, table);
        session.flush(table);
        check(&mut session, table);
        session.run(&format!(
            "INSERT INTO {table} SELECT * FROM {table} WHERE v % 10 = 3 AND cass_allow_filtering(); DELETE FROM {table} WHERE v = 77 AND cass_allow_filtering()"
        ));
        check(&mut session, table);
    }
}

fn number(session: &mut Session, sql: &str) -> i64 {
    session.value(sql).parse().expect("a number")
}

#[test]
fn a_sample_of_all_is_every_row_once() {
    in_all_places(|session, table| {
        let rows = session.rows(&format!("SELECT count(*), count(DISTINCT v), sum(v) FROM {table}"));
        for method in ["BERNOULLI", "SYSTEM"] {
            let sample = format!("FROM {table} TABLESAMPLE {method} (100)");
            assert_eq!(session.rows(&format!("SELECT count(*), count(DISTINCT v), sum(v) {sample}")), rows, "{sample}");
            assert_eq!(session.value(&format!("SELECT count(*) {}", sample.replace("100", "0"))), "0", "{sample}");
        }
    });
}

#[test]
fn a_sample_has_about_its_share_of_the_rows() {
    in_all_places(|session, table| {
        for seed in 1..4 {
            let sampled = number(
                session,
                &format!("SELECT count(*) FROM {table} TABLESAMPLE BERNOULLI (10) REPEATABLE ({seed})"),
            );
            assert!((1600..=2600).contains(&sampled), "{table}: {sampled}");
        }
        // Parts of the ring differ in size: a partition is taken as a whole.
        let mean = (1..=40)
            .map(|seed| {
                number(session, &format!("SELECT count(*) FROM {table} TABLESAMPLE SYSTEM (50) REPEATABLE ({seed})"))
            })
            .sum::<i64>()
            / 40;
        assert!((6_500..=15_000).contains(&mean), "{table}: {mean}");
    });
}

#[test]
fn partitions_are_sampled_as_a_whole_by_system() {
    let (_cluster, mut session) = tables();
    session.flush("wide");
    for seed in 1..20 {
        let sizes = session.rows(&format!(
            "SELECT s.n = t.n FROM (SELECT k, count(*) AS n FROM wide TABLESAMPLE SYSTEM (40) REPEATABLE ({seed}) GROUP BY k) s
             JOIN (SELECT k, count(*) AS n FROM wide GROUP BY k) t USING (k)"
        ));
        assert!(sizes.iter().all(|same| same == "t"), "{sizes:?}");
    }
}

#[test]
fn a_repeatable_bernoulli_sample_outlives_vacuum() {
    let (_cluster, mut session) = tables();
    for table in TABLES {
        let sample = format!("SELECT v FROM {table} TABLESAMPLE BERNOULLI (5) REPEATABLE (9) ORDER BY v");
        let before = session.rows(&sample);
        assert!(before.len() > 700, "{}", before.len());
        assert_eq!(session.rows(&sample), before);
        session.flush(table);
        assert_eq!(session.rows(&sample), before, "{table}");
    }
}

#[test]
fn a_repeated_sample_starts_over() {
    let (_cluster, mut session) = tables();
    session.run("SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off");
    for method in ["BERNOULLI", "SYSTEM"] {
        let counts = session.rows(&format!(
            "SELECT g, (SELECT count(*) FROM narrow TABLESAMPLE {method} (30) REPEATABLE (g)) FROM unnest(ARRAY[5, 6, 5, 6]) g"
        ));
        assert_eq!((&counts[0], &counts[1]), (&counts[2], &counts[3]), "{counts:?}");
        assert_ne!(counts[0].split('|').nth(1), counts[1].split('|').nth(1), "{counts:?}");
    }
}

#[test]
fn methods_of_other_extensions_sample_too() {
    if !Installation::default().has_library("tsm_system_rows") {
        return;
    }
    let (_cluster, mut session) = tables();
    session.run("CREATE EXTENSION tsm_system_rows; CREATE EXTENSION tsm_system_time");
    for table in TABLES {
        for flushed in [false, true] {
            if flushed {
                session.flush(table);
            }
            for wanted in [0, 1, 291, 1000, 20_000] {
                let counts = session.rows(&format!(
                    "SELECT count(*), count(DISTINCT v) FROM {table} TABLESAMPLE system_rows({wanted})"
                ));
                assert_eq!(counts, [format!("{wanted}|{wanted}")], "{table}");
            }
            let sampled =
                number(&mut session, &format!("SELECT count(DISTINCT v) FROM {table} TABLESAMPLE system_time(60000)"));
            assert_eq!(sampled, 20_000, "{table}");
        }
    }
}

#[test]
fn a_sample_reads_only_its_part_of_the_ring() {
    let (mut cluster, mut session) = tables();
    session.flush("narrow");
    cluster.expect_damage();
    let path = session.value("SELECT pg_relation_filepath('narrow')");
    let first = session.value("SELECT first_block FROM cass_segments('narrow')").parse::<u64>().expect("a block");
    drop(session);
    cluster.stop(Shutdown::Fast);
    let file = OpenOptions::new().write(true).open(cluster.data().join(path)).expect("the file of the table");
    file.write_all_at(b"damage", first * 8192 + 4000).expect("a page is damaged");
    cluster.start();
    let mut session = cluster.connect();
    let mut sample = |share: u32, seed: u32| {
        session
            .try_rows(&format!("SELECT count(*) FROM narrow TABLESAMPLE SYSTEM ({share}) REPEATABLE ({seed})"))
            .is_ok()
    };
    let sound = (1..=40).filter(|seed| sample(5, *seed)).count();
    assert!((1..40).contains(&sound), "{sound}");
    assert!(!sample(100, 1), "the damage is nowhere");
}

#[test]
fn a_sample_is_a_read_of_the_whole_table_to_the_refusals() {
    let (_cluster, mut session) = tables();
    let error = session.error("SELECT * FROM wide TABLESAMPLE SYSTEM (50) WHERE v = 3");
    assert!(error.starts_with("42K01"), "{error}");
    let error =
        session.error("SELECT * FROM wide TABLESAMPLE SYSTEM (50) JOIN narrow n ON wide.k = n.v WHERE wide.v = 3");
    assert!(error.starts_with("42K01"), "{error}");
    session.run("SELECT * FROM wide TABLESAMPLE SYSTEM (50) WHERE v = 3 AND cass_allow_filtering()");
    assert_eq!(session.value("SELECT count(*) FROM wide TABLESAMPLE BERNOULLI (100) WHERE k = 1"), "6667");
    session.run("SET cass.enforcement = strict");
    let error = session.error("SELECT * FROM wide TABLESAMPLE SYSTEM (50)");
    assert!(error.starts_with("42K01"), "{error}");
}
