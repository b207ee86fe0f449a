//! Statements that would leave a table with a key of the wrong kind, or a key that cannot be kept, are errors that
//! say what to do.

#[pgrx::pg_schema]
mod tests {
    use pgrx::prelude::*;

    use crate::unit_tests::support::{error_of, own_schema, run};

    /// Asserts that a statement fails with this SQLSTATE and words, and that it has a hint.
    fn refused(sql: &str, sqlstate: &str, words: &str) {
        let error = error_of(sql);
        assert!(error.starts_with(&format!("{sqlstate}|")), "{sql}\n{error}");
        assert!(error.contains(words), "{sql}\n{error}");
        assert!(!error.ends_with('|'), "no hint: {sql}\n{error}");
    }

    #[pg_test]
    fn partition_key_must_name_the_leading_columns_of_the_key_in_order() {
        own_schema();
        let create = |option: &str| {
            format!("CREATE TABLE t (a int, b int, c int, PRIMARY KEY (a, b, c)) USING cass WITH (partition_key = '{option}')")
        };
        let words = "partition_key does not name the leading columns of the primary key";
        for option in ["b", "b, a", "d", "a, c", "a, b, c, d"] {
            refused(&create(option), "42P16", words);
        }
        assert!(error_of(&create("a, a")).starts_with("42701|column \"a\" appears twice"));
        refused(&create("a DESC"), "22023", "clustering_order");
        for option in ["", "\"a", "a b", "a,", "1"] {
            refused(&create(option), "22023", "invalid");
        }
    }

    #[pg_test]
    fn clustering_order_must_name_clustering_columns_in_key_order() {
        own_schema();
        let create = |option: &str| {
            format!("CREATE TABLE t (a int, b int, c int, v int, PRIMARY KEY (a, b, c)) USING cass WITH (clustering_order = '{option}')")
        };
        refused(&create("v DESC"), "42P16", "which is not a clustering column|The clustering columns are (b, c).");
        refused(&create("a DESC"), "42P16", "which is in the partition key");
        refused(&create("c DESC, b DESC"), "42P16", "does not follow the order of the primary key");
        refused(&create("b DESC, b ASC"), "42P16", "does not follow the order of the primary key");
        refused(&create("b upwards"), "22023", "\"upwards\" follows column \"b\"");
    }

    #[pg_test]
    fn unknown_options_and_values_are_refused() {
        own_schema();
        let create = |option: &str| format!("CREATE TABLE t (a int PRIMARY KEY) USING cass WITH ({option})");
        refused(&create("partition_kee = 'a'"), "22023", "unrecognized parameter \"partition_kee\"");
        refused(&create("compaction = 'none'"), "22023", "compaction");
        refused(&create("compaction = 'leveled'"), "0A000", "not supported yet");
        refused(&create("insert = 'columns'"), "22023", "insert");
        refused(&create("default_time_to_live = 60"), "0A000", "not supported yet");
        refused("CREATE TABLE t (a int, PRIMARY KEY (a) WITH (fillfactor = 70)) USING cass", "22023", "fillfactor");
        run("CREATE TABLE t (a int PRIMARY KEY) USING cass");
        refused("ALTER TABLE t SET (no_such = 1)", "22023", "unrecognized parameter \"no_such\"");
        refused("ALTER INDEX t_pkey SET (no_such = 1)", "22023", "unrecognized parameter \"no_such\"");
    }

    #[pg_test]
    fn an_option_given_to_table_and_key_is_refused() {
        own_schema();
        refused(
            "CREATE TABLE t (a int, PRIMARY KEY (a) WITH (partition_key = a)) USING cass WITH (partition_key = a)",
            "42601",
            "specified more than once",
        );
    }

    #[pg_test]
    fn options_without_a_primary_key_are_refused() {
        own_schema();
        let words = "option \"partition_key\" needs a primary key";
        refused("CREATE TABLE t (a int) USING cass WITH (partition_key = 'a')", "42P16", words);
        refused("CREATE TABLE t USING cass WITH (partition_key = 'a') AS SELECT 1 AS a", "42P16", words);
        run("CREATE TABLE h (a int); CREATE TABLE t (a int) USING cass");
        refused("CREATE TABLE u (LIKE h INCLUDING ALL) USING cass WITH (partition_key = 'a')", "42P16", words);
        refused("ALTER TABLE t SET (partition_key = 'a')", "42P16", words);
        refused("ALTER TABLE h SET ACCESS METHOD cass, SET (partition_key = 'a')", "42P16", words);
    }

