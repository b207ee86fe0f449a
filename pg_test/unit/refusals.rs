//! Which queries are refused, in each mode, and who never is.

#[pgrx::pg_schema]
mod tests {
    use pgrx::prelude::*;

    use crate::unit_tests::support::{error_of, plan, rows, run, sqlstate_of, text};

    /// readings ((sensor_id, day), ts DESC) and messages ((channel), sent DESC, id), a few rows each.
    fn tables() {
        run("CREATE TABLE readings (sensor_id text, day date, ts timestamptz, value float8, \
             PRIMARY KEY (sensor_id, day, ts)) USING cass \
             WITH (partition_key = 'sensor_id, day', clustering_order = 'ts DESC')");
        run(
            "INSERT INTO readings SELECT 's' || s, '2026-09-07', '2026-09-07 00:00Z'::timestamptz + i * interval '1 h', i \
             FROM generate_series(1, 2) s, generate_series(1, 3) i",
        );
        run("CREATE TABLE messages (channel int, sent int, id int, body text, PRIMARY KEY (channel, sent, id)) \
             USING cass WITH (partition_key = 'channel', clustering_order = 'sent DESC, id DESC')");
        run("INSERT INTO messages SELECT c, s, 1, 'x' FROM generate_series(1, 2) c, generate_series(1, 3) s");
        run("CREATE TABLE plain (a int, b text)");
        run("INSERT INTO plain VALUES (1, 's1'), (2, 's2')");
    }

    /// Asserts that a statement runs.
    fn allowed(sql: &str) {
        assert_eq!(error_of(sql), "no error", "{sql}");
    }

    /// Asserts that a statement is refused for want of the partition key.
    fn refused(sql: &str) {
        assert_eq!(sqlstate_of(sql), "42K01", "{sql}");
    }

    #[pg_test]
    fn a_condition_without_the_whole_partition_key_is_refused() {
        tables();
        assert_eq!(
            error_of("SELECT * FROM readings WHERE day = '2026-09-07'"),
            "42K01|query does not supply the whole partition key of table \"readings\"|\
             The partition key is (sensor_id, day). No \"=\" or IN condition was found for sensor_id.|\
             Add a condition on sensor_id; or create an index on (day), or a table whose partition key is (day). \
             To read the whole table once, add AND cass_allow_filtering() (ALLOW FILTERING in CQL)."
        );
        for condition in [
            "sensor_id = 's1'",
            "value > 1",
            "ts > now()",
            "sensor_id > 's1' AND day = '2026-09-07'",
            "sensor_id LIKE 's1' || '%' AND day = '2026-09-07'",
            "sensor_id <> 's1' AND day = '2026-09-07'",
            "sensor_id = 's1' OR day = '2026-09-07'",
            "(sensor_id = 's1' AND day = '2026-09-07') OR value = 1",
            "sensor_id IS NOT NULL",
            "sensor_id = sensor_id AND day = '2026-09-07'",
            "sensor_id = value::text AND day = '2026-09-07'",
            "sensor_id = (random() * 2)::text AND day = '2026-09-07'",
            "sensor_id NOT IN ('s1') AND day = '2026-09-07'",
            "cass_token(day, sensor_id) > 5",
            "cass_token(sensor_id) > 5",
        ] {
            refused(&format!("SELECT * FROM readings WHERE {condition}"));
        }
        for condition in [
            "sensor_id = 's1' AND day = '2026-09-07'",
            "sensor_id IN ('s1', 's2') AND day = '2026-09-07'",
            "sensor_id = 's1' AND day = ANY (ARRAY['2026-09-07'::date])",
            "(sensor_id, day) = ('s1', '2026-09-07')",
            "sensor_id = 's1' AND day = '2026-09-07' AND value > 1",
            "sensor_id = lower('S1') AND day = current_date",
            "cass_token(sensor_id, day) > 5",
            "ctid = '(0,1)'",
        ] {
            allowed(&format!("SELECT * FROM readings WHERE {condition}"));
        }
        allowed("SELECT * FROM readings");
        allowed("SELECT max(value), min(ts) FROM readings");
        allowed("SELECT sensor_id, count(*) FROM readings GROUP BY sensor_id HAVING count(*) > 1 ORDER BY 1");
    }

