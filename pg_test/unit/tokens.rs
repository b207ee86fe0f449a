//! `cass_token`: every token that Cassandra is known to give, the rules for what has none, and where the
//! function can be used.

#[pgrx::pg_schema]
mod tests {
    use pgrx::prelude::*;

    use crate::unit_tests::support::{csv, error_of, json_texts, run, sqlstate_of, text, value};

    const TOKENS: &str = include_str!("../data/tokens.csv");
    const TOKEN_ORDER: &str = include_str!("../data/token_order.csv");

    /// PostgreSQL's type for a value of a CQL type. Cassandra's decimal 1E+3 is 1 with a scale of -3, which a
    /// numeric has by its declaration only.
    fn sql_type(cql: &str, text: &str) -> String {
        match cql {
            "blob" => "bytea",
            "timestamp" => "timestamptz",
            "float" => "real",
            "double" => "double precision",
            "decimal" if text == "1E+3" => "numeric(1,-3)",
            "decimal" => "numeric",
            same => same,
        }
        .to_owned()
    }

    fn literal(cql: &str, text: &str) -> String {
        let text = if cql == "blob" { text.replacen("0x", "\\x", 1) } else { text.replace('\'', "''") };
        format!("'{text}'")
    }

    /// Type and literal of each component of a partition key.
    fn components(cql_types: &str, values: &str) -> Vec<(String, String)> {
        let values = json_texts(values);
        let types: Vec<&str> = cql_types.split(',').collect();
        assert_eq!(types.len(), values.len());
        types.iter().zip(&values).map(|(cql, text)| (sql_type(cql, text), literal(cql, text))).collect()
    }

    /// PostgreSQL's time has microseconds; a finer one rounds up to 24:00:00, which has no token.
    fn is_finer_than_time(values: &str) -> bool {
        values.contains("23:59:59.999999999")
    }

    fn call_with_casts(key: &[(String, String)]) -> String {
        let arguments: Vec<String> = key.iter().map(|(sql_type, literal)| format!("{literal}::{sql_type}")).collect();
        format!("cass_token({})", arguments.join(", "))
    }

    #[pg_test]
    fn every_known_token_comes_from_literals() {
        let (mut compared, mut finer) = (0, 0);
        for row in csv(TOKENS) {
            let call = call_with_casts(&components(&row[0], &row[1]));
            if is_finer_than_time(&row[1]) {
                assert_eq!(sqlstate_of(&format!("SELECT {call}")), "22008");
                finer += 1;
                continue;
            }
            let token = value::<i64>(&format!("SELECT {call}"));
            assert_eq!(token, Some(row[2].parse().unwrap()), "{call}");
            compared += 1;
        }
        assert_eq!((compared, finer), (148, 2));
    }

    #[pg_test]
    fn every_known_token_comes_from_stored_columns() {
        let mut compared = 0;
        for row in csv(TOKENS).iter().filter(|row| !is_finer_than_time(&row[1])) {
            let key = components(&row[0], &row[1]);
            let columns: Vec<String> = (0..key.len()).map(|i| format!("c{i}")).collect();
            let declared: Vec<String> =
                key.iter().zip(&columns).map(|((sql_type, _), c)| format!("{c} {sql_type}")).collect();
            let literals: Vec<&str> = key.iter().map(|(_, literal)| literal.as_str()).collect();
            run(&format!("CREATE TEMP TABLE k ({}) ON COMMIT DROP", declared.join(", ")));
            run(&format!("INSERT INTO k VALUES ({})", literals.join(", ")));
            let token = value::<i64>(&format!("SELECT cass_token({}) FROM k", columns.join(", ")));
            assert_eq!(token, Some(row[2].parse().unwrap()), "{row:?}");
            run("DROP TABLE k");
            compared += 1;
        }
        assert_eq!(compared, 148);
    }

