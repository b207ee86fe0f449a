//! Every way to a primary key ends in `cass_key` if its table is cass, and in btree if it is not.

#[pgrx::pg_schema]
mod tests {
    use pgrx::prelude::*;

    use crate::unit_tests::support::{error_of, own_schema, run, sqlstate_of, text, value};

    /// Access method and definition of a table's primary key, as `\d` shows it.
    fn key_of(table: &str) -> String {
        text(&format!(
            "SELECT m.amname || ' ' || regexp_replace(pg_get_indexdef(i.indexrelid), '^.* USING \\w+ ', '') \
             FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam \
             WHERE i.indisprimary AND i.indrelid = '{table}'::regclass"
        ))
    }

    fn access_method(table: &str) -> String {
        text(&format!(
            "SELECT amname::text FROM pg_class c JOIN pg_am m ON m.oid = c.relam WHERE c.oid = '{table}'::regclass"
        ))
    }

    const WHOLE: &str = "cass_key (a, b, c DESC) WITH (partition_key='a, b', clustering_order='c DESC')";

    #[pg_test]
    fn a_table_level_key_is_cass_key_and_carries_the_options() {
        own_schema();
        run("CREATE TABLE t (a int, b int, c int, d int, PRIMARY KEY (a, b, c)) USING cass \
             WITH (partition_key = 'a, b', clustering_order = 'c DESC', fillfactor = 70)");
        assert_eq!(key_of("t"), WHOLE);
        assert_eq!(text("SELECT reloptions::text FROM pg_class WHERE oid = 't'::regclass"), "{fillfactor=70}");
    }

    #[pg_test]
    fn a_column_level_key_is_cass_key() {
        own_schema();
        run("CREATE TABLE t (a int PRIMARY KEY, b int) USING cass");
        assert_eq!(key_of("t"), "cass_key (a) WITH (partition_key=a)");
    }

    #[pg_test]
    fn options_in_the_constraint_do_the_same_as_options_of_the_table() {
        own_schema();
        run("CREATE TABLE t (a int, b int, c int, PRIMARY KEY (a, b, c) \
             WITH (partition_key = 'a, b', clustering_order = 'c desc')) USING cass");
        assert_eq!(key_of("t"), WHOLE);
    }

    #[pg_test]
    fn defaults_are_stored_with_the_key() {
        own_schema();
        run("CREATE TABLE t (a int, b int, c int, PRIMARY KEY (a, b, c)) USING cass WITH (insert = 'row')");
        assert_eq!(
            key_of("t"),
            "cass_key (a, b, c) WITH (partition_key=a, clustering_order='b ASC, c ASC', insert='row')"
        );
    }