    #[pg_test]
    fn types_without_bytes_of_their_order_are_refused_in_a_key() {
        own_schema();
        run("CREATE TYPE colour AS ENUM ('red'); CREATE TABLE u (b int) USING cass; CREATE TABLE h (a json[], b int)");
        for key_type in ["jsonb", "json", "int[]", "interval", "cidr", "char(3)", "oid", "point", "colour", "money"] {
            refused(
                &format!("CREATE TABLE t (a {key_type}, PRIMARY KEY (a)) USING cass"),
                "0A000",
                "cannot be in the primary key of a cass table",
            );
        }
        refused("ALTER TABLE u ADD COLUMN a interval PRIMARY KEY", "0A000", "of type interval cannot");
        run("ALTER TABLE u ADD COLUMN c interval");
        refused("ALTER TABLE u ADD PRIMARY KEY (b, c)", "0A000", "of type interval cannot");
        run("CREATE TABLE i (a interval PRIMARY KEY)");
        refused("ALTER TABLE i SET ACCESS METHOD cass", "0A000", "of type interval cannot");
    }

    #[cfg_attr(not(feature = "pg15"), ignore = "the servers of PyPI are built without ICU")]
    #[pg_test]
    fn columns_whose_equality_is_wider_than_their_bytes_are_refused() {
        own_schema();
        refused("CREATE TABLE t (a numeric PRIMARY KEY) USING cass", "0A000", "has no precision and scale");
        run("CREATE TABLE n (a int, b numeric, PRIMARY KEY (a, b)) USING cass");
        run("CREATE COLLATION loose (provider = icu, locale = 'und', deterministic = false)");
        refused(
            "CREATE TABLE t (a text COLLATE loose PRIMARY KEY) USING cass",
            "0A000",
            "collation of key column \"a\" is not deterministic",
        );
    }

    #[pg_test]
    fn deferrable_and_including_keys_are_refused() {
        own_schema();
        run("CREATE TABLE u (a int, b int) USING cass");
        run(
            "CREATE TABLE h (a int PRIMARY KEY DEFERRABLE); CREATE TABLE i (a int, b int, PRIMARY KEY (a) INCLUDE (b))",
        );
        let deferrable = "cannot be deferrable";
        refused("CREATE TABLE t (a int PRIMARY KEY DEFERRABLE) USING cass", "0A000", deferrable);
        refused("ALTER TABLE u ADD PRIMARY KEY (a) DEFERRABLE", "0A000", deferrable);
        refused("ALTER TABLE h SET ACCESS METHOD cass", "0A000", deferrable);
        let including = "cannot include other columns";
        refused("CREATE TABLE t (a int, b int, PRIMARY KEY (a) INCLUDE (b)) USING cass", "0A000", including);
        refused("ALTER TABLE u ADD PRIMARY KEY (a) INCLUDE (b)", "0A000", including);
        refused("ALTER TABLE i SET ACCESS METHOD cass", "0A000", including);
    }

    #[pg_test]
    fn a_key_made_from_an_index_is_refused() {
        own_schema();
        run("CREATE TABLE t (a int NOT NULL) USING cass; CREATE UNIQUE INDEX i ON t (a)");
        refused("ALTER TABLE t ADD PRIMARY KEY USING INDEX i", "0A000", "cannot be made from an existing index");
    }

    #[pg_test]
    fn cass_key_is_refused_wherever_it_is_not_a_cass_tables_primary_key() {
        own_schema();
        run("CREATE TABLE h (a int); CREATE TABLE t (a int PRIMARY KEY, b int) USING cass");
        for statement in [
            "CREATE INDEX ON h USING cass_key (a)",
            "CREATE UNIQUE INDEX ON h USING cass_key (a)",
            "ALTER TABLE h ADD EXCLUDE USING cass_key (a WITH =)",
            "CREATE UNIQUE INDEX ON t USING cass_key (b)",
        ] {
            refused(statement, "0A000", "access method cass_key is for primary keys of cass tables only");
        }
    }

