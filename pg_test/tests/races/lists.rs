//! The list of segments is tidied, and tables begin new lives, while others publish segments.

use crate::{changed, cluster, create, rows};
use cass_server_tests::Stopped;

/// What VACUUM of one table takes out of the list are segments of tables that are gone, not of one it has not heard of yet.
#[test]
fn segments_of_a_table_that_is_committed_while_the_list_is_tidied_stay() {
    let cluster = cluster();
    let (mut session, mut other) = (cluster.connect(), cluster.connect());
    other.run("CREATE TABLE other (k int PRIMARY KEY) USING cass; INSERT INTO other VALUES (1)");
    let steps = [
        "CREATE TABLE t USING cass AS SELECT k, 10 * k AS v FROM generate_series(1, 20) k",
        "ALTER TABLE t ADD PRIMARY KEY (k)",
        "CREATE INDEX t_v ON t (v)",
    ];
    // Made by one transaction that is at work when the list is looked at, or by several that come in between.
    for at_work in [true, false] {
        if at_work {
            session.run(&format!("BEGIN; {}", steps.join(";")));
        }
        let vacuum = Stopped::in_session(&cluster, other, "list-vacuumed", "VACUUM other");
        if at_work {
            session.run("COMMIT");
        } else {
            steps.iter().for_each(|step| session.run(step));
        }
        let segments = session.segments_of("t");
        assert_eq!(segments, 1);
        other = vacuum.finish().0;
        assert_eq!(session.segments_of("t"), segments);
        assert_eq!(rows(&mut cluster.connect()), changed(&[]));
        session.assert_sound("t");
        session.run("DROP TABLE t");
    }
    // Those of a table that is gone do go.
    other.run("RESET cass.injection_point");
    (0..2).for_each(|_| other.run("VACUUM other"));
    assert_eq!(other.value("SELECT count(DISTINCT relation) FROM cass_catalog.segment"), "1");
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
