//! The list of segments is tidied, and tables begin new lives, while others publish segments.

use crate::{changed, cluster, create, rows};
use cass_server_tests::Stopped;

/// What VACUUM of one table takes out of the list are segments of tables that are gone. Snapshots see a new table before the catalog
/// caches hear of it.
#[test]
fn segments_of_a_table_that_is_committed_while_the_list_is_tidied_stay() {
    let cluster = cluster();
    let (mut session, mut other) = (cluster.connect(), cluster.connect());
    other.run("CREATE TABLE other (k int PRIMARY KEY) USING cass; INSERT INTO other VALUES (1)");
    session.run(
        "BEGIN; CREATE TABLE t USING cass AS SELECT k, 10 * k AS v FROM generate_series(1, 20) k;
         ALTER TABLE t ADD PRIMARY KEY (k); CREATE INDEX t_v ON t (v);
         SET cass.injection_point = 'transaction-committed=wait'",
    );
    let vacuum = Stopped::in_session(&cluster, other, "list-vacuumed", "VACUUM other");
    // It comes second to the lock that all points wait for, and so stays in the middle of its commit until VACUUM has ended.
    let commit = session.in_background("COMMIT");
    let mut observer = cluster.connect();
    commit.wait_until_blocked_by("advisory", &mut observer);
    assert_eq!(observer.value("SELECT count(*) FROM pg_class WHERE relname = 't'"), "1", "snapshots see it");
    let (mut other, _) = vacuum.finish();
    let (mut session, _) = commit.finish();
    assert_eq!(session.segments_of("t"), 1);
    for reader in [&mut session, &mut cluster.connect()] {
        assert_eq!(rows(reader), changed(&[]));
    }
    session.assert_sound("t");
    session.run("DROP TABLE t");
    other.run("RESET cass.injection_point");
    (0..2).for_each(|_| other.run("VACUUM other"));
    assert_eq!(
        other.value("SELECT count(DISTINCT relation) FROM cass_catalog.segment"),
        "1",
        "of a table that is gone"
    );
}

/// A segment that is published for one life of a table counts for no other.
#[test]
fn a_truncate_beside_a_flush_leaves_the_table_empty_or_whole() {
    let cluster = cluster();
    let (mut session, mut observer) = (cluster.connect(), cluster.connect());
    for step in ["segment-written", "segment-published", "flush-deleted", "delta-emptied"] {
        for end in ["COMMIT", "ROLLBACK"] {
            create(&mut session);
            let flush = Stopped::at(&cluster, step, "VACUUM t");
            let truncate =
                session.in_background("BEGIN; TRUNCATE t; INSERT INTO t VALUES (5, 55), (11, 115), (21, 215)");
            truncate.wait_until_blocked_by("relation", &mut observer);
            flush.finish();
            session = truncate.finish().0;
            let after = ["5|55", "11|115", "21|215"].map(String::from).to_vec();
            assert_eq!(rows(&mut session), after, "at {step}");
            let vacuum = cluster.connect().in_background("VACUUM t");
            vacuum.wait_until_blocked_by("relation", &mut observer);
            session.run(end);
            vacuum.finish();
            let expected = if end == "COMMIT" { after } else { changed(&[]) };
            assert_eq!(rows(&mut session), expected, "{end} after {step}");
            session.flush("t");
            assert_eq!(rows(&mut session), expected, "{end} after {step}, and a flush");
            session.assert_sound("t");
            session.run("DROP TABLE t");
        }
    }
}
