//! Rows with equal keys in a unique index.

use super::damage::{create, faults_of, marked};
use cass_server_tests::{Cluster, Session};

fn cluster() -> Cluster {
    let cluster = Cluster::with_settings(&[("cass.enforcement", "off")]);
    create(&mut cluster.connect());
    cluster.expect_damage();
    cluster
}

/// Runs statements while an index takes equal keys.
fn not_unique(session: &mut Session, index: &str, statements: &str) {
    marked(session, index, "indisunique", statements);
}

/// The id and the ctid by which faults name the row that satisfies a condition.
fn row(session: &mut Session, condition: &str) -> (String, String) {
    let ctid = session.value(&format!("SELECT ctid FROM t WHERE {condition}"));
    let id = session.value(&format!(
        "SELECT (ctid::text::point)[0]::bigint * 291 + (ctid::text::point)[1]::bigint - 1 FROM t WHERE {condition}"
    ));
    (id, ctid)
}

/// The fault of a row that has the key of an earlier one.
fn fault(session: &mut Session, index: &str, earlier: &str, later: &str, key: &str) -> String {
    let ((first, _), (id, ctid)) = (row(session, earlier), row(session, later));
    format!("index|{index}|∅|∅|row id {id}, ctid {ctid}: row id {first} has the same key in the unique index, {key}")
}

#[test]
fn a_key_that_is_twice_in_a_unique_index_is_told_wherever_its_rows_lie() {
    let cluster = cluster();
    let mut session = cluster.connect();
    session.run("UPDATE t SET v = a || '.' || b; CREATE UNIQUE INDEX i ON t (v)");
    session.assert_sound("t");
    not_unique(&mut session, "i", "INSERT INTO t VALUES (50, 1, '3.7')");
    let found = vec![fault(&mut session, "i", "a = 3 AND b = 7", "a = 50", "(v)=(3.7)")];
    assert_eq!(faults_of(&cluster), found, "both in the delta");
    session.run("VACUUM t");
    assert_eq!(faults_of(&cluster), found, "both in segments");
    not_unique(&mut session, "i", "INSERT INTO t VALUES (50, 2, '3.7'), (50, 3, '4.7')");
    let mut more = found.clone();
    more.push(fault(&mut session, "i", "a = 3 AND b = 7", "a = 50 AND b = 2", "(v)=(3.7)"));
    more.push(fault(&mut session, "i", "a = 4 AND b = 7", "a = 50 AND b = 3", "(v)=(4.7)"));
    assert_eq!(faults_of(&cluster), more, "in a segment and the delta");
    session.run("DELETE FROM t WHERE a = 50; UPDATE t SET v = '3.7' WHERE a = 3 AND b = 7");
    session.assert_sound("t");
}

#[test]
fn a_key_is_the_same_as_the_index_sees_it() {
    let cluster = cluster();
    let mut session = cluster.connect();
    session.run(
        "ALTER TABLE t ADD n numeric, ADD w text;
         CREATE UNIQUE INDEX pair ON t (n, w); CREATE UNIQUE INDEX lowered ON t (lower(w)) INCLUDE (v) WHERE b > 50",
    );
    not_unique(
        &mut session,
        "pair",
        "INSERT INTO t VALUES (51, 1, '', 1.5, 'x'), (51, 2, '', 1.50, 'x'), (51, 3, '', 1.5, 'y')",
    );
    let both = fault(&mut session, "pair", "a = 51 AND b = 1", "a = 51 AND b = 2", "(n, w)=(1.50, x)");
    assert_eq!(
        faults_of(&cluster),
        std::slice::from_ref(&both),
        "numbers of another form are equal, other pairs are not"
    );
    session.run("INSERT INTO t VALUES (52, 50, 'u', 2, 'Zz'), (52, 51, 'v', 2, 'zZ')");
    not_unique(&mut session, "lowered", "INSERT INTO t VALUES (52, 52, 'w', 2, 'ZZ')");
    let lowered = fault(&mut session, "lowered", "a = 52 AND b = 51", "a = 52 AND b = 52", "(lower(w))=(zz)");
    assert_eq!(faults_of(&cluster), [both, lowered], "not the row that the condition leaves out");
}

#[test]
fn null_is_like_no_other_unless_the_index_says_so() {
    let cluster = cluster();
    let mut session = cluster.connect();
    session.run(
        "ALTER TABLE t ADD n int, ADD m int; CREATE UNIQUE INDEX i ON t (n, m) WHERE a > 50;
         INSERT INTO t VALUES (51, 1, '', NULL, NULL), (51, 2, '', NULL, NULL), (51, 3, '', NULL, 1), (51, 4, '', NULL, 1)",
    );
    session.assert_sound("t");
    session.run(
        "DROP INDEX i; DELETE FROM t WHERE a = 51; CREATE UNIQUE INDEX i ON t (n, m) NULLS NOT DISTINCT WHERE a > 50",
    );
    session.run("INSERT INTO t VALUES (51, 1, '', NULL, NULL), (51, 3, '', NULL, 1), (51, 5, '', 1, NULL)");
    session.assert_sound("t");
    not_unique(&mut session, "i", "INSERT INTO t VALUES (51, 4, '', NULL, 1)");
    let found = fault(&mut session, "i", "a = 51 AND b = 3", "a = 51 AND b = 4", "(n, m)=(null, 1)");
    assert_eq!(faults_of(&cluster), [found]);
}

/// Rows whose deferrable constraint is still to be judged are no damage; those that others see are.
#[test]
fn keys_that_a_transaction_may_still_part_are_no_fault() {
    let cluster = cluster();
    let mut session = cluster.connect();
    session.run("ALTER TABLE t ADD n int, ADD CONSTRAINT i UNIQUE (n) DEFERRABLE INITIALLY DEFERRED");
    session.run("BEGIN; INSERT INTO t VALUES (51, 1, '', 1), (51, 2, '', 1)");
    assert_eq!(session.faults_of("t"), Vec::<String>::new());
    session.run("UPDATE t SET n = b WHERE a = 51; COMMIT");
    session.assert_sound("t");
    not_unique(&mut session, "i", "INSERT INTO t VALUES (51, 3, '', 1)");
    let found = fault(&mut session, "i", "a = 51 AND b = 1", "a = 51 AND b = 3", "(n)=(1)");
    assert_eq!(faults_of(&cluster), [found]);
}