    #[pg_test]
    fn dropping_the_key_is_refused() {
        own_schema();
        run("CREATE TABLE t (a int, b int, PRIMARY KEY (a)) USING cass");
        let words = "cannot drop the primary key of table \"t\"";
        refused("ALTER TABLE t DROP CONSTRAINT t_pkey", "0A000", words);
        refused("ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (b)", "0A000", words);
        refused("ALTER TABLE t SET ACCESS METHOD heap, DROP CONSTRAINT t_pkey", "0A000", words);
        refused("DROP INDEX t_pkey", "2BP01", "constraint t_pkey on table t requires it");
    }

    #[pg_test]
    fn dropping_a_key_column_is_refused_on_every_path() {
        own_schema();
        run("CREATE SCHEMA doomed; CREATE DOMAIN doomed.d AS int; CREATE TYPE r AS (a int, b int)");
        run("CREATE TABLE t (a doomed.d PRIMARY KEY, b int) USING cass; CREATE TABLE u OF r (PRIMARY KEY (a)) USING cass");
        refused("ALTER TABLE t DROP COLUMN a", "0A000", "cannot drop column \"a\"");
        refused("ALTER TABLE t DROP COLUMN a CASCADE", "0A000", "cannot drop column \"a\"");
        let words = "cannot drop the primary key of table";
        refused("DROP DOMAIN doomed.d CASCADE", "0A000", words);
        refused("DROP SCHEMA doomed CASCADE", "0A000", words);
        refused("ALTER TYPE r DROP ATTRIBUTE a CASCADE", "0A000", words);
        run("ALTER TABLE t DROP COLUMN b; DROP TABLE t; DROP SCHEMA doomed CASCADE");
    }

    #[pg_test]
    fn retyping_a_key_column_is_refused_on_every_path() {
        own_schema();
        run("CREATE TYPE r AS (a int, b int)");
        run("CREATE TABLE t (a int PRIMARY KEY, b int) USING cass; CREATE TABLE u OF r (PRIMARY KEY (a)) USING cass");
        let words = "cannot change the type of column \"a\"";
        refused("ALTER TABLE t ALTER a TYPE bigint", "0A000", words);
        refused("ALTER TYPE r ALTER ATTRIBUTE a TYPE bigint CASCADE", "0A000", words);
        run("ALTER TABLE t ALTER b TYPE bigint; ALTER TYPE r ALTER ATTRIBUTE b TYPE bigint CASCADE");
    }

    #[pg_test]
    fn changing_the_partition_key_in_place_is_refused() {
        own_schema();
        run("CREATE TABLE t (a int, b int, PRIMARY KEY (a, b)) USING cass WITH (clustering_order = 'b DESC')");
        let words = "cannot change the partition key or the clustering order of a table in place";
        for change in [
            "SET (partition_key = 'a, b')",
            "SET (clustering_order = 'b ASC')",
            "RESET (partition_key)",
            "RESET (clustering_order)",
        ] {
            refused(&format!("ALTER TABLE t {change}"), "0A000", words);
            refused(&format!("ALTER INDEX t_pkey {change}"), "0A000", words);
        }
    }

    #[pg_test]
    fn unlogged_is_refused() {
        own_schema();
        run("CREATE TABLE t (a int PRIMARY KEY) USING cass; CREATE UNLOGGED TABLE h (a int PRIMARY KEY)");
        refused("CREATE UNLOGGED TABLE u (a int PRIMARY KEY) USING cass", "0A000", "\"u\" cannot be unlogged");
        refused("CREATE UNLOGGED TABLE u USING cass AS SELECT 1 AS a", "0A000", "\"u\" cannot be unlogged");
        refused("ALTER TABLE t SET UNLOGGED", "0A000", "\"t\" cannot be unlogged");
        refused("ALTER TABLE h SET ACCESS METHOD cass", "0A000", "\"h\" cannot be unlogged");
    }

