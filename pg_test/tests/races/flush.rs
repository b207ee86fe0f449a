//! A flush moves rows from the delta into a segment, while others write them and lock them.

use crate::{changed, cluster, create, rows, Change};
use cass_server_tests::{Session, Stopped};

/// The steps of a flush: the rows are copied; their segment is in the list; they are deleted from the delta.
const STEPS: [&str; 3] = ["segment-written", "segment-published", "flush-deleted"];

/// The rows of [`create`], with a tombstone of key 4 and a new version of key 3 in the delta.
fn create_with_tombstone(session: &mut Session) {
    create(session);
    session.run("UPDATE t SET v = 31 WHERE k = 3; DELETE FROM t WHERE k = 4");
}

/// Statements of which each changes rows of [`create_with_tombstone`], and all they change: of a row that is being moved, of one that
/// stays in a segment, of a key whose tombstone is being moved, and of a new key.
const CHANGES: [(&str, &[Change]); 6] = [
    ("UPDATE t SET v = v + 1 WHERE k IN (3, 11)", &[(3, Some(32)), (11, Some(111))]),
    ("DELETE FROM t WHERE k IN (3, 12, 5)", &[(3, None), (12, None), (5, None)]),
    ("INSERT INTO t VALUES (3, 33), (13, 131)", &[(3, Some(33)), (13, Some(131))]),
    ("INSERT INTO t VALUES (4, 41), (30, 300)", &[(4, Some(41)), (30, Some(300))]),
    ("UPDATE t SET k = 31 WHERE k = 14", &[(14, None), (31, Some(140))]),
    ("BEGIN; SELECT FROM t WHERE k = 15 FOR UPDATE; UPDATE t SET v = 151 WHERE k = 15; COMMIT", &[(15, Some(151))]),
];

/// Rule 3: what somebody has changed since it was copied stays in the delta, where it takes precedence.
#[test]
fn a_change_of_a_row_that_has_been_copied_and_not_deleted_yet_is_kept() {
    let cluster = cluster();
    let mut session = cluster.connect();
    for step in &STEPS[..2] {
        for (statement, changes) in CHANGES {
            create_with_tombstone(&mut session);
            let expected = changed(&[&[(3, Some(31)), (4, None)], changes].concat());
            let flush = Stopped::at(&cluster, step, "VACUUM t");
            session.run(statement);
            assert_eq!(rows(&mut session), expected, "{statement} at {step}");
            flush.finish();
            assert_eq!(rows(&mut session), expected, "{statement} at {step}, and the flush has ended");
            session.flush("t");
            assert_eq!(rows(&mut session), expected, "{statement} at {step}, and the next flush");
            session.run("VACUUM FULL t");
            assert_eq!(rows(&mut session), expected, "{statement} at {step}, and all segments are one");
            session.assert_sound("t");
            session.run("DROP TABLE t");
        }
    }
}

/// Rules 3 and 6: a row that a flush deletes from the delta is waited for, and then found in its segment.
#[test]
fn a_change_of_a_row_that_is_being_deleted_from_the_delta_waits_and_is_kept() {
    let cluster = cluster();
    let (mut session, mut observer) = (cluster.connect(), cluster.connect());
    for (statement, changes) in CHANGES {
        create_with_tombstone(&mut session);
        let expected = changed(&[&[(3, Some(31)), (4, None)], changes].concat());
        let flush = Stopped::at(&cluster, "flush-deleted", "VACUUM t");
        let change = session.in_background(statement);
        change.wait_until_blocked_by("transactionid", &mut observer);
        assert_eq!(rows(&mut observer), changed(&[(3, Some(31)), (4, None)]), "{statement}");
        flush.finish();
        session = change.finish().0;
        assert_eq!(rows(&mut session), expected, "{statement}");
        session.flush("t");
        assert_eq!(rows(&mut session), expected, "{statement}, and the next flush");
        session.assert_sound("t");
        session.run("DROP TABLE t");
    }
}

