//! Loads: what COPY and large INSERT ... SELECT bring wins over what was there, and loaders do not hold each other up.

use cass_server_tests::{Cluster, Session};

/// Enough rows for a load to go straight into a segment: more than 64 MB.
const MANY: u32 = 36_000;

fn cluster() -> Cluster {
    Cluster::with_settings(&[("cass.enforcement", "off"), ("max_wal_size", "4GB")])
}

fn create(session: &mut Session) {
    session.run("CREATE TABLE t (k int PRIMARY KEY, v text, n int) USING cass");
}

/// A statement that loads keys from 1 to [`MANY`], the first of them twice.
fn load(word: &str) -> String {
    format!(
        "INSERT INTO t SELECT k, '{word}' || repeat('x', 1900), k FROM generate_series(1, {MANY}) k
         UNION ALL SELECT 1, '{word}', 0 ORDER BY 3 DESC"
    )
}

const SUMMARY: &str = "SELECT left(v, 3), count(*), min(k), max(k) FROM t GROUP BY 1 ORDER BY 1";

fn bulk_segments(session: &mut Session) -> u64 {
    session.count("SELECT count(*) FROM cass_catalog.segment WHERE relation = 't'::regclass AND published AND bulk")
}

#[test]
fn a_large_load_wins_over_keys_that_wait_in_the_delta() {
    let cluster = cluster();
    let mut session = cluster.connect();
    create(&mut session);
    session.run(&format!("INSERT INTO t SELECT k, 'old', k FROM generate_series(-10, {MANY} + 10, 1000) k"));
    session.flush("t");
    session.run(&format!("INSERT INTO t SELECT k, 'old', k FROM generate_series(-9, {MANY} + 9, 2000) k"));
    session.run("DELETE FROM t WHERE k IN (990, 2990); INSERT INTO t VALUES (7, 'old', 7)");
    let mut older = cluster.connect();
    older.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
    let before = older.rows(SUMMARY);
    session.run(&load("new"));
    assert_eq!(bulk_segments(&mut session), 1);
    let expected = [format!("new|{MANY}|1|{MANY}"), "old|2|-10|-9".to_owned()];
    assert_eq!(session.rows(SUMMARY), expected);
    assert_eq!(session.rows("SELECT n, length(v) FROM t WHERE k = 1"), ["0|3"], "the last row of a key wins");
    assert_eq!(session.rows("SELECT left(v, 3) FROM t WHERE k IN (7, 990, 2990)"), ["new"; 3]);
    assert_eq!(older.rows(SUMMARY), before, "a snapshot older than the load");
    session.run("VACUUM t");
    session.run("VACUUM t");
    assert_eq!(older.rows(SUMMARY), before, "the visibility map tells of the load, but not to an older snapshot");
    for write in ["INSERT INTO t VALUES (20, 'late', 0)", "UPDATE t SET n = 1 WHERE k = 7"] {
        older.run("SAVEPOINT s");
        assert!(older.error(write).starts_with("40001"), "{write}");
        older.run("ROLLBACK TO s");
    }
    older.run("COMMIT");
    session.run("UPDATE t SET v = 'upd' WHERE k = 7; DELETE FROM t WHERE k = 8");
    for _ in 0..2 {
        session.flush("t");
        assert_eq!(
            session.rows("SELECT k, left(v, 3) FROM t WHERE k IN (6, 7, 8, 9) ORDER BY k"),
            ["6|new", "7|upd", "9|new"]
        );
        assert_eq!(session.count("SELECT count(*) FROM t"), u64::from(MANY) - 1 + 2);
    }
}

#[test]
fn a_large_load_among_writers_waits_for_nobody_and_loses_nothing() {
    let cluster = cluster();
    let (mut session, mut writer) = (cluster.connect(), cluster.connect());
    create(&mut session);
    session.run("INSERT INTO t VALUES (7, 'old', 7), (-5, 'old', 5)");
    writer.run("BEGIN; INSERT INTO t VALUES (-1, 'mine', 0); UPDATE t SET v = 'mine' WHERE k = -5");
    session.run("SET lock_timeout = '20s'");
    session.run(&load("new"));
    assert_eq!(bulk_segments(&mut session), 0, "the table was in use");
    writer.run("COMMIT");
    assert_eq!(writer.rows(SUMMARY), ["min|2|-5|-1".to_owned(), format!("new|{MANY}|1|{MANY}")]);
    session.flush("t");
    assert_eq!(writer.count("SELECT count(*) FROM t"), u64::from(MANY) + 2);
}

