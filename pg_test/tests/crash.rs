//! A server killed at any instant has, when it is back, every committed row and no other.
//!
//! Each writer owns a partition and keeps what it has committed; the transaction that the kill interrupts may be there or not,
//! but whole.

use cass_server_tests::{assert_same_rows, send, Cluster, Random, Session, Shutdown, Signal};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Rows of one writer: clustering column to value.
type Rows = BTreeMap<u64, String>;

struct Writer {
    partition: String,
    random: Random,
    committed: Rows,
    /// What there is as well if the last transaction was committed.
    perhaps: Option<Rows>,
    transactions: usize,
}

impl Writer {
    fn new(partition: usize, random: Random) -> Self {
        let partition = format!("w{partition}");
        Writer { partition, random, committed: Rows::new(), perhaps: None, transactions: 0 }
    }

    /// Commits transactions until the server is gone.
    fn write_until_the_end(&mut self, mut session: Session) {
        loop {
            let mut after = self.committed.clone();
            let result = if self.random.chance(20) {
                let lines = self.random_lines(&mut after);
                session.try_copy("t", &lines).map(drop)
            } else {
                let sql = self.random_transaction(&mut after);
                session.try_rows(&sql).map(drop)
            };
            match result {
                Ok(()) => {
                    self.committed = after;
                    self.transactions += 1;
                }
                // The server's own words would be a failure of a statement.
                Err(error) if error.as_db_error().is_none_or(|error| error.code().code().starts_with("57P")) => {
                    self.perhaps = Some(after);
                    return;
                }
                Err(error) => panic!("{}: {error:?}", self.partition),
            }
        }
    }

    fn random_value(&mut self) -> String {
        let number = self.random.below(1_000_000);
        match self.random.below(30) {
            0 => format!("{number}").repeat(800),
            _ => format!("v{number}"),
        }
    }

    fn random_lines(&mut self, after: &mut Rows) -> String {
        let mut lines = String::new();
        for _ in 0..self.random.below(60) + 1 {
            let (c, value) = (self.random.below(200), self.random_value());
            let _ = writeln!(lines, "{}\t{c}\t{value}", self.partition);
            after.insert(c, value);
        }
        lines
    }

    fn random_transaction(&mut self, after: &mut Rows) -> String {
        let mut sql = String::from("BEGIN; ");
        let partition = self.partition.clone();
        for _ in 0..self.random.below(12) + 1 {
            let (c, value) = (self.random.below(200), self.random_value());
            match self.random.below(10) {
                0 => {
                    let _ = write!(sql, "DELETE FROM t WHERE p = '{partition}' AND c = {c}; ");
                    after.remove(&c);
                }
                1 => {
                    let to = c + 10;
                    let _ = write!(sql, "DELETE FROM t WHERE p = '{partition}' AND c BETWEEN {c} AND {to}; ");
                    after.retain(|key, _| !(c..=to).contains(key));
                }
                2 => {
                    let _ = write!(sql, "UPDATE t SET v = '{value}' WHERE p = '{partition}' AND c = {c}; ");
                    after.entry(c).and_modify(|old| *old = value);
                }
                3 => {
                    let _ = write!(
                        sql,
                        "SAVEPOINT s; INSERT INTO t VALUES ('{partition}', {c}, 'rolled back'); ROLLBACK TO s; "
                    );
                }
                _ => {
                    let _ = write!(sql, "INSERT INTO t VALUES ('{partition}', {c}, '{value}'); ");
                    after.insert(c, value);
                }
            }
        }
        sql + "COMMIT"
    }

    /// Compares the partition with what was committed, and takes it for the state from which to go on.
    fn check(&mut self, session: &mut Session) {
        let read = format!("SELECT c, v FROM t WHERE p = '{}' ORDER BY c", self.partition);
        let rows = session.rows(&read);
        if let Some(perhaps) = self.perhaps.take() {
            if rows == lines_of(&perhaps) {
                self.committed = perhaps;
            }
        }
        assert_same_rows(&self.partition, &rows, &lines_of(&self.committed));
    }
}

fn lines_of(rows: &Rows) -> Vec<String> {
    rows.iter().map(|(c, v)| format!("{c}|{v}")).collect()
}

