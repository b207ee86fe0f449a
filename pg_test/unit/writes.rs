//! INSERT, UPDATE, DELETE and COPY: what is stored, and what the statement itself, triggers and indexes see of it.

#[pgrx::pg_schema]
mod tests {
    use pgrx::prelude::*;

    use crate::unit_tests::support::{error_of, own_schema, rows, run, sqlstate_of, text, value};

    fn readings() {
        own_schema();
        run("CREATE TABLE readings (sensor text, ts int, a text, b text, PRIMARY KEY (sensor, ts)) USING cass");
    }

    #[pg_test]
    fn an_insert_of_a_key_that_exists_overwrites_the_row() {
        readings();
        run("INSERT INTO readings VALUES ('s', 1, 'old', 'old')");
        run("INSERT INTO readings VALUES ('s', 1, 'new', NULL)");
        assert_eq!(rows("SELECT readings::text FROM readings"), "(s,1,new,)");
    }

    #[pg_test]
    fn one_command_may_write_a_key_twice_and_the_last_one_wins() {
        readings();
        let returned = rows("INSERT INTO readings VALUES ('s', 1, 'x', 'x'), ('s', 1, 'y', 'y') RETURNING a");
        assert_eq!(returned, "x y");
        assert_eq!(rows("SELECT a FROM readings"), "y");
    }

    #[pg_test]
    fn an_insert_keeps_the_columns_it_does_not_name_and_null_clears() {
        readings();
        run("INSERT INTO readings VALUES ('s', 1, 'a1', 'b1')");
        assert_eq!(rows("INSERT INTO readings (sensor, ts, b) VALUES ('s', 1, 'b2') RETURNING a || b"), "a1b2");
        run("INSERT INTO readings (sensor, ts, a) VALUES ('s', 1, NULL)");
        assert_eq!(rows("SELECT readings::text FROM readings"), "(s,1,,b2)");
    }

    #[pg_test]
    fn a_column_with_a_default_counts_as_named() {
        own_schema();
        run("CREATE TABLE d (k int PRIMARY KEY, a text DEFAULT 'given', b text) USING cass");
        run("INSERT INTO d VALUES (1, 'mine', 'b')");
        run("INSERT INTO d (k) VALUES (1)");
        assert_eq!(rows("SELECT a || b FROM d"), "givenb");
    }

    #[pg_test]
    fn whole_rows_are_written_where_the_table_asks_for_them() {
        own_schema();
        run("CREATE TABLE w (k int PRIMARY KEY, a text, b text) USING cass WITH (insert = 'row')");
        run("INSERT INTO w VALUES (1, 'a', 'b')");
        run("INSERT INTO w (k, b) VALUES (1, 'b2')");
        assert_eq!(rows("SELECT w::text FROM w"), "(1,,b2)");
    }

    #[pg_test]
    fn a_completed_row_satisfies_its_checks_and_generated_columns() {
        own_schema();
        run("CREATE TABLE g (k int PRIMARY KEY, n int, a text CHECK (n IS NULL OR a IS NOT NULL), \
             twice int GENERATED ALWAYS AS (n * 2) STORED) USING cass");
        run("INSERT INTO g VALUES (1, 5, 'a')");
        assert_eq!(sqlstate_of("INSERT INTO g (k, a) VALUES (1, NULL)"), "23514");
        run("INSERT INTO g (k, a) VALUES (1, 'b')");
        assert_eq!(rows("SELECT g::text FROM g"), "(1,5,b,10)");
    }

    #[pg_test]
    fn a_completed_row_is_what_indexes_and_after_triggers_see() {
        own_schema();
        run("CREATE TABLE t (k int PRIMARY KEY, a text, b text) USING cass");
        run("CREATE INDEX ON t (a)");
        run("CREATE TABLE seen (what text)");
        run("CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN INSERT INTO seen VALUES (NEW.a || NEW.b); RETURN NULL; END $$");
        run("CREATE TRIGGER note AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION note()");
        run("INSERT INTO t VALUES (1, 'a', 'b')");
        run("INSERT INTO t (k, b) VALUES (1, 'c')");
        assert_eq!(rows("SELECT what FROM seen"), "ab ac");
        run("SET LOCAL enable_seqscan = off");
        assert_eq!(rows("SELECT b FROM t WHERE a = 'a'"), "c");
    }

