//! A main fork of more than 1 GB, which PostgreSQL keeps in more than one file.

use cass_server_tests::{Cluster, Session};

/// Pages of 8 kB in a file of a relation (RELSEG_SIZE).
const PAGES_OF_A_FILE: u64 = 131_072;

fn runs_across_files(session: &mut Session) -> u64 {
    session.count(&format!(
        "SELECT count(*) FROM cass_catalog.segment WHERE relation = 't'::regclass AND published
          AND first_block < {PAGES_OF_A_FILE} AND first_block + page_count > {PAGES_OF_A_FILE}"
    ))
}

fn assert_all_there(session: &mut Session, keys: u32) {
    assert_eq!(
        session.rows("SELECT count(*), count(*) FILTER (WHERE left(v, 32) = md5(k::text)), sum(k::bigint) FROM t"),
        [format!("{keys}|{keys}|{}", u64::from(keys) * u64::from(keys + 1) / 2)]
    );
    for k in [1, keys / 2, keys] {
        assert_eq!(session.rows(&format!("SELECT left(v, 32) = md5('{k}') FROM t WHERE k = {k}")), ["t"]);
    }
}

/// The blocks before the run are taken by a reservation without pages, so that the files are large but almost empty.
#[test]
fn a_run_across_two_files_is_read_whole() {
    let mut cluster = Cluster::with_settings(&[("cass.enforcement", "off")]);
    let mut session = cluster.connect();
    session.run("CREATE TABLE t (k int PRIMARY KEY, v text) USING cass; INSERT INTO t VALUES (1, md5('1'))");
    session.flush("t");
    session.run(&format!(
        "INSERT INTO cass_catalog.segment (relation, storage_id, run_id, first_block, page_count, published, bulk, sequence_low,
            sequence_high, row_count, tombstone_count, min_key, max_key)
         SELECT relation, storage_id, 1000000, first_block + page_count, {PAGES_OF_A_FILE} - 5 - first_block - page_count, false, false,
            0, 0, 0, 0, '', '' FROM cass_catalog.segment WHERE relation = 't'::regclass"
    ));
    session.run("INSERT INTO t SELECT k, md5(k::text) || md5((k + 1)::text) || md5((k + 2)::text) FROM generate_series(2, 3000) k");
    let standby = cluster.standby();
    session.flush("t");
    assert_eq!(runs_across_files(&mut session), 1);
    let second = session.value("SELECT pg_relation_filepath('t') || '.1'");
    assert!(cluster.data().join(&second).exists(), "{second}");
    assert_all_there(&mut session, 3000);
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", session.process())).unwrap_or_default();
    assert!(maps.contains(&second), "{second} is not mapped:\n{maps}");
    standby.catch_up_with(&cluster);
    assert_all_there(&mut standby.connect(), 3000);
    drop(session);
    cluster.kill();
    cluster.start();
    assert_all_there(&mut cluster.connect(), 3000);
}

/// The same with more than 1 GB of rows. Takes some six minutes with a library built without optimisation, so it runs only where
/// `CASS_SLOW_TESTS` is set.
#[test]
fn more_than_a_gigabyte_of_rows_is_read_whole() {
    if std::env::var_os("CASS_SLOW_TESTS").is_none() {
        println!("not run: CASS_SLOW_TESTS is not set");
        return;
    }
    let mut cluster =
        Cluster::with_settings(&[("cass.enforcement", "off"), ("max_wal_size", "16GB"), ("lock_timeout", "0")]);
    let mut session = cluster.connect();
    // 59 hashes are 1,888 characters, below what is stored out of line.
    let (keys, loads) = (600_000, 2);
    session.run("CREATE TABLE t (k int PRIMARY KEY, v text) USING cass");
    for load in 0..loads {
        let (first, last) = (keys / loads * load + 1, keys / loads * (load + 1));
        session.run(&format!(
            "INSERT INTO t SELECT k, (SELECT string_agg(md5((k + h * 5000000)::text), '' ORDER BY h) FROM generate_series(0, 58) h)
             FROM generate_series({first}, {last}) k"
        ));
    }
    session.run("VACUUM t");
    assert!(session.count("SELECT pg_relation_size('t')") > 1 << 30);
    assert_all_there(&mut session, keys);
    session.run("VACUUM FULL t");
    // Takes the segments of the table's earlier files off the list.
    session.flush("t");
    assert_eq!(runs_across_files(&mut session), 1);
    assert_all_there(&mut session, keys);
    drop(session);
    cluster.kill();
    cluster.start();
    assert_all_there(&mut cluster.connect(), keys);
}