/// Runs statements again and again until the server is gone.
fn repeat_until_the_end(mut session: Session, statements: &[&str]) -> usize {
    let mut done = 0;
    for statement in statements.iter().cycle() {
        match session.try_rows(statement) {
            Ok(_) => done += 1,
            Err(error) if error.as_db_error().is_none_or(|error| error.code().code().starts_with("57P")) => break,
            Err(error) => panic!("{statement}: {error:?}"),
        }
    }
    done
}

/// A number from the environment.
fn number_from(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|error| panic!("{name}={text}: {error}")))
}

#[test]
fn a_killed_server_has_what_was_committed_and_nothing_else() {
    let rounds = number_from("CASS_CRASH_KILLS", 20);
    let mut random = Random::seeded(1);
    let mut cluster = Cluster::with_settings(&[("cass.enforcement", "off"), ("allow_in_place_tablespaces", "on")]);
    cluster.connect().run("CREATE TABLESPACE place LOCATION ''");
    cluster.connect().run(
        "CREATE TABLE other (k int PRIMARY KEY, v text) USING cass;
         CREATE TABLE t (p text, c int, v text, PRIMARY KEY (p, c)) USING cass WITH (clustering_order = 'c DESC');
         CREATE INDEX t_v ON t USING hash (v)",
    );
    let mut writers: Vec<Writer> = (0..3).map(|i| Writer::new(i, random.fork())).collect();
    let mut vacuums = 0;
    for round in 0..rounds {
        let maintenance: &[&str] = match round % 6 {
            5 => &["VACUUM t", "VACUUM FULL t"],
            4 => &["VACUUM t", "CHECKPOINT", "REINDEX TABLE t"],
            3 => &[
                "INSERT INTO other SELECT k, md5(k::text) FROM generate_series(1, 500) k",
                "VACUUM",
                "TRUNCATE other",
                "CREATE TABLE made USING cass AS SELECT 1 AS a",
                "DROP TABLE made",
            ],
            2 => &["ALTER TABLE t SET TABLESPACE place", "VACUUM t", "ALTER TABLE t SET TABLESPACE pg_default"],
            1 => &["CREATE INDEX t_c ON t (c)", "VACUUM t", "DROP INDEX t_c"],
            _ => &["VACUUM t"],
        };
        // Not always long enough for a VACUUM to end, nor always too short.
        let pause = Duration::from_millis(100 + random.below(1000));
        let prey = random.below(4) as usize;
        let mut processes = Vec::new();
        std::thread::scope(|scope| {
            for writer in &mut writers {
                let session = cluster.connect();
                processes.push(session.process());
                scope.spawn(move || writer.write_until_the_end(session));
            }
            let session = cluster.connect();
            processes.push(session.process());
            let vacuum = scope.spawn(move || repeat_until_the_end(session, maintenance));
            std::thread::sleep(pause);
            match round % 5 {
                4 => cluster.stop(Shutdown::Immediate),
                // The postmaster ends the others, and recovers.
                1 | 3 => send(processes[prey].unsigned_abs(), Signal::KILL),
                _ => cluster.kill(),
            }
            vacuums += vacuum.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        });
        if !matches!(round % 5, 1 | 3) {
            cluster.start();
        }
        let mut session = cluster.connect_when_recovered(processes[prey]);
        writers.iter_mut().for_each(|writer| writer.check(&mut session));
        let rows: usize = writers.iter().map(|writer| writer.committed.len()).sum();
        assert_eq!(session.count("SELECT count(*) FROM t"), rows as u64, "a full read");
        session.run("DROP TABLE IF EXISTS made; DROP INDEX IF EXISTS t_c");
        session.run("VACUUM t");
        session.assert_sound("t");
        writers.iter_mut().for_each(|writer| writer.check(&mut session));
        assert_eq!(session.delta_rows_of("t"), 0);
    }
    let transactions: usize = writers.iter().map(|writer| writer.transactions).sum();
    println!("{transactions} transactions, {vacuums} VACUUMs");
    assert!(transactions as u64 > 6 * rounds && vacuums as u64 > rounds, "too little was done to show anything");
    // What kills have left of runs is free for others: the file does not grow with their number.
    let mut session = cluster.connect();
    session.run("SET cass.eager_merge_size = '64MB'");
    (0..3).for_each(|_| session.run("VACUUM t"));
    let size = "SELECT pg_relation_size('t')";
    let with_free_space = session.count(size);
    session.run("VACUUM FULL t");
    let least = session.count(size);
    assert!(with_free_space < 16 * least + (1 << 20), "{with_free_space} bytes for {least}");
}