/// Rule 6: who has found a row in the delta, and finds it gone when he locks it, looks for it again.
#[test]
fn a_change_of_a_row_that_was_found_in_the_delta_and_moved_before_it_was_locked_is_kept() {
    let cluster = cluster();
    let mut session = cluster.connect();
    for (statement, value) in [
        ("UPDATE t SET v = v + 1 WHERE k = 11", Some(111)),
        ("INSERT INTO t VALUES (11, 112)", Some(112)),
        ("COPY t FROM PROGRAM 'printf \"11\\t113\\n\"'", Some(113)),
        ("DELETE FROM t WHERE k = 11", None),
    ] {
        create(&mut session);
        let change = Stopped::at(&cluster, "delta-probed", statement);
        session.run("VACUUM t");
        // A row that took the place of the moved one in the delta would be taken for it.
        let delta = session.value("SELECT 'pg_toast.cass_delta_' || 't'::regclass::oid");
        session.run(&format!("VACUUM {delta}"));
        session.run("INSERT INTO t SELECT k, 10 * k FROM generate_series(21, 40) k");
        let others: Vec<_> = (21..=40).map(|k| (k, Some(10 * k))).collect();
        assert_eq!(rows(&mut session), changed(&others), "{statement}");
        change.finish();
        let expected = changed(&[&others[..], &[(11, value)]].concat());
        assert_eq!(rows(&mut session), expected, "{statement}");
        session.flush("t");
        assert_eq!(rows(&mut session), expected, "{statement}, and a flush");
        session.assert_sound("t");
        session.run("DROP TABLE t");
    }
}

/// Rules 3 and 7: a flush neither waits for who has locked a row that it has copied, nor takes the lock from him.
#[test]
fn a_row_that_is_locked_while_a_flush_moves_it_stays_locked() {
    let cluster = cluster();
    let (mut session, mut observer) = (cluster.connect(), cluster.connect());
    for step in STEPS {
        create(&mut session);
        let flush = Stopped::at(&cluster, step, "VACUUM t");
        let lock = session.in_background("BEGIN; SELECT v FROM t WHERE k = 11 FOR UPDATE");
        lock.wait_until_blocked_or_finished(&mut observer);
        let flush = flush.go_on();
        flush.finish();
        let (mut locker, locked) = lock.finish();
        assert_eq!(locked, ["110"], "at {step}");
        let update = cluster.connect().in_background("UPDATE t SET v = v + 5 WHERE k = 11");
        update.wait_until_blocked(&mut observer);
        locker.run("UPDATE t SET v = v + 1 WHERE k = 11; COMMIT");
        session = update.finish().0;
        assert_eq!(rows(&mut session), changed(&[(11, Some(116))]), "at {step}");
        session.flush("t");
        assert_eq!(rows(&mut session), changed(&[(11, Some(116))]), "at {step}, and the next flush");
        session.run("DROP TABLE t");
    }
}

/// Rules 3 and 9: a flush deletes rows by their places, which no other row may take while it is at work.
#[test]
fn a_row_written_during_a_flush_does_not_take_the_place_of_one_that_the_flush_is_to_delete() {
    let cluster = cluster();
    let mut session = cluster.connect();
    create(&mut session);
    let flush = Stopped::at(&cluster, "segment-published", "VACUUM t");
    session.run("UPDATE t SET v = v + 1 WHERE k > 10");
    let delta = session.value("SELECT 'pg_toast.cass_delta_' || 't'::regclass::oid");
    session.run(&format!("VACUUM {delta}"));
    session.run("INSERT INTO t SELECT k, 10 * k FROM generate_series(21, 40) k");
    flush.finish();
    let updated = (11..=20).map(|k| (k, Some(10 * k + 1)));
    let expected = changed(&updated.chain((21..=40).map(|k| (k, Some(10 * k)))).collect::<Vec<_>>());
    assert_eq!(rows(&mut session), expected);
    session.flush("t");
    assert_eq!(rows(&mut session), expected);
}

/// Rule 2: only what everybody sees is moved, or an older transaction would overwrite what it has not seen.
#[test]
fn a_row_that_an_older_snapshot_does_not_see_is_a_serialization_failure_for_it_also_after_flushes() {
    let cluster = cluster();
    let mut session = cluster.connect();
    create(&mut session);
    let mut old = cluster.connect();
    old.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
    assert_eq!(rows(&mut old), changed(&[]));
    session
        .run("UPDATE t SET v = v + 1 WHERE k IN (5, 11); DELETE FROM t WHERE k = 12; INSERT INTO t VALUES (21, 210)");
    session.run("SET cass.eager_merge_size = '64MB'");
    for _ in 0..2 {
        session.run("VACUUM t");
        assert_eq!(rows(&mut old), changed(&[]));
    }
    for statement in [
        "UPDATE t SET v = 0 WHERE k = 5",
        "UPDATE t SET v = 0 WHERE k = 11",
        "DELETE FROM t WHERE k = 11",
        "INSERT INTO t VALUES (12, 0)",
        "INSERT INTO t VALUES (21, 0)",
    ] {
        let error = old.error(&format!("SAVEPOINT s; {statement}"));
        assert!(error.starts_with("40001"), "{statement}: {error}");
        old.run("ROLLBACK TO s");
    }
    old.run("COMMIT");
    assert_eq!(rows(&mut old), changed(&[(5, Some(51)), (11, Some(111)), (12, None), (21, Some(210))]));
}