    #[pg_test]
    fn partitions_scan_in_the_order_of_cassandras_own_tests() {
        let rows = csv(TOKEN_ORDER);
        assert_eq!(rows.len(), 15);
        for row in rows {
            let expected = json_texts(&row[3]);
            let partitions = json_texts(&row[2]);
            let tokens: Vec<i64> = partitions
                .iter()
                .map(|partition| {
                    value::<i64>(&format!("SELECT {}", call_with_casts(&components(&row[1], partition)))).unwrap()
                })
                .collect();
            assert_eq!(tokens.iter().map(i64::to_string).collect::<Vec<_>>(), expected, "{row:?}");
            assert!(tokens.windows(2).all(|pair| pair[0] < pair[1]), "{row:?}");
        }
    }

    #[pg_test]
    fn an_untyped_literal_is_an_error() {
        let error = error_of("SELECT cass_token('a')");
        assert!(error.starts_with("42P18|could not determine the type of argument 1 of cass_token|"), "{error}");
        assert!(error.ends_with("Add a cast to the type of the partition key's column, for example '1'::text."));
        assert_eq!(sqlstate_of("SELECT cass_token(1, NULL)"), "42P18");
    }

    #[pg_test]
    fn a_null_component_is_an_error_that_names_it() {
        assert!(error_of("SELECT cass_token(1, NULL::text)").starts_with("22004|argument 2 of cass_token is null|"));
        assert_eq!(sqlstate_of("SELECT cass_token(x) FROM (VALUES (1), (NULL)) v (x)"), "22004");
    }

    #[pg_test]
    fn an_unsupported_type_is_an_error_that_names_it() {
        let error = error_of("SELECT cass_token(1, point '(1,2)')");
        assert!(
            error.starts_with("42883|cass_token does not accept type point|Argument 2 is of type point"),
            "{error}"
        );
        for other in ["'a'::char(3)", "'a'::name", "'{}'::json", "ARRAY[1]", "'10.0.0.0/8'::cidr", "interval '1 day'"] {
            assert_eq!(sqlstate_of(&format!("SELECT cass_token({other})")), "42883", "{other}");
        }
        assert_eq!(sqlstate_of("SELECT cass_token(VARIADIC ARRAY[1, 2])"), "0A000");
        assert_eq!(sqlstate_of("SELECT cass_token()"), "42883");
    }

    #[pg_test]
    fn a_foreign_type_of_an_own_types_name_is_not_an_own_type() {
        run("CREATE SCHEMA other");
        run("CREATE TYPE other.tinyint AS ENUM ('a')");
        assert_eq!(sqlstate_of("SELECT cass_token('a'::other.tinyint)"), "42883");
    }

    #[pg_test]
    fn values_that_cassandra_lacks_have_no_token() {
        for (value, sqlstate) in [
            ("'infinity'::timestamptz", "22008"),
            ("'-infinity'::timestamp", "22008"),
            ("'infinity'::date", "22008"),
            ("'24:00'::time", "22008"),
            ("'NaN'::numeric", "22023"),
            ("'-infinity'::numeric", "22023"),
            ("'10.0.0.1/8'::inet", "22023"),
            ("repeat('x', 65536)", "54000"),
        ] {
            assert_eq!(sqlstate_of(&format!("SELECT cass_token({value})")), sqlstate, "{value}");
        }
    }

    #[pg_test]
    fn a_domain_has_its_base_types_token() {
        run("CREATE DOMAIN name_of_sensor AS text CHECK (VALUE <> '')");
        run("CREATE DOMAIN nested AS name_of_sensor");
        run("CREATE DOMAIN thousands AS numeric(1,-3)");
        assert_eq!(text("SELECT (cass_token('key'::nested) = cass_token('key'::text))::text"), "true");
        assert_eq!(value::<i64>("SELECT cass_token('1E+3'::thousands)"), Some(-2_607_473_706_957_718_374));
    }

    #[pg_test]
    fn a_numeric_of_declared_scale_has_the_token_of_that_scale() {
        assert_eq!(
            value::<i64>("SELECT cass_token(1::numeric(5,1))"),
            value::<i64>("SELECT cass_token('1.0'::numeric)")
        );
        assert_ne!(value::<i64>("SELECT cass_token(1::numeric)"), value::<i64>("SELECT cass_token('1.0'::numeric)"));
    }