#[test]
fn a_load_that_a_kill_interrupts_leaves_nothing() {
    let mut random = Random::seeded(2);
    let mut cluster = Cluster::with_settings(&[("cass.enforcement", "off"), ("max_wal_size", "4GB")]);
    cluster.connect().run(
        "CREATE TABLE t (k int PRIMARY KEY, v text) USING cass; INSERT INTO t SELECT k, 'old' FROM generate_series(1, 100) k",
    );
    let old = ["100|old|old"];
    let load = "INSERT INTO t SELECT k, repeat(md5(k::text), 60) FROM generate_series(1, 40000) k";
    let summary = "SELECT count(*), min(left(v, 3)), max(left(v, 3)) FROM t";
    for round in 0..3 {
        let begun = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let mut session = cluster.connect();
            let begun = &begun;
            let loading = scope.spawn(move || {
                begun.store(true, Ordering::Relaxed);
                // COMMIT comes only when the load is done, and is never reached.
                session.try_rows(&format!("BEGIN; {load}; SELECT pg_sleep(60); COMMIT")).is_err()
            });
            while !begun.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            // The last time, the load is done and not committed.
            match round {
                2 => {
                    let mut observer = cluster.connect();
                    cass_server_tests::wait_until("the load is done", || {
                        observer.value("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") == "1"
                    });
                }
                _ => std::thread::sleep(Duration::from_millis(300 + random.below(2500))),
            }
            cluster.kill();
            assert!(loading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        });
        cluster.start();
        let mut session = cluster.connect();
        assert_eq!(session.rows(summary), old, "round {round}");
        session.run("VACUUM t");
        assert_eq!(session.rows(summary), old, "round {round}, after VACUUM");
    }
    let mut session = cluster.connect();
    session.run(load);
    drop(session);
    cluster.kill();
    cluster.start();
    let mut session = cluster.connect();
    assert_eq!(
        session.rows("SELECT count(*), count(DISTINCT v), count(*) FILTER (WHERE v = 'old') FROM t"),
        ["40000|40000|0"]
    );
    assert_eq!(session.segments_of("t"), 2, "the load and the flush before it");
}

#[test]
fn rows_survive_a_kill_when_the_wal_level_is_minimal() {
    let settings = [("cass.enforcement", "off"), ("wal_level", "minimal"), ("max_wal_senders", "0")];
    let mut cluster = Cluster::with_settings(&settings);
    let mut session = cluster.connect();
    session.run(
        "CREATE TABLE old (k int PRIMARY KEY, v text) USING cass;
         INSERT INTO old SELECT k, 'o' || k FROM generate_series(1, 500) k",
    );
    session.flush("old");
    session.run(
        "BEGIN;
         CREATE TABLE made (k int PRIMARY KEY, v text) USING cass;
         INSERT INTO made SELECT k, 'm' || k FROM generate_series(1, 500) k;
         CREATE TABLE unplaced USING cass AS SELECT k, 'u' || k AS v FROM generate_series(1, 500) k;
         TRUNCATE old;
         INSERT INTO old SELECT k, 'n' || k FROM generate_series(1, 400) k;
         COMMIT",
    );
    for statement in ["VACUUM made", "VACUUM FULL old", "ALTER TABLE unplaced ADD PRIMARY KEY (k)"] {
        session.run(statement);
    }
    let tables = ["made", "unplaced", "old"];
    let read =
        |session: &mut Session| tables.map(|table| session.rows(&format!("SELECT k, v FROM {table} ORDER BY k")));
    let before = read(&mut session);
    assert_eq!(before.each_ref().map(Vec::len), [500, 500, 400]);
    drop(session);
    cluster.kill();
    cluster.start();
    let mut session = cluster.connect();
    assert_eq!(read(&mut session), before);
    session.run("VACUUM");
    assert_eq!(read(&mut session), before);
}
