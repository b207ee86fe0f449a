//! Sound tables of any kind, who may check them, and what else goes on meanwhile.

use std::time::Duration;

use super::damage::create;
use cass_server_tests::{Cluster, Session};

#[test]
fn a_sound_table_has_no_faults() {
    let cluster = Cluster::new();
    let mut session = cluster.connect();
    session.run("CREATE TABLE t (a int, b int, v text, PRIMARY KEY (a, b)) USING cass");
    session.assert_sound("t");
    session.run("DROP TABLE t");
    create(&mut session);
    session.assert_sound("t");
    session.run("CREATE INDEX ON t (v)");
    session.run("CREATE INDEX ON t USING hash (v)");
    session.run("CREATE INDEX ON t USING gin (string_to_array(v, 'a'))");
    session.run("CREATE INDEX ON t USING gist (point(a, b))");
    session.run("CREATE INDEX ON t USING spgist (v)");
    session.run("CREATE INDEX ON t (b DESC, length(v)) INCLUDE (v) WHERE a % 2 = 0");
    session.assert_sound("t");
    session.run("UPDATE t SET v = repeat(v, 300) WHERE a = 3; UPDATE t SET b = 1000 WHERE a = 4 AND b = 4");
    session.assert_sound("t");
    session.run("VACUUM t");
    session.assert_sound("t");
}

/// Key columns of every type, among them those whose bytes in the key do not give the value back.
#[test]
fn keys_of_all_types_are_computed_again() {
    let cluster = Cluster::new();
    let mut session = cluster.connect();
    session.run(
        "CREATE TABLE k (p1 numeric(9,2), p2 text, c1 real, c2 double precision, c3 numeric, c4 boolean, c5 uuid, c6 inet, c7 bytea,
           c8 date, c9 timestamptz, c10 timeuuid, c11 varint, c12 tinyint, c13 time, v text,
           PRIMARY KEY (p1, p2, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13))
           USING cass WITH (partition_key = 'p1, p2', clustering_order = 'c1 DESC, c2, c3 DESC')",
    );
    session.run(
        "INSERT INTO k SELECT n / 7.0, 'p' || n, CASE WHEN n % 3 = 0 THEN '-0' ELSE n END::real, -n, n::numeric / 10 + 1.00, n % 2 = 0,
           md5(n::text)::uuid, ('10.0.0.' || n)::inet, decode(md5(n::text), 'hex'), '2020-01-01'::date + n, now(),
           '50554d6e-29bb-11e5-b345-feff819cdc9f', n::text::varint, (n % 100)::text::tinyint, '10:00', repeat('v', n)
         FROM generate_series(1, 60) n",
    );
    session.run("CREATE INDEX ON k (c1, c3, p1)");
    session.assert_sound("k");
    session.run("DELETE FROM k WHERE c4 AND cass_allow_filtering()");
    session.assert_sound("k");
    session.flush("k");
    session.assert_sound("k");
}

#[test]
fn a_table_without_a_key_is_checked_and_so_is_one_that_gets_one() {
    let cluster = Cluster::new();
    let mut session = cluster.connect();
    session
        .run("CREATE TABLE u (a int, v text) USING cass; INSERT INTO u SELECT n, 'v' FROM generate_series(1, 500) n");
    session.assert_sound("u");
    session.run("VACUUM u");
    session.run("INSERT INTO u SELECT n, 'w' FROM generate_series(501, 600) n");
    session.assert_sound("u");
    session.run(
        "UPDATE u SET v = 'x' WHERE a % 3 = 0; DELETE FROM u WHERE a % 50 = 7; UPDATE u SET v = 'y' WHERE a % 6 = 0",
    );
    session.assert_sound("u");
    session.run("VACUUM u");
    session.assert_sound("u");
    session.run("ALTER TABLE u ADD PRIMARY KEY (a)");
    session.run("ALTER TABLE u ADD COLUMN w int DEFAULT 7; ALTER TABLE u DROP COLUMN v");
    session.run("INSERT INTO u VALUES (1, 1), (1000, 2)");
    session.assert_sound("u");
    session.run("VACUUM u");
    session.assert_sound("u");
    session.run("VACUUM FULL u");
    session.assert_sound("u");
    session.run("TRUNCATE u");
    session.assert_sound("u");
}

#[test]
fn what_a_transaction_has_written_itself_is_checked_with_the_rest() {
    let cluster = Cluster::new();
    let mut session = cluster.connect();
    create(&mut session);
    session.run("CREATE INDEX ON t (v)");
    for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        session.run(&format!("BEGIN ISOLATION LEVEL {level}"));
        session.run("UPDATE t SET v = 'own' WHERE a = 2; DELETE FROM t WHERE a = 3 AND b = 1; INSERT INTO t VALUES (99, 1, 'new')");
        session.run("SELECT FROM t WHERE a = 7 FOR UPDATE; SAVEPOINT s; UPDATE t SET b = b + 1000 WHERE a = 8");
        session.assert_sound("t");
        session.run("ROLLBACK TO s");
        session.assert_sound("t");
        session.run("COMMIT");
        session.assert_sound("t");
    }
    session.run("CREATE TEMP TABLE tt (a int PRIMARY KEY, v text) USING cass; INSERT INTO tt VALUES (1, 'a')");
    session.assert_sound("tt");
}