    #[pg_test]
    fn inheritance_and_partitions_are_refused() {
        own_schema();
        run("CREATE TABLE t (a int NOT NULL, b int, PRIMARY KEY (a)) USING cass; CREATE TABLE c (a int NOT NULL, b int)");
        run("CREATE TABLE p (a int PRIMARY KEY, b int) PARTITION BY RANGE (a); CREATE TABLE q (a int NOT NULL, b int) PARTITION BY RANGE (a)");
        run("CREATE TABLE heir () INHERITS (c)");
        let words = "cannot be part of an inheritance tree or a partition";
        for statement in [
            "CREATE TABLE d () INHERITS (t)",
            "CREATE TABLE d (PRIMARY KEY (a)) INHERITS (c) USING cass",
            "ALTER TABLE c INHERIT t",
            "ALTER TABLE t INHERIT c",
            "CREATE TABLE d PARTITION OF p FOR VALUES FROM (0) TO (9) USING cass",
            "CREATE TABLE d PARTITION OF q FOR VALUES FROM (0) TO (9) USING cass",
            "ALTER TABLE p ATTACH PARTITION t FOR VALUES FROM (0) TO (9)",
            "ALTER TABLE q ATTACH PARTITION t FOR VALUES FROM (0) TO (9)",
            "ALTER TABLE heir SET ACCESS METHOD cass",
            "ALTER TABLE c SET ACCESS METHOD cass",
        ] {
            refused(statement, "0A000", words);
        }
        run("SET LOCAL default_table_access_method = cass");
        refused("CREATE TABLE d PARTITION OF p FOR VALUES FROM (0) TO (9)", "0A000", words);
        run("CREATE TABLE d PARTITION OF p FOR VALUES FROM (0) TO (9) USING heap");
    }

    #[pg_test]
    fn foreign_keys_that_reference_a_cass_table_are_refused() {
        own_schema();
        run("CREATE TABLE t (a int PRIMARY KEY, b int UNIQUE) USING cass; CREATE TABLE h (a int PRIMARY KEY)");
        run("CREATE TABLE r (a int REFERENCES h, PRIMARY KEY (a)) USING cass");
        let words = "a foreign key cannot reference cass table";
        for statement in [
            "CREATE TABLE c (a int REFERENCES t)",
            "CREATE TABLE c (a int REFERENCES t (b))",
            "CREATE TABLE c (a int, FOREIGN KEY (a) REFERENCES t (a))",
            "ALTER TABLE h ADD FOREIGN KEY (a) REFERENCES t (b)",
            "ALTER TABLE h ADD COLUMN c int REFERENCES t",
            "ALTER TABLE h SET ACCESS METHOD cass",
        ] {
            refused(statement, "0A000", words);
        }
    }

    #[pg_test]
    fn brin_indexes_are_refused() {
        own_schema();
        run("CREATE TABLE t (a int PRIMARY KEY, b int) USING cass; CREATE TABLE h (a int PRIMARY KEY)");
        run("CREATE INDEX ON h USING brin (a)");
        refused("CREATE INDEX ON t USING brin (b)", "0A000", "cannot have a BRIN index");
        refused("ALTER TABLE h SET ACCESS METHOD cass", "0A000", "cannot have a BRIN index");
    }

    #[pg_test]
    fn materialized_views_are_refused() {
        own_schema();
        run("CREATE MATERIALIZED VIEW h AS SELECT 1 AS a");
        let words = "a materialized view cannot use access method cass";
        refused("CREATE MATERIALIZED VIEW m USING cass AS SELECT 1 AS a", "0A000", words);
        refused("ALTER MATERIALIZED VIEW h SET ACCESS METHOD cass", "0A000", words);
        run("SET LOCAL default_table_access_method = cass");
        refused("CREATE MATERIALIZED VIEW m AS SELECT 1 AS a", "0A000", words);
    }

    #[pg_test]
    fn publishing_a_cass_table_by_name_is_refused() {
        own_schema();
        run("CREATE TABLE t (a int PRIMARY KEY) USING cass; CREATE TABLE h (a int PRIMARY KEY)");
        run("CREATE PUBLICATION p FOR TABLE h");
        refused("CREATE PUBLICATION q FOR TABLE h, t", "0A000", "cannot publish table \"t\"");
        refused("ALTER PUBLICATION p ADD TABLE t", "0A000", "cannot publish table \"t\"");
        refused("ALTER PUBLICATION p SET TABLE t", "0A000", "cannot publish table \"t\"");
        refused("ALTER TABLE h SET ACCESS METHOD cass", "0A000", "cannot publish table");
    }
}