    #[pg_test]
    fn before_triggers_change_what_is_stored() {
        own_schema();
        run("CREATE TABLE t (k int PRIMARY KEY, a text) USING cass");
        run("CREATE FUNCTION shout() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN NEW.a = upper(NEW.a); RETURN NEW; END $$");
        run("CREATE TRIGGER shout BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION shout()");
        run("INSERT INTO t VALUES (1, 'x')");
        run("UPDATE t SET a = a || 'y' WHERE k = 1");
        assert_eq!(rows("SELECT a FROM t"), "XY");
    }

    #[pg_test]
    fn an_update_returns_the_row_and_a_delete_the_old_one() {
        readings();
        run("INSERT INTO readings VALUES ('s', 1, 'a', 'b')");
        assert_eq!(rows("UPDATE readings SET a = a || '!' WHERE sensor = 's' RETURNING a"), "a!");
        assert_eq!(rows("DELETE FROM readings WHERE sensor = 's' RETURNING a || b"), "a!b");
        assert_eq!(value::<i64>("SELECT count(*) FROM readings"), Some(0));
        run("INSERT INTO readings VALUES ('s', 1, 'again', NULL)");
        assert_eq!(rows("SELECT a FROM readings"), "again");
    }

    #[pg_test]
    fn an_update_of_the_key_moves_the_row_but_not_onto_a_live_one() {
        readings();
        run("INSERT INTO readings VALUES ('s', 1, 'one', NULL), ('s', 2, 'two', NULL)");
        run("UPDATE readings SET ts = 3 WHERE sensor = 's' AND ts = 1");
        assert_eq!(rows("SELECT ts || a FROM readings WHERE sensor = 's'"), "2two 3one");
        let error = error_of("UPDATE readings SET ts = 3 WHERE sensor = 's' AND ts = 2");
        assert!(error.starts_with("23505|"), "{error}");
        assert!(error.contains("Key (sensor=s, ts=3) already exists."), "{error}");
        assert_eq!(rows("SELECT ts || a FROM readings WHERE sensor = 's'"), "2two 3one");
    }

    #[pg_test]
    fn null_in_a_key_column_is_an_error() {
        readings();
        assert_eq!(sqlstate_of("INSERT INTO readings VALUES (NULL, 1)"), "23502");
        assert_eq!(sqlstate_of("INSERT INTO readings (sensor) VALUES ('s')"), "23502");
    }

    #[pg_test]
    fn an_empty_value_alone_is_no_partition_key() {
        readings();
        assert_eq!(
            error_of("INSERT INTO readings VALUES ('', 1)"),
            "22023|the partition key of a row may not be empty: column \"sensor\"|An empty value alone has no token that a row could \
             have.|Give it a value, or add another column to the partition key: beside others a value may be empty."
        );
    }

    #[pg_test]
    fn a_key_that_is_too_long_is_refused_with_its_limit() {
        readings();
        assert_eq!(
            error_of("INSERT INTO readings VALUES (repeat('x', 70000), 1)"),
            "54000|partition key is too long|The value of column \"sensor\" has 70000 bytes; 65535 are the most.|Use a shorter \
             value, or a hash of it, in the primary key."
        );
        assert_eq!(sqlstate_of("INSERT INTO readings VALUES (repeat('x', 3000), 1)"), "54000");
    }

