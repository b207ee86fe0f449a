//! Entries of secondary indexes that are missing or say something else than the table.

use super::damage::{create, without_index};
use cass_server_tests::{Cluster, Session};

fn index_faults(session: &mut Session) -> Vec<String> {
    session.rows("SELECT kind, relation, detail FROM cass_check('t')")
}

#[test]
fn a_row_that_an_index_does_not_lead_to_is_found() {
    let cluster = Cluster::new();
    let mut session = cluster.connect();
    create(&mut session);
    for method in ["btree (v)", "hash (v)", "gin (string_to_array(v, 'a'))", "gist (point(a, b))", "spgist (v)"] {
        session.run(&format!("CREATE INDEX i ON t USING {method}"));
        session.assert_sound("t");
        without_index(&mut session, "i", "INSERT INTO t VALUES (50, 1, 'unseen')");
        let ctid = session.value("SELECT ctid FROM t WHERE a = 50");
        let faults = index_faults(&mut session);
        assert_eq!(faults.len(), 1, "{method}: {faults:?}");
        assert!(faults[0].starts_with("index|i|row id "), "{method}: {faults:?}");
        assert!(
            faults[0].ends_with(&format!("ctid {ctid}: the index does not lead to the row")),
            "{method}: {faults:?}"
        );
        session.run("VACUUM t");
        assert_eq!(index_faults(&mut session), faults, "{method}, from a segment");
        session.run("REINDEX INDEX i");
        session.assert_sound("t");
        session.run("DROP INDEX i; DELETE FROM t WHERE a = 50");
    }
}

#[test]
fn an_entry_of_another_value_is_found() {
    let cluster = Cluster::new();
    let mut session = cluster.connect();
    create(&mut session);
    session.run("CREATE FUNCTION f(text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN $1; END'");
    session.run("CREATE INDEX i ON t (b, f(v))");
    session.assert_sound("t");
    session.run("CREATE OR REPLACE FUNCTION f(text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$BEGIN RETURN replace($1, 'again', 'other'); END$$");
    let faults = index_faults(&mut session);
    assert_eq!(faults.len(), 5, "{faults:?}");
    assert!(faults.iter().all(|fault| fault.starts_with("index|i|row id ")), "{faults:?}");
    assert!(faults[0].ends_with("the index has another value for the row than the table"), "{faults:?}");
    session.run("REINDEX INDEX i");
    session.assert_sound("t");
}

/// Rows that a partial index leaves out need no entry; those that it no longer leaves out do.
#[test]
fn a_partial_index_is_compared_with_the_rows_of_its_condition() {
    let cluster = Cluster::new();
    let mut session = cluster.connect();
    create(&mut session);
    session.run("CREATE FUNCTION wanted(int) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN $1 = 1; END'");
    session.run("CREATE INDEX i ON t (v) WHERE wanted(b)");
    session.assert_sound("t");
    session.run("CREATE OR REPLACE FUNCTION wanted(int) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN $1 <= 2; END'");
    let faults = index_faults(&mut session);
    assert_eq!(faults.len(), 20, "{faults:?}");
    assert!(faults[0].ends_with("the index does not lead to the row"), "{faults:?}");
    session.run("REINDEX INDEX i");
    session.assert_sound("t");
}

/// An index that is rebuilt after the check has begun has no entries of versions that were replaced before.
#[test]
fn an_index_rebuilt_meanwhile_is_left_out() {
    let cluster = Cluster::new();
    let (mut session, mut observer) = (cluster.connect(), cluster.connect());
    create(&mut session);
    session.run(
        "CREATE FUNCTION f(text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS
           'BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN $1; END'",
    );
    session.run("CREATE INDEX first ON t (f(v)); CREATE INDEX second ON t (v)");
    session.run("SELECT pg_advisory_lock(1)");
    let check = cluster.connect().in_background("SELECT kind, relation, detail FROM cass_check('t')");
    check.wait_until_blocked(&mut observer);
    session.run("UPDATE t SET v = 'replaced' WHERE a = 9");
    session.run("REINDEX INDEX second");
    session.run("SELECT pg_advisory_unlock(1)");
    assert_eq!(check.finish().1, Vec::<String>::new());
}