#[test]
fn a_large_load_that_is_rolled_back_leaves_nothing() {
    let cluster = cluster();
    let mut session = cluster.connect();
    create(&mut session);
    session.run("INSERT INTO t VALUES (7, 'old', 7), (8, 'old', 8)");
    session.run("BEGIN; SAVEPOINT s");
    session.run(&load("new"));
    assert_eq!(session.rows("SELECT left(v, 3) FROM t WHERE k = 7"), ["new"]);
    session.run("ROLLBACK TO s; INSERT INTO t VALUES (9, 'own', 9); COMMIT");
    assert_eq!(session.rows(SUMMARY), ["old|2|7|8", "own|1|9|9"]);
    // The last row is an error.
    let failing = load("bad").replace("SELECT 1, 'bad', 0", "SELECT 1, 'bad', k / 0 FROM generate_series(0, 0) k");
    assert!(session.error(&failing).starts_with("22012"));
    assert_eq!(session.rows(SUMMARY), ["old|2|7|8", "own|1|9|9"]);
    session.flush("t");
    assert_eq!(session.rows(SUMMARY), ["old|2|7|8", "own|1|9|9"]);
}

#[test]
fn a_load_of_a_table_with_indexes_or_triggers_goes_through_them() {
    let cluster = cluster();
    let mut session = cluster.connect();
    create(&mut session);
    session.run(
        "CREATE INDEX t_n ON t (n);
         CREATE TABLE log (k int) USING heap;
         CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log VALUES (NEW.k); RETURN NULL; END $$;
         CREATE TRIGGER note AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION note();",
    );
    let lines: String = (1..=3000).map(|k| format!("{k}\tv{k}\t{}\n", k * 2)).collect();
    assert_eq!(session.copy("t", &lines), 3000);
    assert_eq!(session.count("SELECT count(DISTINCT k) FROM log"), 3000);
    session.run("SET enable_seqscan = off");
    assert_eq!(session.rows("SELECT k FROM t WHERE n = 5000"), ["2500"]);
    session.run("VACUUM t");
    assert_eq!(session.rows("SELECT k FROM t WHERE n BETWEEN 4999 AND 5002"), ["2500", "2501"]);
}

/// 1,000 lines of COPY, for one client and round.
fn lines(client: usize, round: usize) -> String {
    (0..1000).map(|i| format!("{}\tc{client}r{round}\t{i}\n", client * 1_000_000 + (round % 3) * 500 + i)).collect()
}

#[test]
fn eight_loaders_do_not_wait_for_one_anothers_commits() {
    let cluster = cluster();
    let mut session = cluster.connect();
    create(&mut session);
    let mut loaders: Vec<Session> = (0..8).map(|_| cluster.connect()).collect();
    for (client, loader) in loaders.iter_mut().enumerate() {
        loader.run("SET lock_timeout = '5s'; BEGIN");
        loader.copy("t", &lines(client, 0));
    }
    assert_eq!(session.count("SELECT count(*) FROM t"), 0, "none has committed");
    loaders.iter_mut().for_each(|loader| loader.run("COMMIT"));
    assert_eq!(session.count("SELECT count(*) FROM t"), 8000);
}

#[test]
fn segments_stay_few_under_loaders_that_never_stop() {
    let cluster = cluster();
    let mut session = cluster.connect();
    create(&mut session);
    let most = std::thread::scope(|scope| {
        let loaders: Vec<_> = (0..8)
            .map(|client| {
                let mut loader = cluster.connect();
                scope.spawn(move || {
                    for round in 0..6 {
                        loader.copy("t", &lines(client, round));
                    }
                })
            })
            .collect();
        let mut most = 0;
        while !loaders.iter().all(|loader| loader.is_finished()) {
            session.run("VACUUM t");
            most = most.max(session.segments_of("t"));
        }
        loaders.into_iter().for_each(|loader| loader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        most
    });
    for _ in 0..12 {
        session.copy("t", &lines(9, 0));
        session.run("VACUUM t");
    }
    let left = session.segments_of("t");
    println!("at most {most} segments, {left} at the end");
    assert!(most <= 12 && left <= 12, "at most {most} segments, {left} at the end");
    // Each client's keys are 0 to 1,999, and 0 to 999 for the ninth.
    assert_eq!(session.count("SELECT count(*) FROM t"), 8 * 2000 + 1000);
    let last = session.rows("SELECT DISTINCT v FROM t WHERE k BETWEEN 3000000 AND 3999999 ORDER BY v");
    assert_eq!(last, ["c3r3", "c3r4", "c3r5"]);
}