    #[pg_test]
    fn update_and_delete_need_the_partition_key_too() {
        tables();
        let error = error_of("DELETE FROM messages");
        assert!(error.starts_with("42K01|"), "{error}");
        assert!(error.contains("TRUNCATE"), "{error}");
        assert!(error_of("UPDATE messages SET body = 'y'").contains("TRUNCATE"));
        refused("DELETE FROM messages WHERE body = 'x'");
        refused("UPDATE messages SET body = 'y' WHERE sent = 1");
        refused("DELETE FROM messages USING plain WHERE messages.body = plain.b");
        allowed("DELETE FROM messages USING plain WHERE channel = a");
        allowed("UPDATE messages SET body = 'y' WHERE channel = 1");
        allowed("DELETE FROM messages WHERE cass_token(channel) > 0");
        allowed("DELETE FROM messages WHERE cass_allow_filtering()");
        allowed("DELETE FROM messages WHERE ctid = '(0,1)'");
        allowed("MERGE INTO messages m USING plain p ON m.channel = p.a WHEN MATCHED THEN UPDATE SET body = p.b");
        refused("MERGE INTO messages m USING plain p ON m.body = p.b WHEN MATCHED THEN DELETE");
    }

    #[pg_test]
    fn a_join_can_name_the_partition() {
        tables();
        allowed("SELECT * FROM plain JOIN messages ON channel = a WHERE sent = 1");
        allowed("SELECT * FROM messages WHERE channel IN (SELECT a FROM plain) AND sent = 1");
        allowed("SELECT * FROM plain LEFT JOIN messages ON channel = a AND body = 'x'");
        allowed("SELECT * FROM plain, LATERAL (SELECT * FROM messages WHERE channel = a AND body = 'x') m");
        allowed("SELECT (SELECT body FROM messages WHERE channel = a LIMIT 1) FROM plain");
        allowed("SELECT * FROM messages m JOIN readings r ON r.sensor_id = m.body AND r.day = '2026-09-07' WHERE m.channel = 1");
        // No condition of its own: a full read, as one of each would be.
        allowed("SELECT * FROM plain JOIN messages ON body = b");
        // A condition of its own, and a join that does not name the partition.
        refused("SELECT * FROM plain JOIN messages ON body = b WHERE sent = 1");
        refused("SELECT * FROM messages JOIN plain ON channel < a WHERE sent = 1");
        refused("SELECT * FROM messages LEFT JOIN plain ON channel = a WHERE sent = 1");
        // Two tables that name each other's partitions: one must be read whole, and it has no condition.
        let mutual = "SELECT * FROM messages m JOIN messages n ON n.channel = m.channel WHERE n.body = 'x'";
        allowed(mutual);
        refused(&format!("{mutual} AND m.body = 'y'"));
    }

    #[pg_test]
    fn the_verdict_on_a_join_does_not_follow_statistics() {
        tables();
        let query = "SELECT * FROM plain JOIN messages ON channel = a WHERE sent = 1";
        run("INSERT INTO plain SELECT i, 'x' FROM generate_series(1, 20000) i");
        run("ANALYZE plain, messages");
        let plan = plan(query);
        assert!(plan.contains("Nested Loop") && plan.contains("Partition Key"), "{plan}");
        allowed(query);
    }

