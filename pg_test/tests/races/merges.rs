//! A merge replaces segments by one, while others write rows of theirs and read them.

use crate::{changed, cluster, create, rows, WRITES};
use cass_server_tests::{Cluster, Session, Stopped};

/// The rows of [`create`] in two segments, key 4 with a tombstone.
fn create_two(session: &mut Session) {
    create(session);
    session.run("DELETE FROM t WHERE k = 4");
    session.flush("t");
    assert_eq!(session.segments_of("t"), 2);
}

/// A session whose VACUUM merges all segments.
fn merger(cluster: &Cluster) -> Session {
    let mut session = cluster.connect();
    session.run("SET cass.eager_merge_size = '64MB'");
    session
}

/// Rules 1 and 7: who writes a row of a segment that is being merged does not wait, and his version takes precedence.
#[test]
fn a_change_of_a_row_that_a_merge_is_copying_is_kept() {
    let cluster = cluster();
    let mut session = cluster.connect();
    let statement = "UPDATE t SET v = v + 1 WHERE k IN (3, 11); DELETE FROM t WHERE k IN (12, 5); INSERT INTO t VALUES (4, 41), (13, 131)";
    let changes = [(3, Some(31)), (11, Some(111)), (12, None), (5, None), (4, Some(41)), (13, Some(131))];
    for step in ["segment-written", "segment-published", "merge-removed"] {
        create_two(&mut session);
        let mut old = cluster.connect();
        old.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
        assert_eq!(rows(&mut old), changed(&[(4, None)]));
        let merge = Stopped::in_session(&cluster, merger(&cluster), step, "VACUUM t");
        for write in WRITES {
            session.run(&write.replace('5', "7").replace('6', "8"));
        }
        session.run(statement);
        assert_eq!(rows(&mut session), changed(&changes), "at {step}");
        merge.finish();
        assert_eq!(session.segments_of("t"), 1);
        assert_eq!(rows(&mut session), changed(&changes), "after {step}");
        assert_eq!(rows(&mut old), changed(&[(4, None)]), "after {step}");
        old.run("COMMIT");
        session.flush("t");
        assert_eq!(rows(&mut session), changed(&changes), "after {step}, and a flush");
        session.assert_sound("t");
        session.run("DROP TABLE t");
    }
}

/// Rule 7: an anchor holds its lock wherever the row has gone meanwhile.
#[test]
fn a_row_that_is_locked_while_a_merge_moves_it_stays_locked() {
    let cluster = cluster();
    let (mut session, mut observer) = (cluster.connect(), cluster.connect());
    for step in ["segment-written", "merge-removed"] {
        create_two(&mut session);
        let merge = Stopped::in_session(&cluster, merger(&cluster), step, "VACUUM t");
        let mut locker = cluster.connect();
        locker.run("BEGIN; SELECT FROM t WHERE k = 11 FOR UPDATE");
        merge.finish();
        let update = session.in_background("UPDATE t SET v = v + 5 WHERE k = 11");
        update.wait_until_blocked(&mut observer);
        locker.run("UPDATE t SET v = v + 1 WHERE k = 11; COMMIT");
        session = update.finish().0;
        assert_eq!(rows(&mut session), changed(&[(4, None), (11, Some(116))]), "at {step}");
        session.run("DROP TABLE t");
    }
}

/// Rule 6: a row that was looked up by its segment is found in the one that has replaced it.
#[test]
fn a_change_of_a_row_that_was_found_in_no_delta_is_kept_though_a_merge_moves_it() {
    let cluster = cluster();
    let mut session = cluster.connect();
    for (statement, value) in [
        ("UPDATE t SET v = v + 1 WHERE k = 11", Some(111)),
        ("INSERT INTO t VALUES (11, 112)", Some(112)),
        ("DELETE FROM t WHERE k = 11", None),
    ] {
        create_two(&mut session);
        let change = Stopped::at(&cluster, "delta-probed", statement);
        merger(&cluster).run("VACUUM t");
        assert_eq!(session.segments_of("t"), 1);
        change.finish();
        assert_eq!(rows(&mut session), changed(&[(4, None), (11, value)]), "{statement}");
        session.run("DROP TABLE t");
    }
}

