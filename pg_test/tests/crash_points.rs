//! A backend that dies, or fails, at a named point leaves what was committed, and the work can be done again.
//!
//! The points are those of `src/pg/injection.rs`. Beside the cass table stands a heap table, on which each statement is run once,
//! undisturbed: after the statement has been disturbed and repeated, both must hold the same rows.

use cass_server_tests::{Cluster, Session, Stopped};

/// Points, and statements that come to them. $ is the table's name.
const CASES: &[(&str, &str)] = &[
    ("delta-inserted", "INSERT INTO $ VALUES (100001, 1, 'new')"),
    ("delta-indexed", "INSERT INTO $ VALUES (100002, 1, 'new')"),
    ("delta-inserted", "UPDATE $ SET w = 'of a segment' WHERE k = 900"),
    ("delta-indexed", "DELETE FROM $ WHERE k = 901"),
    ("anchor-won", "UPDATE $ SET w = 'of a segment' WHERE k = 902"),
    ("delta-replaced", "UPDATE $ SET w = 'of the delta' WHERE k = 7"),
    ("delta-replaced", "DELETE FROM $ WHERE k = 8"),
    ("delta-inserted", "COPY $ (k) FROM PROGRAM 'seq 200001 200050'"),
    ("segment-reserved", "VACUUM $"),
    ("segment-extended", "VACUUM $"),
    ("segment-written", "VACUUM $"),
    ("segment-published", "VACUUM $"),
    ("flush-deleted", "VACUUM $"),
    ("merge-removed", "VACUUM $"),
    ("delta-emptied", "VACUUM $"),
    ("delta-flag-cleared", "VACUUM $"),
    ("indexes-shrunk", "VACUUM $"),
    ("segment-written", "VACUUM FULL $"),
    ("load-finished", "VACUUM FULL $"),
    ("files-created", "VACUUM FULL $"),
    ("files-copied", "ALTER TABLE $ SET TABLESPACE place"),
    ("statement-finished", "ALTER TABLE $ SET TABLESPACE pg_default"),
    ("load-finished", "ALTER TABLE $ ALTER v TYPE bigint"),
    ("statement-finished", "ALTER TABLE $ ADD COLUMN later int DEFAULT 5"),
    ("index-built", "CREATE INDEX ON $ (v)"),
    ("index-built", "REINDEX TABLE $"),
    ("files-created", "TRUNCATE $"),
];

/// What a point does.
#[derive(Clone, Copy, Debug)]
enum Action {
    /// The server loses what it has not written yet, of its log too.
    Kill,
    /// All that the statement has done until then is on disk when its process dies.
    KillWritten,
    Error,
}

struct Twins {
    cluster: Cluster,
    session: Session,
}

impl Twins {
    fn new() -> Twins {
        let cluster = Cluster::with_settings(&[
            ("cass.enforcement", "off"),
            ("allow_in_place_tablespaces", "on"),
            ("cass.eager_merge_size", "64MB"),
        ]);
        let mut session = cluster.connect();
        session.run("CREATE TABLESPACE place LOCATION ''");
        for (table, access_method) in [("c", "cass"), ("h", "heap")] {
            session.run(&format!(
                "CREATE TABLE {table} (k int PRIMARY KEY, v int, w text) USING {access_method}; CREATE INDEX ON {table} (w)"
            ));
        }
        Twins { cluster, session }
    }

    /// Runs a statement on both tables.
    fn run(&mut self, statement: &str) {
        for table in ["c", "h"] {
            self.session.run(&statement.replace('$', table));
        }
    }

    /// Gives both tables rows of different ages: of the cass table in a segment, and in the delta above it.
    fn fill(&mut self, round: usize) {
        self.session.run("DELETE FROM c WHERE k <= 1000; DELETE FROM h WHERE k <= 1000");
        for table in ["c", "h"] {
            self.session.run(&format!(
                "INSERT INTO {table} (k, v, w) SELECT k, {round}, md5(k::text) FROM generate_series(1, 1000) k"
            ));
        }
        self.session.run("VACUUM c");
        // Every other time the log that a crash goes by does not reach back to what VACUUM has written.
        if round.is_multiple_of(2) {
            self.session.run("CHECKPOINT");
        }
        for table in ["c", "h"] {
            self.session.run(&format!("UPDATE {table} SET v = v + k WHERE k <= 50; DELETE FROM {table} WHERE k = 60"));
        }
    }

    fn assert_same(&mut self, when: &str) {
        let rows = |session: &mut Session, table: &str, condition: &str| {
            session.rows(&format!("SELECT * FROM {table} WHERE {condition} ORDER BY k"))
        };
        for condition in ["true", "k = 7", "w = md5('77')"] {
            let (ours, heaps) = (rows(&mut self.session, "c", condition), rows(&mut self.session, "h", condition));
            assert!(ours == heaps, "{when}: {} rows where {condition}, of a heap {}", ours.len(), heaps.len());
        }
        self.session.assert_sound("c");
    }