    #[pg_test]
    fn allow_filtering_allows_its_whole_statement() {
        tables();
        assert_eq!(rows("SELECT count(*) FROM messages WHERE sent = 1 AND cass_allow_filtering()"), "2");
        assert_eq!(
            rows("SELECT count(*) FROM messages WHERE cass_allow_filtering() AND (sent = 1 AND body = 'x')"),
            "2"
        );
        allowed("SELECT * FROM messages m JOIN plain ON cass_allow_filtering() AND b = body WHERE sent = 1");
        allowed("SELECT * FROM (SELECT * FROM messages WHERE sent = 1) s JOIN readings ON value = id WHERE ts > now() AND cass_allow_filtering()");
        allowed("WITH s AS (SELECT * FROM messages WHERE sent = 1 AND cass_allow_filtering()) SELECT * FROM s, readings WHERE value = 2");
        allowed("SELECT * FROM plain WHERE EXISTS (SELECT FROM messages WHERE sent = 1 AND body = b AND cass_allow_filtering())");
        run("CREATE VIEW allowing AS SELECT * FROM messages WHERE sent = 1 AND cass_allow_filtering()");
        allowed("SELECT * FROM allowing WHERE body = 'x'");
        let plan = plan("SELECT * FROM messages WHERE sent = 1 AND cass_allow_filtering()");
        assert_eq!(plan, "Custom Scan (CassScan) on messages|  Filter: (sent = 1)");
        for misplaced in [
            "SELECT * FROM messages WHERE sent = 1 OR cass_allow_filtering()",
            "SELECT * FROM messages WHERE NOT cass_allow_filtering()",
            "SELECT cass_allow_filtering()",
            "SELECT cass_allow_filtering(), * FROM messages",
            "SELECT sent FROM messages GROUP BY sent HAVING cass_allow_filtering()",
            "SELECT * FROM messages ORDER BY cass_allow_filtering()",
            "SELECT * FROM messages WHERE cass_allow_filtering() IS TRUE",
        ] {
            assert_eq!(sqlstate_of(misplaced), "42601", "{misplaced}");
        }
        run("SET LOCAL cass.allow_filtering = on");
        allowed("SELECT * FROM messages WHERE body = 'x'");
        allowed("UPDATE messages SET body = 'x'");
    }