    #[pg_test]
    fn column_names_in_options_are_sql_identifiers() {
        own_schema();
        run(r#"CREATE TABLE t ("A,""b" int, "B" int, c int, PRIMARY KEY ("A,""b", "B", c)) USING cass
               WITH (partition_key = '"A,""b" , "B"', clustering_order = 'C DESC')"#);
        assert_eq!(
            text("SELECT array_to_string(reloptions, ';') FROM pg_class WHERE oid = 't_pkey'::regclass"),
            r#"partition_key="A,""b", "B";clustering_order=c DESC"#
        );
    }

    #[pg_test]
    fn the_default_access_method_works_like_using() {
        own_schema();
        run("SET LOCAL default_table_access_method = cass");
        run("CREATE TABLE t (a int, b int, PRIMARY KEY (a, b)) WITH (partition_key = 'a, b')");
        assert_eq!(key_of("t"), "cass_key (a, b) WITH (partition_key='a, b')");
    }

    #[pg_test]
    fn a_restored_dump_gets_its_key_after_its_rows() {
        own_schema();
        run("SET LOCAL default_table_access_method = cass; SET LOCAL client_min_messages = warning");
        run("CREATE TABLE t (a integer NOT NULL, b integer NOT NULL, c integer NOT NULL)");
        run("ALTER TABLE ONLY t ADD CONSTRAINT t_pkey PRIMARY KEY (a, b, c) \
             WITH (partition_key='a, b', clustering_order='c DESC')");
        assert_eq!(key_of("t"), WHOLE);
    }

    #[pg_test]
    fn a_key_added_with_a_column_is_cass_key() {
        own_schema();
        run("CREATE TABLE t (b int) USING cass");
        run("ALTER TABLE t ADD COLUMN a int PRIMARY KEY, ADD COLUMN c int");
        assert_eq!(key_of("t"), "cass_key (a) WITH (partition_key=a)");
    }

    #[pg_test]
    fn options_set_beside_a_new_key_go_to_the_key() {
        own_schema();
        run("CREATE TABLE t (a int, b int, c int) USING cass");
        run("ALTER TABLE t ADD PRIMARY KEY (a, b, c), SET (partition_key = 'a, b', clustering_order = 'c DESC')");
        assert_eq!(key_of("t"), WHOLE);
    }

    #[pg_test]
    fn if_not_exists_leaves_an_existing_table_alone() {
        own_schema();
        run("CREATE TABLE t (a int PRIMARY KEY) USING heap");
        run("CREATE TABLE IF NOT EXISTS t (a int, b int, PRIMARY KEY (a, b)) USING cass WITH (partition_key = 'a')");
        assert_eq!(key_of("t"), "btree (a)");
        run("CREATE TABLE IF NOT EXISTS u (a int PRIMARY KEY) USING cass");
        assert_eq!(key_of("u"), "cass_key (a) WITH (partition_key=a)");
    }

    #[pg_test]
    fn tables_of_create_schema_have_the_key_of_their_access_method() {
        own_schema();
        run("CREATE SCHEMA s CREATE TABLE t (a int PRIMARY KEY) USING cass CREATE TABLE u (a int PRIMARY KEY)");
        assert_eq!(key_of("s.t"), "cass_key (a) WITH (partition_key=a)");
        assert_eq!(key_of("s.u"), "btree (a)");
    }

    #[pg_test]
    fn a_temporary_table_may_be_cass() {
        own_schema();
        run("CREATE TEMP TABLE t (a int PRIMARY KEY) USING cass ON COMMIT DROP");
        assert_eq!(key_of("t"), "cass_key (a) WITH (partition_key=a)");
    }

    #[pg_test]
    fn identity_and_generated_columns_may_be_in_the_key() {
        own_schema();
        run("CREATE TABLE t (a int GENERATED ALWAYS AS IDENTITY, v int NOT NULL, \
             g int GENERATED ALWAYS AS (v * 2) STORED, PRIMARY KEY (a, g)) USING cass WITH (clustering_order = 'g DESC')");
        assert_eq!(key_of("t"), "cass_key (a, g DESC) WITH (partition_key=a, clustering_order='g DESC')");
    }

    #[pg_test]
    fn a_domain_over_a_key_type_may_be_in_the_key() {
        own_schema();
        run("CREATE DOMAIN positive AS numeric(8, 2) CHECK (value > 0)");
        run("CREATE TABLE t (a positive PRIMARY KEY) USING cass");
        assert_eq!(key_of("t"), "cass_key (a) WITH (partition_key=a)");
    }

    #[pg_test]
    fn every_key_type_has_an_operator_class() {
        own_schema();
        for key_type in [
            "smallint",
            "int",
            "bigint",
            "text",
            "varchar(9)",
            "uuid",
            "timestamp",
            "timestamptz",
            "date",
            "time",
            "inet",
            "bytea",
            "boolean",
            "real",
            "double precision",
            "numeric(9, 2)",
            "timeuuid",
            "varint",
            "tinyint",
        ] {
            run(&format!(
                "CREATE TABLE t (a {key_type}, b {key_type}, PRIMARY KEY (a, b)) USING cass \
                          WITH (clustering_order = 'b DESC')"
            ));
            assert_eq!(
                key_of("t"),
                "cass_key (a, b DESC) WITH (partition_key=a, clustering_order='b DESC')",
                "{key_type}"
            );
            run("DROP TABLE t");
        }
        assert_eq!(
            value::<i64>(
                "SELECT count(*) FROM pg_opclass o JOIN pg_am m ON m.oid = o.opcmethod \
                          WHERE m.amname = 'cass_key' AND NOT amvalidate(o.oid)"
            ),
            Some(0)
        );
    }

    #[pg_test]
    fn like_a_heap_table_makes_a_cass_key_on_a_cass_table() {
        own_schema();
        run("CREATE TABLE h (a int, b int, PRIMARY KEY (a, b) WITH (fillfactor = 70))");
        run("CREATE TABLE t (LIKE h INCLUDING ALL) USING cass");
        assert_eq!(key_of("t"), "cass_key (a, b) WITH (partition_key=a, clustering_order='b ASC')");
        run("CREATE TABLE u (LIKE h INCLUDING ALL) USING cass WITH (partition_key = 'a, b')");
        assert_eq!(key_of("u"), "cass_key (a, b) WITH (partition_key='a, b')");
    }

    #[pg_test]
    fn like_a_cass_table_makes_a_btree_on_a_heap_table() {
        own_schema();
        run("CREATE TABLE t (a int, b int, PRIMARY KEY (a, b)) USING cass WITH (clustering_order = 'b DESC')");
        run("CREATE TABLE h (LIKE t INCLUDING ALL)");
        assert_eq!((access_method("h"), key_of("h")), ("heap".into(), "btree (a, b)".into()));
    }

    #[pg_test]
    fn like_a_cass_table_copies_key_and_options_to_a_cass_table() {
        own_schema();
        run("CREATE TABLE t (a int, b int, c int, PRIMARY KEY (a, b, c)) USING cass \
             WITH (partition_key = 'a, b', clustering_order = 'c DESC')");
        run("CREATE TABLE u (LIKE t INCLUDING INDEXES) USING cass");
        assert_eq!(key_of("u"), WHOLE);
        run("CREATE TABLE v (LIKE t INCLUDING INDEXES) USING cass WITH (partition_key = 'a')");
        assert_eq!(key_of("v"), "cass_key (a, b, c) WITH (partition_key=a, clustering_order='b ASC, c ASC')");
    }

    #[pg_test]
    fn create_table_as_makes_a_table_without_key() {
        own_schema();
        run("CREATE TABLE t USING cass AS SELECT 1 AS a, 2 AS b");
        assert_eq!(access_method("t"), "cass");
        assert_eq!(value::<i64>("SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass"), Some(0));
    }

    #[pg_test]
    fn set_access_method_converts_table_and_key_and_back() {
        own_schema();
        run("CREATE TABLE t (a int, b int, c int, v text, CONSTRAINT k PRIMARY KEY (a, b, c), UNIQUE (v))");
        run("COMMENT ON CONSTRAINT k ON t IS 'of the constraint'");
        run("COMMENT ON INDEX k IS 'of the index'");
        run("ALTER TABLE t REPLICA IDENTITY USING INDEX k");
        run("INSERT INTO t SELECT g % 3, g % 2, g, 'v' || g FROM generate_series(1, 20) g");
        let rows = "SELECT string_agg(t::text, ';' ORDER BY c) FROM t";
        let before = text(rows);
        run("ALTER TABLE t SET ACCESS METHOD cass, SET (partition_key = 'a, b', clustering_order = 'c DESC', fillfactor = 80)");
        let kept = "SELECT concat_ws(';', c.conname, i.indisreplident, obj_description(c.oid, 'pg_constraint'), \
                    obj_description(i.indexrelid, 'pg_class')) FROM pg_constraint c JOIN pg_index i ON i.indexrelid = c.conindid \
                    WHERE c.conrelid = 't'::regclass AND c.contype = 'p'";
        assert_eq!((access_method("t"), key_of("t")), ("cass".into(), WHOLE.into()));
        assert_eq!(text(kept), "k;t;of the constraint;of the index");
        assert_eq!(text(rows), before);
        run("ALTER TABLE t SET ACCESS METHOD heap");
        assert_eq!((access_method("t"), key_of("t")), ("heap".into(), "btree (a, b, c)".into()));
        assert_eq!(text(rows), before);
        assert_eq!(text(kept), "k;t;of the constraint;of the index");
    }

    #[pg_test]
    fn set_access_method_may_bring_another_key() {
        own_schema();
        run("CREATE TABLE t (a int, b int, CONSTRAINT old PRIMARY KEY (a))");
        run("ALTER TABLE t DROP CONSTRAINT old, ADD CONSTRAINT new PRIMARY KEY (b, a), SET ACCESS METHOD cass, \
             SET (clustering_order = 'a DESC')");
        assert_eq!(key_of("t"), "cass_key (b, a DESC) WITH (partition_key=b, clustering_order='a DESC')");
    }

    #[pg_test]
    fn a_table_without_key_becomes_cass_without_key() {
        own_schema();
        run("CREATE TABLE t (a int)");
        run("ALTER TABLE t SET ACCESS METHOD cass");
        assert_eq!(access_method("t"), "cass");
        run("ALTER TABLE t SET ACCESS METHOD heap, ADD PRIMARY KEY (a)");
        assert_eq!((access_method("t"), key_of("t")), ("heap".into(), "btree (a)".into()));
    }

    #[pg_test]
    fn renaming_a_column_renames_it_in_the_options() {
        own_schema();
        run("CREATE TABLE t (a int, b int, c int, PRIMARY KEY (a, b, c)) USING cass \
             WITH (partition_key = 'a, b', clustering_order = 'c DESC')");
        run(r#"ALTER TABLE t RENAME COLUMN b TO "B b""#);
        run("ALTER TABLE t RENAME COLUMN c TO ts");
        assert_eq!(
            key_of("t"),
            r#"cass_key (a, "B b", ts DESC) WITH (partition_key='a, "B b"', clustering_order='ts DESC')"#
        );
    }

    #[pg_test]
    fn renaming_an_attribute_of_a_type_renames_it_in_the_options() {
        own_schema();
        run("CREATE TYPE r AS (a int, b int)");
        run("CREATE TABLE t OF r (PRIMARY KEY (a, b)) USING cass WITH (clustering_order = 'b DESC')");
        run("ALTER TYPE r RENAME ATTRIBUTE a TO x CASCADE");
        assert_eq!(key_of("t"), "cass_key (x, b DESC) WITH (partition_key=x, clustering_order='b DESC')");
    }

    #[pg_test]
    fn set_and_reset_reach_the_key_and_leave_the_tables_own_options() {
        own_schema();
        run("CREATE TABLE t (a int PRIMARY KEY) USING cass");
        run("ALTER TABLE t SET (insert = 'row', compaction = 'unified', autovacuum_enabled = false)");
        assert_eq!(key_of("t"), "cass_key (a) WITH (partition_key=a, insert='row', compaction=unified)");
        assert_eq!(
            text("SELECT reloptions::text FROM pg_class WHERE oid = 't'::regclass"),
            "{autovacuum_enabled=false}"
        );
        run("ALTER TABLE t RESET (insert, autovacuum_enabled)");
        assert_eq!(key_of("t"), "cass_key (a) WITH (partition_key=a, compaction=unified)");
        run("ALTER TABLE t SET (partition_key = 'A')");
        run("ALTER INDEX t_pkey SET (insert = 'cells')");
        assert_eq!(value::<bool>("SELECT reloptions IS NULL FROM pg_class WHERE oid = 't'::regclass"), Some(true));
    }

    #[pg_test]
    fn other_indexes_keep_their_access_methods() {
        own_schema();
        run("CREATE TABLE t (a int PRIMARY KEY, b int UNIQUE, c text) USING cass");
        run("CREATE INDEX ON t USING hash (c); CREATE INDEX ON t (c, b)");
        assert_eq!(
            text("SELECT string_agg(m.amname, ',' ORDER BY m.amname) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
                  JOIN pg_am m ON m.oid = c.relam WHERE i.indrelid = 't'::regclass"),
            "btree,btree,cass_key,hash"
        );
    }

    #[pg_test]
    fn reindex_keeps_the_key() {
        own_schema();
        run("CREATE TABLE t (a int, b int, PRIMARY KEY (a, b)) USING cass WITH (clustering_order = 'b DESC')");
        run("REINDEX TABLE t; REINDEX INDEX t_pkey");
        assert_eq!(key_of("t"), "cass_key (a, b DESC) WITH (partition_key=a, clustering_order='b DESC')");
    }

    #[pg_test]
    fn a_change_of_enforcement_judges_prepared_statements_anew() {
        own_schema();
        run("CREATE TABLE t (a int PRIMARY KEY, b int) USING cass");
        run("SET LOCAL cass.enforcement = off; SET LOCAL plan_cache_mode = force_generic_plan");
        run("PREPARE p AS SELECT * FROM t WHERE b = 1");
        assert_eq!(error_of("EXECUTE p"), "no error");
        run("SET LOCAL cass.enforcement = partition_key");
        assert_eq!(sqlstate_of("EXECUTE p"), "42K01");
        run("SET LOCAL cass.allow_filtering = on");
        assert_eq!(error_of("EXECUTE p"), "no error");
        run("SET LOCAL cass.allow_filtering = off; SET LOCAL cass.on_refusal = log");
        assert_eq!(error_of("EXECUTE p"), "no error");
    }

    #[pg_test]
    fn settings_take_only_their_values_and_names() {
        own_schema();
        assert_eq!(sqlstate_of("SET cass.enforcement = 'maybe'"), "22023");
        assert_eq!(sqlstate_of("SET cass.on_refusal = 'fatal'"), "22023");
        assert_eq!(sqlstate_of("SET cass.no_such_setting = 1"), "42602");
    }

    #[pg_test]
    fn the_planner_proves_uniqueness_by_the_key_but_never_scans_it() {
        own_schema();
        run("CREATE TABLE t (a int PRIMARY KEY, b int) USING cass");
        run("CREATE TABLE h (a int)");
        run("SET LOCAL enable_seqscan = off; SET LOCAL cass.enforcement = off");
        let plan = |query: &str| {
            value::<pgrx::Json>(&format!("EXPLAIN (FORMAT json) {query}"))
                .map(|plan| plan.0.to_string())
                .unwrap_or_default()
        };
        let removed = plan("SELECT h.a FROM h LEFT JOIN t ON t.a = h.a");
        assert!(!removed.contains("\"t\""), "the left join to a unique key is removed: {removed}");
        let scanned = plan("SELECT * FROM t WHERE a = 1");
        assert!(!scanned.contains("t_pkey"), "{scanned}");
    }

    #[pg_test]
    fn functional_dependency_on_the_key_holds() {
        own_schema();
        run("CREATE TABLE t (a int PRIMARY KEY, b int) USING cass");
        assert_eq!(error_of("SELECT a, b FROM t GROUP BY a"), "no error");
    }
}