    /// Runs the statement on the cass table and has it end at the point. All is as it was then.
    fn disturb(&mut self, point: &str, action: Action, statement: &str) {
        let when = format!("{statement}, {action:?} at {point}");
        let statement = statement.replace('$', "c");
        match action {
            Action::Error => {
                self.session.run(&format!("SET cass.injection_point = '{point}=error'"));
                let error = self.session.error(&statement);
                assert_eq!(error, format!("XX000 injection point {point}"), "{when}");
                self.session.run("RESET cass.injection_point");
            }
            Action::Kill => {
                self.session.run(&format!("SET cass.injection_point = '{point}=kill'"));
                let process = self.session.process();
                let error = self.session.try_rows(&statement).expect_err(&when);
                let said = error.as_db_error().map(|error| error.message().to_string());
                assert!(said.is_none_or(|said| said.starts_with("terminating connection")), "{when}: {error}");
                self.session = self.cluster.connect_when_recovered(process);
            }
            Action::KillWritten => {
                let stopped = Stopped::at(&self.cluster, point, &statement);
                self.session.run("CHECKPOINT");
                let process = stopped.kill();
                self.session = self.cluster.connect_when_recovered(process);
            }
        }
        self.assert_same(&when);
    }
}

fn disturb_all(action: Action) {
    let mut twins = Twins::new();
    for (round, (point, statement)) in CASES.iter().enumerate() {
        twins.fill(round);
        twins.disturb(point, action, statement);
        twins.run(statement);
        twins.assert_same(&format!("{statement}, repeated after {action:?} at {point}"));
    }
    twins.fill(CASES.len());
    // Blocks of runs that were never published are free again.
    (0..3).for_each(|_| twins.session.run("VACUUM c"));
    let size = "SELECT pg_relation_size('c')";
    let with_free_space = twins.session.count(size);
    twins.session.run("VACUUM FULL c");
    let least = twins.session.count(size);
    assert!(with_free_space <= 8 * least, "{with_free_space} bytes for {least}");
    twins.assert_same("at the end");
}

#[test]
fn a_backend_that_is_killed_at_a_point_leaves_what_was_committed() {
    disturb_all(Action::Kill);
}

#[test]
fn a_backend_that_is_killed_at_a_point_leaves_what_was_committed_though_its_work_is_on_disk() {
    disturb_all(Action::KillWritten);
}

#[test]
fn a_statement_that_fails_at_a_point_leaves_what_was_committed() {
    disturb_all(Action::Error);
}

/// A writer takes back what metapage and visibility map say of an empty delta. If they disagreed after its end, either would keep later
/// writers from doing so.
#[test]
fn what_is_written_after_the_end_of_who_began_to_write_to_an_empty_delta_is_seen() {
    let mut twins = Twins::new();
    for (round, action) in [Action::Kill, Action::KillWritten, Action::Error].into_iter().enumerate() {
        twins.fill(round);
        twins.session.flush("c");
        let insert = "INSERT INTO $ VALUES (100001, 1, 'new')";
        twins.disturb("delta-map-taken-back", action, insert);
        twins.run(insert);
        twins.assert_same(&format!("{insert}, repeated after {action:?}"));
        twins.run("DELETE FROM $ WHERE k > 1000");
    }
}

#[test]
fn a_table_whose_creation_or_end_is_interrupted_is_not_there_or_whole() {
    let cluster = Cluster::new();
    let mut session = cluster.connect();
    session.run("CREATE TABLE old (k int PRIMARY KEY, v int) USING cass; INSERT INTO old SELECT k, k FROM generate_series(1, 500) k");
    session.flush("old");
    session.run("UPDATE old SET v = -v WHERE k = 5");
    for (point, statement) in [
        ("statement-finished", "DROP TABLE old"),
        ("statement-finished", "CREATE TABLE young (k int PRIMARY KEY, v int) USING cass"),
        ("delta-inserted", "CREATE TABLE young USING cass AS SELECT * FROM old"),
        ("files-created", "CREATE TABLE young USING cass AS SELECT * FROM old"),
    ] {
        session.run(&format!("SET cass.injection_point = '{point}=kill'"));
        let process = session.process();
        assert!(session.try_rows(statement).is_err_and(|error| error.as_db_error().is_none()), "{statement}");
        session = cluster.connect_when_recovered(process);
        assert_eq!(session.rows("SELECT count(*), sum(v) FROM old"), ["500|125240"], "{statement}");
        assert_eq!(session.value("SELECT to_regclass('young') IS NULL"), "t", "{statement}");
        assert_eq!(
            session.value("SELECT count(*) FROM pg_class WHERE relname LIKE 'cass_delta_%' AND relkind = 't'"),
            "1"
        );
    }
    session.run("CREATE TABLE young USING cass AS SELECT * FROM old");
    session.run("DROP TABLE old");
    assert_eq!(session.rows("SELECT count(*), sum(v) FROM young"), ["500|125240"]);
}