    #[pg_test]
    fn one_predicate_gets_one_verdict_however_it_is_written() {
        tables();
        run("CREATE VIEW all_messages AS SELECT channel AS c, sent, body AS b FROM messages");
        run("CREATE VIEW barrier WITH (security_barrier) AS SELECT channel AS c, sent FROM messages");
        run("CREATE VIEW united AS SELECT channel, sent FROM messages UNION ALL SELECT channel, sent FROM messages");
        run("CREATE TABLE \"Odd Name\" (\"The Key\" int PRIMARY KEY, v int) USING cass");
        run("CREATE FUNCTION by_sent(int) RETURNS SETOF messages LANGUAGE sql STABLE AS 'SELECT * FROM messages WHERE sent = $1'");
        run("CREATE FUNCTION by_channel(int) RETURNS SETOF messages LANGUAGE sql STABLE AS 'SELECT * FROM messages WHERE channel = $1'");
        run("CREATE FUNCTION not_inlined(int) RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT count(*) FROM messages WHERE sent = $1'");
        run("CREATE FUNCTION procedural(n int) RETURNS bigint LANGUAGE plpgsql AS \
             'BEGIN RETURN (SELECT count(*) FROM messages WHERE sent = n); END'");
        run("CREATE FUNCTION allowing(int) RETURNS SETOF messages LANGUAGE sql STABLE AS \
             'SELECT * FROM messages WHERE sent = $1 AND cass_allow_filtering()'");
        for query in [
            "SELECT * FROM all_messages WHERE sent = 1",
            "SELECT * FROM barrier WHERE sent = 1",
            "SELECT * FROM united WHERE sent = 1",
            "SELECT * FROM (SELECT * FROM messages) s WHERE sent = 1",
            "WITH s AS (SELECT * FROM messages) SELECT * FROM s WHERE sent = 1",
            "SELECT * FROM plain, LATERAL (SELECT * FROM messages WHERE sent = a LIMIT 1) l",
            "SELECT * FROM messages AS m WHERE m.sent = 1",
            "SELECT * FROM messages AS m (a, b) WHERE b = 1",
            "SELECT * FROM \"Odd Name\" WHERE v = 1",
            "SELECT * FROM by_sent(1)",
            "SELECT not_inlined(1)",
            "SELECT procedural(1)",
            "SELECT * FROM messages NATURAL JOIN (SELECT 1 AS sent) s",
            "SELECT max(sent) FROM messages WHERE body = 'x'",
            "EXPLAIN SELECT * FROM messages WHERE sent = 1",
            "DECLARE c CURSOR FOR SELECT * FROM messages WHERE sent = 1",
            "CREATE TABLE made AS SELECT * FROM messages WHERE sent = 1",
            "INSERT INTO plain SELECT sent, body FROM messages WHERE sent = 1",
            "SELECT * FROM plain WHERE a IN (SELECT id FROM messages WHERE sent = 1)",
            "SELECT * FROM plain WHERE EXISTS (SELECT FROM messages WHERE sent = 1) OR a = 7",
        ] {
            refused(query);
        }
        for query in [
            "SELECT * FROM all_messages WHERE c = 1 AND sent = 1",
            "SELECT * FROM barrier WHERE c = 1 AND sent = 1",
            "SELECT * FROM united WHERE channel = 1 AND sent = 1",
            "SELECT * FROM (SELECT * FROM messages) s WHERE channel = 1 AND sent = 1",
            "WITH s AS (SELECT * FROM messages) SELECT * FROM s WHERE channel = 1",
            "SELECT * FROM plain, LATERAL (SELECT * FROM messages WHERE channel = a AND sent = 1) l",
            "SELECT * FROM messages AS m (a, b) WHERE a = 1 AND b = 1",
            "SELECT * FROM \"Odd Name\" WHERE \"The Key\" = 1 AND v = 1",
            "SELECT * FROM by_channel(1) WHERE sent = 1",
            "SELECT * FROM allowing(1)",
            "SELECT * FROM messages NATURAL JOIN (SELECT 1 AS channel, 2 AS sent) s",
            // A filter above the scan: a full read without a condition.
            "SELECT * FROM (SELECT * FROM messages OFFSET 0) s WHERE sent = 1",
            "WITH s AS MATERIALIZED (SELECT * FROM messages) SELECT * FROM s WHERE sent = 1",
            "SELECT count(*) FILTER (WHERE sent = 1) FROM messages",
        ] {
            allowed(query);
        }
    }

    #[pg_test]
    fn a_query_gets_one_verdict_as_custom_and_as_generic_plan() {
        tables();
        run("PREPARE optional(int) AS SELECT * FROM messages WHERE $1 IS NULL OR channel = $1");
        run("PREPARE missing(text) AS SELECT * FROM messages WHERE body = $1");
        run("PREPARE several(int, int) AS SELECT * FROM messages WHERE channel = $1 AND (sent = $2 OR $2 IS NULL)");
        run("PREPARE flag(bool) AS SELECT * FROM messages WHERE body = 'x' AND $1");
        run("PREPARE chosen(int) AS SELECT * FROM messages WHERE channel = CASE WHEN $1 > 0 THEN $1 END");
        for mode in ["force_custom_plan", "force_generic_plan"] {
            run(&format!("SET LOCAL plan_cache_mode = {mode}"));
            refused("EXECUTE optional(1)");
            refused("EXECUTE optional(NULL)");
            refused("EXECUTE missing('x')");
            refused("EXECUTE missing(NULL)");
            refused("EXECUTE flag(false)");
            refused("EXECUTE flag(true)");
            allowed("EXECUTE several(1, 2)");
            allowed("EXECUTE several(1, NULL)");
            allowed("EXECUTE several(NULL, NULL)");
            allowed("EXECUTE chosen(1)");
            allowed("EXECUTE chosen(-1)");
            assert_eq!(rows("EXECUTE several(1, 2)"), "1");
            assert_eq!(rows("EXECUTE several(1, NULL)"), "1 1 1");
            assert_eq!(rows("EXECUTE chosen(2)"), "2 2 2");
        }
        // plpgsql hands its variables over one by one.
        run("CREATE FUNCTION by_variable(c int, s int) RETURNS bigint LANGUAGE plpgsql AS \
             'BEGIN RETURN (SELECT count(*) FROM messages WHERE channel = c AND (s IS NULL OR sent = s)); END'");
        assert_eq!(rows("SELECT by_variable(c, s) FROM (VALUES (1, 2), (1, NULL), (NULL, 2)) v(c, s)"), "1 3 0");
    }