/// Rule 8: the blocks of a run are used again only when nobody can see it any more.
#[test]
fn a_cursor_shows_its_rows_to_the_end_though_their_runs_are_merged_away_and_vacuum_writes_others() {
    let cluster = cluster();
    let (mut session, mut reader, mut locker) = (merger(&cluster), cluster.connect(), cluster.connect());
    session.run("CREATE TABLE t (k int PRIMARY KEY, v text) USING cass");
    let write = |session: &mut Session, round: u32, first: u32| {
        session.run(&format!(
            "INSERT INTO t SELECT k, md5({round} || '.' || k) FROM generate_series({first}, {first} + 5999) k"
        ));
    };
    let query = "SELECT k, v FROM t";
    session.run("SET cass.eager_merge_size = 0");
    for round in 1..=2 {
        write(&mut session, round, 1);
        session.flush("t");
    }
    session.run("SET cass.eager_merge_size = '64MB'");
    assert_eq!(session.segments_of("t"), 2);
    // Rows that no snapshot lacks, but that VACUUM leaves in the delta for as long as they are locked.
    write(&mut session, 3, 6001);
    locker.run("BEGIN; SELECT FROM t WHERE k > 6000 FOR SHARE");
    let expected = session.rows(query);
    reader.run(&format!("BEGIN; DECLARE all_rows CURSOR FOR {query}"));
    assert_eq!(reader.rows("FETCH 10 FROM all_rows"), expected[..10]);
    session.run("VACUUM t");
    assert_eq!(session.segments_of("t"), 1, "the runs that the cursor reads are off the list");
    assert_eq!(reader.rows("FETCH 1000 FROM all_rows"), expected[10..1010]);
    locker.run("COMMIT");
    // Now they are flushed, and merged.
    for _ in 0..2 {
        session.run("VACUUM t");
        assert_eq!(session.delta_rows_of("t"), 0);
    }
    assert_eq!(reader.rows("FETCH ALL FROM all_rows"), expected[1010..]);
    reader.run("COMMIT");
    let mut size_after = |round| {
        write(&mut session, round, 1);
        session.run("VACUUM t");
        session.count("SELECT pg_relation_size('t')")
    };
    let sizes: Vec<u64> = (4..=9).map(&mut size_after).collect();
    assert!(sizes[5] <= sizes[2], "what nobody sees any more is used again: {sizes:?}");
}

/// Rule 1: a load that some snapshots do not see is merged with nothing, or they would overwrite what they have not seen.
#[test]
fn a_load_that_an_older_snapshot_does_not_see_is_a_serialization_failure_for_it_also_after_merges() {
    let cluster = Cluster::with_settings(&[("cass.enforcement", "off"), ("max_wal_size", "4GB")]);
    let (mut session, mut old) = (cluster.connect(), cluster.connect());
    session.run(
        "CREATE TABLE t (k int PRIMARY KEY, v text) USING cass;
         INSERT INTO t SELECT k, 'old' FROM generate_series(5001, 5010) k",
    );
    session.flush("t");
    session.run("INSERT INTO t SELECT k, 'old' FROM generate_series(-10, -1) k");
    old.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
    let summary = "SELECT left(v, 3), count(*), min(k), max(k) FROM t GROUP BY 1 ORDER BY 1";
    let before = old.rows(summary);
    assert_eq!(before, ["old|20|-10|5010"]);
    // More than 64 MB, and little of it once it is compressed.
    session.run("INSERT INTO t SELECT k, 'new' || repeat('x', 1900) FROM generate_series(1, 36000) k");
    let after = ["new|36000|1|36000", "old|10|-10|-1"];
    session.run("SET cass.eager_merge_size = '1GB'");
    for _ in 0..2 {
        assert_eq!(session.rows(summary), after);
        assert_eq!(old.rows(summary), before);
        session.run("VACUUM t");
    }
    for statement in ["UPDATE t SET v = 'own' WHERE k = 5001", "INSERT INTO t VALUES (20000, 'own')"] {
        let error = old.error(&format!("SAVEPOINT s; {statement}"));
        assert!(error.starts_with("40001"), "{statement}: {error}");
        old.run("ROLLBACK TO s");
    }
    old.run("COMMIT");
    session.run("VACUUM t");
    assert_eq!(session.segments_of("t"), 1);
    assert_eq!(session.rows(summary), after);
}