/// Writers, VACUUM and bulk loads go on while a table is checked over and over again.
#[test]
fn no_fault_comes_from_what_is_written_meanwhile() {
    let cluster = Cluster::new();
    let mut session = cluster.connect();
    create(&mut session);
    session.run("CREATE INDEX ON t (v); CREATE INDEX ON t USING hash (b); CREATE INDEX ON t USING gin (string_to_array(v, '1'))");
    let writers: Vec<_> = (0..2)
        .map(|writer| {
            cluster.connect().in_background(&format!(
                "DO $$ BEGIN
                   FOR round IN 1..150 LOOP
                     INSERT INTO t SELECT {writer} * 100 + round % 20, b, repeat('w' || round, 1 + round) FROM generate_series(1, 10) b;
                     COMMIT;
                     UPDATE t SET v = 'u' || round, b = b + 100 * round WHERE a = {writer} * 100 + round % 13 AND b = 3;
                     DELETE FROM t WHERE a = {writer} * 100 + round % 7;
                     IF round % 5 = 0 THEN ROLLBACK; ELSE COMMIT; END IF;
                   END LOOP;
                 END $$"
            ))
        })
        .collect();
    let mut vacuum = cluster.connect();
    let mut checks = 0;
    while writers.iter().any(|writer| !writer.is_finished()) {
        let running = vacuum.in_background("VACUUM t");
        while !running.is_finished() {
            session.assert_sound("t");
            checks += 1;
        }
        vacuum = running.finish().0;
    }
    writers.into_iter().for_each(|writer| drop(writer.finish()));
    assert!(checks > 1, "{checks}");
}

#[test]
fn a_check_can_be_cancelled() {
    let cluster = Cluster::new();
    let mut session = cluster.connect();
    session.run("CREATE TABLE large (a int, b int, v text, PRIMARY KEY (a, b)) USING cass");
    session.run("INSERT INTO large SELECT n % 1000, n, md5(n::text) FROM generate_series(1, 100000) n");
    session.run("VACUUM large");
    session.run("SET statement_timeout = '100ms'");
    assert!(session.error("SELECT * FROM cass_check('large')").starts_with("57014"));
    session.run("RESET statement_timeout");
    let check = session.in_background("SELECT * FROM cass_check('large')");
    std::thread::sleep(Duration::from_millis(100));
    check.cancel();
    let (_, result) = check.join();
    assert!(result.as_ref().is_err_and(|error| error.starts_with("57014")), "{result:?}");
}

#[test]
fn owners_and_superusers_may_check_cass_tables_and_nothing_else() {
    let cluster = Cluster::new();
    let mut session = cluster.connect();
    session.run("CREATE ROLE owner; CREATE ROLE other; GRANT CREATE ON SCHEMA public TO owner");
    session.run("SET ROLE owner; CREATE TABLE o (a int PRIMARY KEY, v text) USING cass; INSERT INTO o VALUES (1, 'a')");
    session.assert_sound("o");
    session.run("GRANT SELECT ON o TO other; SET ROLE other");
    assert!(session.error("SELECT * FROM cass_check('o')").starts_with("42501 must be owner of table o"));
    session.run("RESET ROLE");
    session.assert_sound("o");
    session.run("CREATE TABLE h (a int PRIMARY KEY); CREATE VIEW w AS SELECT 1");
    for relation in ["h", "h_pkey", "w", "o_pkey", "pg_class"] {
        let error = session.error(&format!("SELECT * FROM cass_check('{relation}')"));
        assert_eq!(error, format!("42809 \"{relation}\" is not a table of access method cass"));
    }
    session.run("CREATE TEMP TABLE tt (a int PRIMARY KEY) USING cass");
    let temporary = session.value("SELECT 'tt'::regclass::oid");
    let error = cluster.connect().error(&format!("SELECT * FROM cass_check({temporary})"));
    assert!(error.starts_with("0A000 table \"tt\" is a temporary table of another session"), "{error}");
}

/// What an index calls runs with the rights of the table's owner, not with those of who checks.
#[test]
fn functions_of_indexes_run_as_the_owner() {
    let cluster = Cluster::new();
    let mut session = cluster.connect();
    session.run("CREATE ROLE owner; GRANT CREATE ON SCHEMA public TO owner; SET ROLE owner");
    session.run(
        "CREATE TABLE o (a int PRIMARY KEY, v text) USING cass; INSERT INTO o VALUES (1, 'a');
         CREATE FUNCTION f(text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN $1; END';
         CREATE INDEX ON o (f(v));
         CREATE OR REPLACE FUNCTION f(text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS
           'BEGIN RAISE ''called by %'', current_user; END'",
    );
    session.run("RESET ROLE");
    cluster.expect_damage();
    assert_eq!(session.faults_of("o"), ["index|∅|the index cannot be checked: called by owner"]);
    assert_eq!(session.value("SELECT current_user"), "postgres");
}

#[test]
fn a_standby_checks_its_tables() {
    let primary = Cluster::new();
    let mut session = primary.connect();
    create(&mut session);
    session.run("CREATE INDEX ON t (v)");
    let standby = primary.standby();
    session.run("INSERT INTO t VALUES (50, 1, 'later')");
    session.run("VACUUM t");
    standby.catch_up_with(&primary);
    let mut reader: Session = standby.connect();
    reader.assert_sound("t");
    assert_eq!(reader.value("SELECT count(*) FROM t"), "2000");
}