    #[pg_test]
    fn conditions_that_fold_away_are_judged_as_written() {
        tables();
        refused("SELECT * FROM messages WHERE body = 'x' AND false");
        refused("SELECT * FROM messages WHERE body = NULL");
        refused(
            "SELECT * FROM all_of WHERE body = 'x' AND 1 = 2".replace("all_of", "(SELECT * FROM messages) m").as_str(),
        );
        allowed("SELECT * FROM messages WHERE channel = 1 AND false");
        allowed("SELECT * FROM messages WHERE channel IN (1, 2) AND body = 'x' AND 1 = 2");
        allowed("SELECT * FROM messages WHERE channel = NULL");
        allowed("SELECT * FROM messages WHERE false");
        allowed("SELECT * FROM messages WHERE true");
    }

    #[pg_test]
    fn row_security_counts_as_a_condition() {
        tables();
        run("CREATE ROLE reader");
        run("GRANT SELECT ON messages TO reader");
        run("ALTER TABLE messages ENABLE ROW LEVEL SECURITY");
        run("CREATE POLICY own ON messages USING (body = current_user)");
        run("SET LOCAL ROLE reader");
        let (all, one) = (sqlstate_of("SELECT * FROM messages"), error_of("SELECT * FROM messages WHERE channel = 1"));
        run("RESET ROLE");
        assert_eq!((all.as_str(), one.as_str()), ("42K01", "no error"));
    }

    #[pg_test]
    fn an_index_on_the_condition_is_another_way() {
        tables();
        refused("SELECT * FROM messages WHERE body = 'x'");
        // A transaction may not use an index that it has made over rows already there.
        run("TRUNCATE messages");
        run("CREATE INDEX ON messages (body)");
        run("CREATE INDEX ON messages ((id + sent))");
        run("INSERT INTO messages SELECT c, s, 1, 'x' FROM generate_series(1, 2) c, generate_series(1, 3) s");
        allowed("SELECT * FROM messages WHERE body = 'x'");
        allowed("SELECT * FROM messages WHERE body >= 'x' AND sent = 1");
        allowed("SELECT * FROM messages WHERE id + sent = 3");
        allowed("DELETE FROM messages WHERE body = 'z'");
        refused("SELECT * FROM messages WHERE sent = 1");
        refused("SELECT * FROM messages WHERE upper(body) = 'X'");
        run("SET LOCAL enable_seqscan = off");
        run("SET LOCAL enable_bitmapscan = off");
        assert_eq!(rows("SELECT count(*) FROM messages WHERE id + sent = 3"), "2");
    }

    #[pg_test]
    fn strict_refuses_the_unconditional_read_too() {
        tables();
        run("SET LOCAL cass.enforcement = strict");
        assert_eq!(
            error_of("SELECT * FROM readings"),
            "42K01|query does not supply the whole partition key of table \"readings\"|\
             The partition key is (sensor_id, day). No \"=\" or IN condition was found for sensor_id, day.|\
             Add a condition on sensor_id, day. To read the whole table once, add WHERE cass_allow_filtering() \
             (ALLOW FILTERING in CQL)."
        );
        refused("SELECT count(*) FROM messages");
        refused("SELECT max(sent) FROM messages");
        refused("SELECT * FROM (SELECT * FROM messages OFFSET 0) s WHERE channel = 1");
        refused("SELECT * FROM plain JOIN messages ON body = b");
        allowed("SELECT * FROM plain JOIN messages ON channel = a");
        allowed("SELECT * FROM messages WHERE channel = 1");
        allowed("SELECT * FROM messages WHERE cass_token(channel) > 0");
        allowed("SELECT * FROM messages WHERE cass_allow_filtering()");
    }

