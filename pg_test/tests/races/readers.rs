//! Readers beside a flush: each snapshot sees a row once, whichever of its places the row is in.

use crate::{changed, cluster, create, rows};
use cass_server_tests::Stopped;

const BY_INDEX: &str =
    "SELECT k, v FROM (SELECT k, v FROM t WHERE v BETWEEN 0 AND 1000 ORDER BY v OFFSET 0) r ORDER BY k";

/// Rules 1 and 3: the snapshot of a statement, one taken before the flush began, and one taken before rows that stay in the delta.
#[test]
fn each_row_is_shown_once_at_every_step_of_a_flush() {
    let cluster = cluster();
    let mut session = cluster.connect();
    for step in ["segment-reserved", "segment-written", "segment-published", "flush-deleted"] {
        create(&mut session);
        session.run("UPDATE t SET v = 31 WHERE k = 3; DELETE FROM t WHERE k IN (4, 19)");
        let before = changed(&[(3, Some(31)), (4, None), (19, None)]);
        let mut old = cluster.connect();
        old.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
        assert_eq!(rows(&mut old), before);
        session.run("UPDATE t SET v = v + 1 WHERE k IN (3, 5, 11); DELETE FROM t WHERE k = 12; INSERT INTO t VALUES (4, 41), (21, 210)");
        let after = changed(&[
            (3, Some(32)),
            (4, Some(41)),
            (5, Some(51)),
            (11, Some(111)),
            (12, None),
            (19, None),
            (21, Some(210)),
        ]);
        let flush = Stopped::at(&cluster, step, "VACUUM t");
        assert_eq!(rows(&mut session), after, "at {step}");
        assert_eq!(rows(&mut old), before, "at {step}");
        let mut during = cluster.connect();
        during.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
        assert_eq!(rows(&mut during), after, "at {step}");
        flush.finish();
        for snapshot in [&mut session, &mut during] {
            assert_eq!(rows(snapshot), after, "after {step}");
        }
        assert_eq!(rows(&mut old), before, "after {step}");
        old.run("COMMIT");
        during.run("COMMIT");
        session.flush("t");
        assert_eq!(rows(&mut session), after, "after {step}, and the next flush");
        session.run("DROP TABLE t");
    }
}

/// Rule 1: list and delta are looked at one after the other, with the same snapshot, and so are the rows that an index names.
#[test]
fn a_reader_shows_each_row_once_though_a_flush_ends_between_its_looks_at_list_and_delta() {
    let cluster = cluster();
    let mut session = cluster.connect();
    for (point, query) in [("segments-listed", "SELECT k, v FROM t ORDER BY k"), ("delta-searched", BY_INDEX)] {
        for written_to in [false, true] {
            create(&mut session);
            let mut reader = cluster.connect();
            reader.run("SET enable_seqscan = off; SET enable_bitmapscan = off");
            let reader = Stopped::in_session(&cluster, reader, point, query);
            session.run("VACUUM t");
            assert_eq!(session.segments_of("t"), 2);
            let mut after = changed(&[]);
            // Unless this comes, the delta is noted as empty meanwhile.
            if written_to {
                session.run(
                    "UPDATE t SET v = 0 WHERE k IN (2, 12); INSERT INTO t VALUES (21, 210); DELETE FROM t WHERE k = 13",
                );
                session.run("VACUUM t");
                after = changed(&[(2, Some(0)), (12, Some(0)), (13, None), (21, Some(210))]);
            }
            assert_eq!(reader.finish().1, changed(&[]), "at {point}");
            assert_eq!(rows(&mut session), after, "at {point}");
            session.run("DROP TABLE t");
        }
    }
}
