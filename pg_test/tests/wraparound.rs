//! Transaction ids come round: rows stay what they are over three thousand million of them, and freezing keeps up.

use cass_server_tests::{give_to_server_user, wait_until, Cluster, Session, Shutdown};
use std::fs;

/// Transactions of one file of `pg_xact` (`SLRU_PAGES_PER_SEGMENT` pages of four transactions a byte).
const PER_FILE: u64 = 32 * 8192 * 4;
const STEP: u64 = 1430 * PER_FILE;

/// Sets the next transaction id of a stopped cluster.
fn advance(cluster: &mut Cluster, to: u64) {
    cluster.stop(Shutdown::Fast);
    let data = cluster.data();
    cluster.run_server_tool("pg_resetwal", &["-x", &to.to_string(), "-D", &data.display().to_string()]);
    // The server reads the state of the transactions before it, which were none.
    let path = data.join("pg_xact").join(format!("{:04X}", to / PER_FILE));
    fs::write(&path, vec![0; 32 * 8192]).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    give_to_server_user(&path);
    cluster.start();
}

fn change(session: &mut Session, round: u32) {
    session.run(&format!(
        "INSERT INTO t SELECT {round}, i, 'round {round}' FROM generate_series(1, 300) i;
         UPDATE t SET w = w || ', changed in {round}' WHERE c % 50 = {round};
         DELETE FROM t WHERE c = 200 + {round}"
    ));
}

const ALL: &str = "SELECT * FROM t ORDER BY k, c";

#[test]
fn rows_are_right_over_three_thousand_million_transactions() {
    let mut cluster = Cluster::with_settings(&[("cass.enforcement", "off")]);
    let mut session = cluster.connect();
    session.run(
        "CREATE TABLE t (k int, c int, w text, PRIMARY KEY (k, c)) USING cass;
         CREATE TABLE idle (k int PRIMARY KEY, w text) USING cass;
         INSERT INTO idle SELECT i, 'idle' FROM generate_series(1, 50) i;
         CREATE TABLE large (k int PRIMARY KEY, w text) USING cass;
         INSERT INTO large SELECT i, (SELECT string_agg(md5((i * j)::text), '') FROM generate_series(1, 400) j) FROM generate_series(1, 5) i",
    );
    let large = session.rows("SELECT k, md5(w) FROM large ORDER BY k");
    for round in 1..=3 {
        change(&mut session, round);
        session.run("VACUUM t");
        change(&mut session, round + 10);
        let rows = session.rows(ALL);
        drop(session);
        cluster.run_client("vacuumdb", &["--all", "--freeze", "--quiet"]);
        if round == 3 {
            session = cluster.connect();
            break;
        }
        advance(&mut cluster, u64::from(round) * STEP);
        session = cluster.connect();
        assert_eq!(session.rows(ALL), rows, "after {} transactions", u64::from(round) * STEP);
        assert_eq!(session.rows("SELECT count(*), min(w) FROM idle"), ["50|idle"]);
        assert_eq!(session.rows("SELECT k, md5(w) FROM large ORDER BY k"), large);
        assert_eq!(session.rows("SELECT * FROM cass_check('t')"), [""; 0]);
    }
    let next: u64 = session.value("SELECT pg_current_xact_id()").parse().expect("an id");
    assert!(next > 2_990_000_000, "{next}");
    // Nothing is left behind: not a table, its delta, its TOAST table, nor the list.
    let oldest = session
        .rows("SELECT relname, age(relfrozenxid) FROM pg_class WHERE relfrozenxid <> 0 AND age(relfrozenxid) > 10000");
    assert_eq!(oldest, [""; 0]);
    assert!(session.count("SELECT age(datfrozenxid) FROM pg_database WHERE datname = 'postgres'") < 10_000);
    assert!(!cluster.last_lines_of_log().contains("wraparound"));
}

#[test]
fn autovacuum_against_wraparound_freezes_a_table_once() {
    let cluster = Cluster::with_settings(&[
        ("cass.enforcement", "off"),
        ("autovacuum_freeze_max_age", "100000"),
        ("vacuum_freeze_min_age", "0"),
        ("autovacuum", "on"),
        ("autovacuum_naptime", "1s"),
        ("autovacuum_vacuum_cost_delay", "0"),
    ]);
    let mut session = cluster.connect();
    session.run(
        "CREATE TABLE t (k int PRIMARY KEY, w text) USING cass WITH (autovacuum_enabled = off);
         INSERT INTO t SELECT i, repeat('x', i) FROM generate_series(1, 500) i;
         CREATE PROCEDURE spend() LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1..110000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$",
    );
    session.run("CALL spend()");
    // The table itself has no transaction ids that could grow old: its delta has them.
    let ages = "SELECT max(age(relfrozenxid)) FROM pg_class WHERE relname = 'cass_delta_' || 't'::regclass::oid";
    assert_eq!(session.value("SELECT relfrozenxid FROM pg_class WHERE relname = 't'"), "0");
    wait_until("the delta is frozen", || session.count(ages) < 100_000);
    let count =
        "SELECT sum(autovacuum_count) FROM pg_stat_all_tables WHERE relname LIKE 'cass_delta%' OR relname = 't'";
    let after = session.count(count);
    // A loop against wraparound would go on at each turn.
    std::thread::sleep(std::time::Duration::from_secs(4));
    let later = session.count(count);
    assert!(later - after <= 1, "{after}, then {later}");
    assert_eq!(session.rows("SELECT count(*), sum(length(w)) FROM t"), ["500|125250"]);
}