    #[pg_test]
    fn off_refuses_nothing_and_takes_effect_on_prepared_statements() {
        tables();
        run("PREPARE by_body AS SELECT count(*) FROM messages WHERE body = 'x'");
        refused("EXECUTE by_body");
        run("SET LOCAL cass.enforcement = off");
        assert_eq!(rows("EXECUTE by_body"), "6");
        allowed("DELETE FROM messages");
        run("SET LOCAL cass.enforcement = partition_key");
        refused("EXECUTE by_body");
    }

    #[pg_test]
    fn a_refusal_can_be_a_warning_or_a_line_in_the_log() {
        tables();
        for level in ["warning", "log"] {
            run(&format!("SET LOCAL cass.on_refusal = {level}"));
            assert_eq!(rows("SELECT count(*) FROM messages WHERE body = 'x'"), "6");
        }
        run("SET LOCAL cass.on_refusal = error");
        refused("SELECT count(*) FROM messages WHERE body = 'x'");
    }

    #[pg_test]
    fn cql_refuses_what_cassandra_refuses() {
        tables();
        run("SET LOCAL cass.enforcement = cql");
        assert_eq!(
            error_of("SELECT * FROM messages WHERE channel = 1 AND id = 2"),
            "42K02|clustering column \"id\" cannot be restricted, because \"sent\" before it is not restricted by \"=\"|\
             The clustering columns of \"messages\" are (sent DESC, id DESC); a partition is read as one contiguous slice.|\
             Restrict sent by \"=\" or IN, or add AND cass_allow_filtering()."
        );
        for (sqlstate, query) in [
            ("42K01", "SELECT * FROM messages WHERE sent = 1"),
            ("42K01", "SELECT * FROM messages WHERE channel > 1"),
            ("42K01", "SELECT * FROM messages WHERE channel = 1 AND body = 'x'"),
            ("42K01", "SELECT * FROM messages WHERE channel = 1 AND sent <> 1"),
            ("42K01", "SELECT * FROM messages WHERE channel = 1 AND (sent = 1 OR sent = 2)"),
            ("42K01", "SELECT * FROM messages WHERE channel = 1 AND sent IS NOT NULL"),
            ("42K01", "SELECT * FROM readings WHERE sensor_id = 's1'"),
            ("42K02", "SELECT * FROM messages WHERE channel = 1 AND sent > 1 AND id = 1"),
            ("42K02", "SELECT * FROM messages WHERE channel = 1 AND sent > 1 AND sent > 2"),
            ("42K02", "SELECT * FROM messages WHERE channel = 1 AND sent > 1 AND sent IN (2, 3)"),
            ("42K02", "SELECT * FROM messages WHERE cass_token(channel) > 0 AND sent = 1"),
            ("42K02", "UPDATE messages SET body = 'y' WHERE channel = 1"),
            ("42K02", "UPDATE messages SET body = 'y' WHERE channel = 1 AND sent > 1"),
            ("42K01", "DELETE FROM messages WHERE cass_token(channel) = 5"),
            ("42K03", "SELECT * FROM messages WHERE channel = 1 ORDER BY body"),
            ("42K03", "SELECT * FROM messages WHERE channel = 1 ORDER BY id"),
            ("42K03", "SELECT * FROM messages WHERE channel = 1 ORDER BY sent, id DESC"),
            ("42K03", "SELECT * FROM messages ORDER BY sent"),
            ("42K03", "SELECT DISTINCT sent FROM messages"),
            ("42K03", "SELECT sent, count(*) FROM messages GROUP BY sent"),
        ] {
            assert_eq!(sqlstate_of(query), sqlstate, "{query}");
        }
        for query in [
            "SELECT * FROM messages",
            "SELECT max(sent) FROM messages WHERE channel = 1",
            "SELECT * FROM messages WHERE channel = 1",
            "SELECT * FROM messages WHERE channel IN (1, 2) AND sent IN (1, 2) AND id > 0 AND id <= 5",
            "SELECT * FROM messages WHERE channel = 1 AND sent > 1 AND sent <= 2",
            "SELECT * FROM messages WHERE cass_token(channel) > 0 AND cass_token(channel) <= 99",
            "SELECT * FROM messages WHERE channel = 1 ORDER BY sent",
            "SELECT * FROM messages WHERE channel = 1 ORDER BY sent, id",
            "SELECT * FROM messages WHERE channel = 1 ORDER BY sent DESC, id DESC",
            "SELECT * FROM messages WHERE channel IN (1, 2) ORDER BY sent DESC",
            "SELECT * FROM messages WHERE channel = 1 AND sent = 2 ORDER BY id",
            "SELECT DISTINCT channel FROM messages",
            "SELECT channel, sent, count(*) FROM messages GROUP BY channel, sent",
            "SELECT sent, count(*) FROM messages WHERE channel = 1 GROUP BY sent",
            "UPDATE messages SET body = 'y' WHERE channel IN (1, 2) AND sent = 1 AND id IN (1, 2)",
            "DELETE FROM messages WHERE channel = 1 AND sent > 2",
            "SELECT * FROM messages WHERE channel = 1 AND id = 2 AND cass_allow_filtering()",
            "SELECT * FROM plain JOIN messages ON channel = a",
        ] {
            allowed(query);
        }
        run("TRUNCATE messages");
        run("CREATE INDEX ON messages (body)");
        allowed("SELECT * FROM messages WHERE body = 'x'");
    }