    #[pg_test]
    fn timestamps_are_rounded_down_to_milliseconds() {
        run("SET LOCAL timezone = 'America/New_York'");
        for (fine, rounded) in [
            ("2015-05-03 13:30:54.234999+00", "2015-05-03 13:30:54.234+00"),
            ("1969-12-31 23:59:59.999999+00", "1969-12-31 23:59:59.999+00"),
        ] {
            let token = |text: &str| value::<i64>(&format!("SELECT cass_token('{text}'::timestamptz)")).unwrap();
            assert_eq!(token(fine), token(rounded));
        }
        assert_eq!(
            value::<i64>("SELECT cass_token('1969-12-31 23:59:59.999'::timestamp)"),
            Some(7_071_048_584_287_372_947)
        );
    }

    #[pg_test]
    fn every_nan_has_one_token() {
        assert_eq!(value::<i64>("SELECT cass_token('NaN'::real)"), Some(-7_253_780_401_204_684_297));
        assert_eq!(text("SELECT (cass_token(-'NaN'::float8) = cass_token('NaN'::float8))::text"), "true");
        assert_eq!(text("SELECT (cass_token(-'NaN'::float4) = cass_token('NaN'::float4))::text"), "true");
    }

    #[pg_test]
    fn toasted_values_have_the_token_of_their_bytes() {
        run("CREATE TEMP TABLE long (a text, b text)");
        run("ALTER TABLE long ALTER b SET STORAGE EXTERNAL");
        run("INSERT INTO long SELECT r, r FROM repeat('0123456789abcdeß', 3500) r");
        assert_eq!(
            text("SELECT (cass_token(a) = cass_token(repeat('0123456789abcdeß', 3500)) AND cass_token(a) = cass_token(b))::text FROM long"),
            "true"
        );
    }

    #[pg_test]
    fn tokens_can_be_indexed() {
        run("CREATE TABLE h (a int, b text)");
        run("INSERT INTO h SELECT i, 'v' || i FROM generate_series(1, 1000) i");
        run("CREATE INDEX h_token ON h (cass_token(a, b))");
        run("SET LOCAL enable_seqscan = off");
        run("CREATE FUNCTION pg_temp.plan(q text) RETURNS text LANGUAGE plpgsql AS $$ DECLARE line text; whole text := ''; \
             BEGIN FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || q LOOP whole := whole || line; END LOOP; RETURN whole; END $$");
        let query = "SELECT a FROM h WHERE cass_token(a, b) = cass_token(7, ''v7''::text)";
        let plan = text(&format!("SELECT pg_temp.plan('{query}')"));
        assert!(plan.contains("h_token"), "{plan}");
        assert_eq!(value::<i32>(&query.replace("''", "'")), Some(7));
    }

    #[pg_test]
    fn tables_can_be_partitioned_by_token() {
        run("CREATE TABLE ring (a text, b int) PARTITION BY RANGE (cass_token(a))");
        run("CREATE TABLE ring_low PARTITION OF ring FOR VALUES FROM (MINVALUE) TO (0)");
        run("CREATE TABLE ring_high PARTITION OF ring FOR VALUES FROM (0) TO (MAXVALUE)");
        run("INSERT INTO ring SELECT 's' || i, i FROM generate_series(1, 500) i");
        assert_eq!(value::<i64>("SELECT count(*) FROM ring_low WHERE cass_token(a) >= 0"), Some(0));
        assert_eq!(value::<i64>("SELECT count(*) FROM ring_high WHERE cass_token(a) < 0"), Some(0));
        assert_eq!(value::<i64>("SELECT count(*) FROM ring"), Some(500));
    }

    #[pg_test]
    fn the_function_is_immutable_and_parallel_safe() {
        let properties = "SELECT provolatile::text || proparallel::text || proisstrict::text FROM pg_proc WHERE proname = 'cass_token'";
        assert_eq!(text(properties), "isfalse");
    }
}