    #[pg_test]
    fn a_rolled_back_savepoint_takes_its_writes_with_it() {
        readings();
        run("INSERT INTO readings VALUES ('s', 1, 'kept', NULL), ('s', 2, 'kept', NULL)");
        run("DO $$ BEGIN
               UPDATE readings SET a = 'changed' WHERE sensor = 's' AND ts = 1;
               DELETE FROM readings WHERE sensor = 's' AND ts = 2;
               INSERT INTO readings VALUES ('s', 3);
               RAISE division_by_zero;
             EXCEPTION WHEN division_by_zero THEN NULL; END $$");
        assert_eq!(rows("SELECT ts || a FROM readings WHERE sensor = 's'"), "1kept 2kept");
    }

    #[pg_test]
    fn a_caught_error_inside_an_insert_does_not_confuse_the_statement_around_it() {
        readings();
        run("CREATE FUNCTION risky(n int) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
               INSERT INTO readings (sensor, ts) VALUES (NULL, n);
               RETURN 'no';
             EXCEPTION WHEN not_null_violation THEN RETURN 'caught'; END $$");
        run("INSERT INTO readings VALUES ('s', 1, 'a', 'b')");
        run("INSERT INTO readings (sensor, ts, a) SELECT 's', n, risky(n) FROM generate_series(1, 2) n");
        assert_eq!(rows("SELECT readings::text FROM readings WHERE sensor = 's'"), "(s,1,caught,b) (s,2,caught,)");
    }

    #[pg_test]
    fn rows_of_a_table_without_a_key_are_kept_as_they_come() {
        own_schema();
        run("CREATE TABLE loose (a int, b text) USING cass");
        run("INSERT INTO loose VALUES (1, 'x'), (1, 'x'), (2, 'y')");
        run("UPDATE loose SET b = 'z' WHERE a = 2");
        run("DELETE FROM loose WHERE a = 2");
        assert_eq!(rows("SELECT b FROM loose"), "x x");
    }

    #[pg_test]
    fn adding_the_key_places_the_rows_and_refuses_two_of_one_key() {
        own_schema();
        run("CREATE TABLE loose (a int, b int) USING cass");
        run("INSERT INTO loose SELECT g % 5, g FROM generate_series(1, 50) g");
        assert_eq!(sqlstate_of("ALTER TABLE loose ADD PRIMARY KEY (a)"), "23505");
        run("ALTER TABLE loose ADD PRIMARY KEY (a, b)");
        assert_eq!(rows("SELECT b FROM loose WHERE a = 3"), "3 8 13 18 23 28 33 38 43 48");
        assert_eq!(rows("SELECT DISTINCT cass_token(a)::text FROM loose WHERE a = 3"), "9010454139840013625");
    }

    #[pg_test]
    fn values_of_megabytes_come_back_and_their_room_is_given_back() {
        own_schema();
        run("CREATE TABLE big (k int PRIMARY KEY, t text) USING cass");
        run("ALTER TABLE big ALTER t SET STORAGE EXTERNAL");
        run("INSERT INTO big VALUES (1, repeat('0123456789', 300000))");
        run("INSERT INTO big VALUES (1, repeat('9876543210', 300000))");
        run("UPDATE big SET t = t || 'x' WHERE k = 1");
        assert_eq!(text("SELECT md5(t) FROM big"), text("SELECT md5(repeat('9876543210', 300000) || 'x')"));
        let toast = text("SELECT reltoastrelid::regclass::text FROM pg_class WHERE oid = 'big'::regclass");
        assert_eq!(value::<i64>(&format!("SELECT count(DISTINCT chunk_id) FROM {toast}")), Some(1));
    }

    #[pg_test]
    fn placing_rows_keeps_their_large_values_where_they_are() {
        own_schema();
        run("CREATE TABLE big (k int, t text) USING cass");
        run("ALTER TABLE big ALTER t SET STORAGE EXTERNAL");
        run("INSERT INTO big SELECT g, repeat(g::text, 10000) FROM generate_series(1, 3) g");
        run("ALTER TABLE big ADD PRIMARY KEY (k)");
        assert_eq!(rows("SELECT length(t) FROM big WHERE k IN (1, 2, 3)"), "10000 10000 10000");
        let toast = text("SELECT reltoastrelid::regclass::text FROM pg_class WHERE oid = 'big'::regclass");
        assert_eq!(value::<i64>(&format!("SELECT count(DISTINCT chunk_id) FROM {toast}")), Some(3));
    }

    #[pg_test]
    fn a_column_added_later_shows_its_default_on_older_rows() {
        readings();
        run("INSERT INTO readings VALUES ('s', 1, 'a', 'b')");
        run("ALTER TABLE readings ADD COLUMN five int NOT NULL DEFAULT 5, ADD COLUMN none text");
        run("INSERT INTO readings VALUES ('s', 2, 'a', 'b', 6)");
        assert_eq!(rows("SELECT five::text || coalesce(none, '-') FROM readings"), "5- 6-");
        run("ALTER TABLE readings DROP COLUMN a");
        assert_eq!(rows("SELECT readings::text FROM readings"), "(s,1,b,5,) (s,2,b,6,)");
    }

    #[pg_test]
    fn an_index_on_another_column_follows_hundreds_of_updates() {
        own_schema();
        run("CREATE TABLE t (k int PRIMARY KEY, n int) USING cass");
        run("CREATE INDEX ON t (n)");
        run("INSERT INTO t VALUES (1, 0), (2, 1000)");
        run("DO $$ BEGIN FOR i IN 1..300 LOOP UPDATE t SET n = i WHERE k = 1; END LOOP; END $$");
        run("SET LOCAL enable_seqscan = off; SET LOCAL cass.enforcement = off");
        assert_eq!(rows("SELECT k FROM t WHERE n = 300"), "1");
        assert_eq!(rows("SELECT k FROM t WHERE n = 204"), "");
        assert_eq!(rows("SELECT n FROM t WHERE n >= 0 ORDER BY n"), "300 1000");
    }

    #[pg_test]
    fn a_unique_index_on_another_column_refuses_a_second_row_and_allows_an_overwrite() {
        own_schema();
        run("CREATE TABLE t (k int PRIMARY KEY, u int UNIQUE) USING cass");
        run("INSERT INTO t VALUES (1, 7)");
        run("INSERT INTO t VALUES (1, 7)");
        assert_eq!(sqlstate_of("INSERT INTO t VALUES (2, 7)"), "23505");
        run("DELETE FROM t WHERE k = 1");
        run("INSERT INTO t VALUES (2, 7)");
        assert_eq!(rows("SELECT t::text FROM t"), "(2,7)");
    }

    #[pg_test]
    fn foreign_keys_from_a_cass_table_are_checked_and_cascade() {
        own_schema();
        run("CREATE TABLE parent (id int PRIMARY KEY)");
        run("INSERT INTO parent VALUES (1), (2)");
        run("CREATE TABLE child (k int PRIMARY KEY, p int REFERENCES parent ON DELETE CASCADE) USING cass");
        run("INSERT INTO child VALUES (1, 1), (2, 2)");
        assert_eq!(sqlstate_of("INSERT INTO child VALUES (3, 3)"), "23503");
        run("DELETE FROM parent WHERE id = 1");
        assert_eq!(rows("SELECT k FROM child"), "2");
    }

    #[pg_test]
    fn temporary_tables_work_and_truncate_empties() {
        own_schema();
        run("CREATE TEMP TABLE t (k int PRIMARY KEY, a text) USING cass");
        run("INSERT INTO t SELECT g, 'x' FROM generate_series(1, 100) g");
        assert_eq!(value::<i64>("SELECT count(*) FROM t"), Some(100));
        run("TRUNCATE t");
        run("INSERT INTO t VALUES (1, 'y')");
        assert_eq!(rows("SELECT t::text FROM t"), "(1,y)");
    }

    #[pg_test]
    fn analyze_counts_rows_and_values() {
        own_schema();
        run("CREATE TABLE t (k int PRIMARY KEY, a int) USING cass");
        run("INSERT INTO t SELECT g, g % 4 FROM generate_series(1, 1000) g");
        run("ANALYZE t");
        assert_eq!(text("SELECT reltuples::text FROM pg_class WHERE oid = 't'::regclass"), "1000");
        assert_eq!(text("SELECT n_distinct::text FROM pg_stats WHERE tablename = 't' AND attname = 'a'"), "4");
    }

    /// A function that runs a statement in a block with an exception handler, and fails in it once.
    fn failing_once(at: i32) {
        run(&format!(
            "CREATE FUNCTION careful(i int) RETURNS int LANGUAGE plpgsql VOLATILE AS $$ BEGIN
               IF i = {at} THEN
                 BEGIN PERFORM count(*) FROM pg_class; PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN NULL; END;
               END IF;
               RETURN i; END $$"
        ));
    }

    #[pg_test]
    fn rows_a_load_has_gathered_outlive_an_error_that_a_function_of_it_catches() {
        own_schema();
        failing_once(2500);
        run("CREATE TABLE t (k int PRIMARY KEY, v int) USING cass");
        run("INSERT INTO t SELECT i, careful(i) FROM generate_series(1, 3000) i");
        assert_eq!(text("SELECT count(*) || ' ' || sum(v) FROM t"), "3000 4501500");
        run("CREATE TABLE made USING cass AS SELECT i AS k, careful(i) AS v FROM generate_series(1, 3000) i");
        assert_eq!(text("SELECT count(*) || ' ' || sum(v) FROM made"), "3000 4501500");
    }

    #[pg_test]
    fn a_function_sees_the_rows_that_the_load_around_it_has_gathered() {
        own_schema();
        run("CREATE TABLE t (k int PRIMARY KEY, v bigint) USING cass");
        run("CREATE FUNCTION so_far(i int) RETURNS bigint LANGUAGE plpgsql VOLATILE AS \
             $$ BEGIN RETURN (SELECT count(*) FROM t WHERE cass_allow_filtering()); END $$");
        run("INSERT INTO t SELECT i, CASE WHEN i = 2001 THEN so_far(i) END FROM generate_series(1, 2500) i");
        assert_eq!(rows("SELECT v FROM t WHERE k = 2001"), "2000");
    }

    #[pg_test]
    fn a_table_that_an_outer_transaction_level_loads_cannot_be_used() {
        own_schema();
        run("CREATE TABLE t (k int PRIMARY KEY, v bigint) USING cass");
        run("CREATE FUNCTION inside(i int) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$ BEGIN
               IF i = 2001 THEN
                 BEGIN RETURN (SELECT count(*) FROM t); EXCEPTION WHEN division_by_zero THEN NULL; END;
               END IF;
               RETURN i; END $$");
        assert_eq!(sqlstate_of("INSERT INTO t SELECT i, inside(i) FROM generate_series(1, 2500) i"), "55006");
        assert_eq!(value::<i64>("SELECT count(*) FROM t"), Some(0));
    }

    #[pg_test]
    fn each_target_of_a_statement_names_its_own_columns() {
        own_schema();
        run("CREATE TABLE t (k int, c int, a int, b int, PRIMARY KEY (k, c)) USING cass");
        run("INSERT INTO t VALUES (1, 1, 10, 20), (1, 2, 10, 20), (1, 3, 10, 20)");
        run("WITH u AS (UPDATE t SET a = a WHERE k = 1 AND c = 3) INSERT INTO t (k, c, a) VALUES (1, 1, 11)");
        assert_eq!(rows("SELECT t::text FROM t WHERE k = 1"), "(1,1,11,20) (1,2,10,20) (1,3,10,20)");
        run("WITH x AS (INSERT INTO t (k, c, a) VALUES (1, 1, 12)), y AS (INSERT INTO t (k, c, b) VALUES (1, 2, 22)) SELECT 1");
        assert_eq!(rows("SELECT t::text FROM t WHERE k = 1"), "(1,1,12,20) (1,2,10,22) (1,3,10,20)");
        run("WITH i AS (INSERT INTO t (k, c, b) VALUES (1, 1, 23)) UPDATE t SET a = 9 WHERE k = 1 AND c = 3");
        assert_eq!(rows("SELECT t::text FROM t WHERE k = 1"), "(1,1,12,23) (1,2,10,22) (1,3,9,20)");
    }

    #[pg_test]
    fn what_a_before_trigger_sets_is_stored_over_what_the_row_had() {
        own_schema();
        run("CREATE TABLE t (k int PRIMARY KEY, v int, stamp text) USING cass");
        run("CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN NEW.stamp = 'at ' || NEW.v; RETURN NEW; END $$");
        run("CREATE TRIGGER stamp BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION stamp()");
        run("INSERT INTO t (k, v) VALUES (1, 1)");
        assert_eq!(rows("INSERT INTO t (k, v) VALUES (1, 2) RETURNING stamp"), "at 2");
        assert_eq!(rows("SELECT stamp FROM t"), "at 2");
    }

    #[pg_test]
    fn an_insert_overwrites_no_row_of_a_table_whose_policies_bind_the_user() {
        own_schema();
        run("CREATE TABLE t (k int PRIMARY KEY, owner text, secret text) USING cass");
        run("INSERT INTO t VALUES (1, 'somebody', 'secret')");
        run("ALTER TABLE t ENABLE ROW LEVEL SECURITY");
        run("CREATE POLICY own ON t USING (owner = current_user)");
        run("CREATE ROLE cass_policy_test");
        run("GRANT ALL ON t TO cass_policy_test");
        let schema = text("SELECT current_schema()::text");
        run(&format!("GRANT USAGE ON SCHEMA {schema} TO cass_policy_test"));
        run("SET LOCAL ROLE cass_policy_test");
        let insert = "INSERT INTO t (k, owner) VALUES (1, current_user)";
        let error = error_of(insert);
        assert!(error.starts_with("42501|INSERT may not overwrite"), "{error}");
        run("INSERT INTO t VALUES (2, current_user, 'mine')");
        run("RESET ROLE");
        assert_eq!(rows("SELECT k || secret FROM t ORDER BY k"), "1secret 2mine");
    }
}