    #[pg_test]
    fn maintenance_and_the_servers_own_queries_are_never_refused() {
        tables();
        run("SET LOCAL cass.enforcement = strict");
        run("ANALYZE messages");
        run("CREATE INDEX by_body ON messages (body)");
        run("REINDEX INDEX by_body");
        run("ALTER TABLE messages ADD CHECK (id > 0)");
        run("ALTER TABLE messages ALTER COLUMN body SET NOT NULL");
        run("CREATE TABLE parent (a int PRIMARY KEY)");
        run("INSERT INTO parent VALUES (1), (2)");
        run("ALTER TABLE messages ADD COLUMN p int");
        run("ALTER TABLE messages ADD CONSTRAINT fk FOREIGN KEY (p) REFERENCES parent ON DELETE CASCADE ON UPDATE SET NULL");
        run("INSERT INTO messages VALUES (7, 7, 7, 'x', 1), (8, 8, 8, 'x', 2)");
        assert_eq!(sqlstate_of("INSERT INTO messages VALUES (7, 7, 8, 'x', 5)"), "23503");
        // The cascades look for rows by p.
        run("DELETE FROM parent WHERE a = 1");
        assert_eq!(rows("SELECT count(*) FROM messages WHERE channel = 7"), "0");
        run("UPDATE parent SET a = 3 WHERE a = 2");
        assert_eq!(rows("SELECT p FROM messages WHERE channel = 8"), "null");
        run("ALTER TABLE messages DROP CONSTRAINT fk");
        run("ALTER TABLE messages ADD CONSTRAINT fk FOREIGN KEY (p) REFERENCES parent NOT VALID");
        run("ALTER TABLE messages VALIDATE CONSTRAINT fk");
        refused("SELECT count(*) FROM messages");
        run("SET LOCAL application_name = 'pg_dump'");
        allowed("DECLARE dump CURSOR FOR SELECT * FROM ONLY messages");
    }

