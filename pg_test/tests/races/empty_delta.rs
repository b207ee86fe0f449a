//! A delta is noted as empty, so that reads pass it by, while others are about to write to it.

use crate::{changed, cluster, create, rows, WRITES};
use cass_server_tests::Stopped;

/// Who locks a row writes an anchor: metapage and visibility map must then both say that the delta holds rows.
#[test]
fn what_is_written_after_a_lock_or_write_that_came_while_the_delta_was_noted_as_empty_is_seen() {
    let cluster = cluster();
    let (mut session, mut observer) = (cluster.connect(), cluster.connect());
    for statement in WRITES {
        create(&mut session);
        let vacuum = Stopped::at(&cluster, "delta-flag-cleared", "VACUUM t");
        let writer = cluster.connect().in_background(statement);
        writer.wait_until_blocked_or_finished(&mut observer);
        vacuum.finish();
        writer.finish();
        session.run("UPDATE t SET v = 71 WHERE k = 7; INSERT INTO t VALUES (21, 210)");
        let expected = changed(&[(7, Some(71)), (21, Some(210))]);
        assert_eq!(rows(&mut session), expected, "{statement}");
        assert_eq!(rows(&mut cluster.connect()), expected, "{statement}");
        session.run("DROP TABLE t");
    }
}

/// The delta is empty to everybody but the one who is writing to it: it is not noted as empty.
#[test]
fn what_a_writer_has_not_committed_when_vacuum_finds_the_delta_empty_is_seen_once_it_is_committed() {
    let cluster = cluster();
    let mut session = cluster.connect();
    for (point, statement) in [
        ("delta-probed", "UPDATE t SET v = 51 WHERE k = 5"),
        ("anchor-won", "UPDATE t SET v = 51 WHERE k = 5"),
        ("delta-replaced", "UPDATE t SET v = 51 WHERE k = 5"),
        ("delta-inserted", "INSERT INTO t VALUES (21, 210)"),
        ("delta-indexed", "INSERT INTO t VALUES (21, 210)"),
    ] {
        create(&mut session);
        session.flush("t");
        let before = changed(&[]);
        let writer = Stopped::at(&cluster, point, statement);
        for _ in 0..2 {
            session.run("VACUUM t");
            assert_eq!(rows(&mut session), before, "{statement} at {point}");
        }
        writer.finish();
        let change = if statement.starts_with("UPDATE") { (5, Some(51)) } else { (21, Some(210)) };
        assert_eq!(rows(&mut session), changed(&[change]), "{statement} at {point}");
        assert_eq!(rows(&mut cluster.connect()), changed(&[change]), "{statement} at {point}");
        session.flush("t");
        assert_eq!(rows(&mut session), changed(&[change]), "{statement} at {point}, and a flush");
        session.run("DROP TABLE t");
    }
}