    #[pg_test]
    fn what_cass_tables_cannot_do_is_said_so() {
        tables();
        let conflict = error_of("INSERT INTO messages VALUES (1, 1, 1, 'y') ON CONFLICT DO NOTHING");
        assert!(conflict.starts_with("0A000|ON CONFLICT is not supported for table \"messages\""), "{conflict}");
        assert!(conflict.contains("INSERT already writes over"), "{conflict}");
        allowed("INSERT INTO plain VALUES (1, 'x') ON CONFLICT DO NOTHING");
    }

    #[pg_test]
    fn a_table_without_a_key_yet_is_read_like_any_other() {
        run("CREATE TABLE unplaced (a int, b int) USING cass");
        run("INSERT INTO unplaced VALUES (1, 2), (3, 4)");
        assert_eq!(rows("SELECT b FROM unplaced WHERE a = 3"), "4");
        assert_eq!(text("SELECT count(*)::text FROM unplaced"), "2");
    }

    #[pg_test]
    fn the_extensions_absence_changes_nothing() {
        tables();
        run("DROP EXTENSION cass CASCADE");
        allowed("SELECT * FROM plain WHERE b = 's1'");
        run("CREATE FUNCTION cass_allow_filtering() RETURNS bool LANGUAGE sql AS 'SELECT true'");
        allowed("SELECT cass_allow_filtering() FROM plain");
    }

    #[pg_test]
    fn only_equality_of_ctid_names_rows() {
        tables();
        for condition in [
            "ctid <> '(0,1)' AND body = 'x'",
            "ctid > '(0,1)' AND body = 'x'",
            "ctid <> ALL ('{\"(0,1)\"}'::tid[]) AND body = 'x'",
            "ctid <> ANY ('{\"(0,1)\"}'::tid[]) AND body = 'x'",
            "ctid = ctid AND body = 'x'",
            "ctid = format('(0,%s)', sent)::tid AND body = 'x'",
        ] {
            refused(&format!("SELECT * FROM messages WHERE {condition}"));
        }
        for condition in
            ["ctid = '(0,1)'", "'(0,1)' = ctid", "ctid = ANY ('{\"(0,1)\"}'::tid[])", "ctid IN ('(0,1)', '(0,2)')"]
        {
            allowed(&format!("SELECT * FROM messages WHERE {condition} AND body = 'x'"));
        }
    }

    #[pg_test]
    fn columns_that_name_a_transaction_are_refused_and_those_that_name_a_row_are_not() {
        tables();
        run("CREATE TABLE unplaced (a int) USING cass; INSERT INTO unplaced VALUES (1)");
        assert_eq!(
            error_of("SELECT xmin FROM messages WHERE channel = 1"),
            "0A000|system column \"xmin\" is not supported for table \"messages\"|\
             VACUUM moves rows of access method cass to where no transaction is noted beside them.|\
             To notice changes of a row compare its ctid, which every UPDATE changes, or a column of your own."
        );
        for sql in [
            "SELECT cmax FROM messages",
            "SELECT 1 FROM messages m WHERE m.channel = 1 ORDER BY m.xmax::text",
            "SELECT (SELECT m.cmin FROM plain LIMIT 1) FROM messages m WHERE channel = 1",
            "SELECT x FROM (SELECT xmin AS x FROM messages) s",
            "WITH m AS (SELECT xmin AS x FROM messages) SELECT x FROM m",
            "UPDATE messages SET body = 'y' WHERE channel = 1 RETURNING xmin",
            "DELETE FROM unplaced WHERE xmin::text = '5'",
        ] {
            assert_eq!(sqlstate_of(sql), "0A000", "{sql}");
        }
        allowed("SELECT xmin, cmin FROM plain");
        assert_eq!(text("SELECT tableoid::regclass::text || (ctid IS NULL) FROM unplaced"), "unplacedfalse");
        let before = text("SELECT ctid::text FROM messages WHERE channel = 1 AND sent = 1");
        run("UPDATE messages SET body = 'y' WHERE channel = 1 AND sent = 1");
        assert_ne!(text("SELECT ctid::text FROM messages WHERE channel = 1 AND sent = 1"), before);
    }
}
