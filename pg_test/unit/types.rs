//! The types tinyint, timeuuid and varint: input, order, casts, opclasses.

#[pgrx::pg_schema]
mod tests {
    use pgrx::prelude::*;

    use crate::unit_tests::support::{error_of, run, sqlstate_of, text, value};

    const EARLY: &str = "'d2177dd0-eaa2-11de-a572-001b779c76e3'::timeuuid";
    const LATE: &str = "'50554d6e-29bb-11e5-b345-feff819cdc9f'::timeuuid";

    #[pg_test]
    fn tinyint_reads_and_writes_its_range() {
        assert_eq!(text("SELECT '-128'::tinyint::text || ' 127 '::tinyint::text"), "-128127");
        for (input, sqlstate) in [("128", "22003"), ("-129", "22003"), ("", "22P02"), ("1.0", "22P02"), ("x", "22P02")]
        {
            assert_eq!(sqlstate_of(&format!("SELECT '{input}'::tinyint")), sqlstate, "{input}");
        }
        assert_eq!(sqlstate_of("SELECT 128::tinyint"), "22003");
        assert_eq!(sqlstate_of("SELECT (-129)::smallint::tinyint"), "22003");
        assert_eq!(value::<i32>("SELECT '-5'::tinyint::int"), Some(-5));
        assert_eq!(value::<i16>("SELECT '-5'::tinyint::smallint"), Some(-5));
    }

    #[pg_test]
    fn timeuuid_takes_version_1_only() {
        assert_eq!(text(&format!("SELECT {EARLY}::text")), "d2177dd0-eaa2-11de-a572-001b779c76e3");
        let error = error_of("SELECT '550e8400-e29b-41d4-a716-446655440000'::timeuuid");
        assert!(error.starts_with("22P02|invalid input syntax for type timeuuid: \"550e8400-e29b-41d4"), "{error}");
        assert_eq!(sqlstate_of("SELECT gen_random_uuid()::timeuuid"), "22P02");
        assert_eq!(sqlstate_of("SELECT 'x'::timeuuid"), "22P02");
        assert_eq!(text(&format!("SELECT {EARLY}::uuid::timeuuid::text")), "d2177dd0-eaa2-11de-a572-001b779c76e3");
    }

    #[pg_test]
    fn timeuuid_orders_by_time_then_signed_bytes() {
        let ordered = |a: &str, b: &str| text(&format!("SELECT ({a} < {b} AND {b} > {a} AND {a} <> {b})::text"));
        assert_eq!(ordered(EARLY, LATE), "true");
        assert_eq!(text(&format!("SELECT ({EARLY}::uuid > {LATE}::uuid)::text")), "true");
        // 0x80 is -128, before 0x7f.
        assert_eq!(
            ordered(
                "'d2177dd0-eaa2-11de-8072-001b779c76e3'::timeuuid",
                "'d2177dd0-eaa2-11de-7f72-001b779c76e3'::timeuuid"
            ),
            "true"
        );
    }

    #[pg_test]
    fn varint_reads_and_writes_any_integer() {
        let long = "-123456789012345678901234567890123456789012345678901234567890";
        assert_eq!(text(&format!("SELECT '{long}'::varint::text")), long);
        assert_eq!(text("SELECT '+007'::varint::text || '-0'::varint::text"), "70");
        for input in ["", "1.5", "1e3", "NaN", "- 1"] {
            assert_eq!(sqlstate_of(&format!("SELECT '{input}'::varint")), "22P02", "{input}");
        }
        assert_eq!(sqlstate_of("SELECT repeat('9', 131073)::varint"), "22003");
        assert_eq!(value::<i64>("SELECT length(repeat('9', 131072)::varint::text)::bigint"), Some(131_072));
    }

    #[pg_test]
    fn varint_casts_keep_the_value_or_fail() {
        assert_eq!(value::<i32>("SELECT '-2147483648'::varint::int"), Some(i32::MIN));
        assert_eq!(value::<i64>("SELECT '-9223372036854775808'::varint::bigint"), Some(i64::MIN));
        assert_eq!(sqlstate_of("SELECT '2147483648'::varint::int"), "22003");
        assert_eq!(sqlstate_of("SELECT '9223372036854775808'::varint::bigint"), "22003");
        for (numeric, integer) in [
            ("2.5", "3"),
            ("-2.5", "-3"),
            ("2.49", "2"),
            ("0.4", "0"),
            ("12345678901234567890e20", "1234567890123456789000000000000000000000"),
        ] {
            assert_eq!(text(&format!("SELECT '{numeric}'::numeric::varint::text")), integer);
        }
        assert_eq!(sqlstate_of("SELECT 'NaN'::numeric::varint"), "22003");
        assert_eq!(text("SELECT (1::bigint::varint::numeric + 0.5)::text"), "1.5");
    }

    #[pg_test]
    fn varint_orders_by_value() {
        let numbers = "SELECT string_agg(x::text, ' ' ORDER BY x) FROM unnest('{255,-129,0,-1,256,-128,127,-32769,128}'::varint[]) x";
        assert_eq!(text(numbers), "-32769 -129 -128 -1 0 127 128 255 256");
    }

    #[pg_test]
    fn integer_constants_compare_with_the_column_itself() {
        run("CREATE TEMP TABLE t (a tinyint, b varint)");
        run("INSERT INTO t SELECT i, i FROM generate_series(-100, 100) i");
        run("CREATE INDEX t_a ON t (a)");
        run("CREATE INDEX t_b ON t USING hash (b)");
        run("SET LOCAL enable_seqscan = off");
        assert_eq!(value::<i64>("SELECT count(*) FROM t WHERE a < -98"), Some(2));
        assert_eq!(text("SELECT b::text FROM t WHERE b = 7"), "7");
        assert_eq!(text("SELECT a::text FROM t WHERE a = 7"), "7");
        assert_eq!(sqlstate_of("SELECT a FROM t WHERE a = 300"), "22003");
    }

    #[pg_test]
    fn own_types_can_be_sorted_grouped_joined_and_keyed() {
        for (own_type, values) in [
            ("tinyint", "SELECT i::tinyint FROM generate_series(-128, 127) i"),
            ("varint", "SELECT (i * 1e15::bigint)::bigint::varint FROM generate_series(-128, 127) i"),
            (
                "timeuuid",
                "SELECT (lpad(to_hex(i + 128), 8, '0') || '-eaa2-11de-a572-001b779c76e3')::timeuuid FROM generate_series(-128, 127) i",
            ),
        ] {
            run(&format!("CREATE TEMP TABLE k (v {own_type} PRIMARY KEY)"));
            run(&format!("INSERT INTO k {values} ORDER BY 1 DESC"));
            for (setting, query) in [
                ("enable_hashagg", "SELECT count(*) FROM (SELECT DISTINCT v FROM k) d"),
                ("enable_sort", "SELECT count(*) FROM (SELECT DISTINCT v FROM k) d"),
                ("enable_hashjoin", "SELECT count(*) FROM k a JOIN k b ON a.v = b.v"),
                ("enable_mergejoin", "SELECT count(*) FROM k a JOIN k b ON a.v = b.v"),
            ] {
                run(&format!("SET LOCAL {setting} = off"));
                assert_eq!(value::<i64>(query), Some(256), "{own_type} {setting}");
                run(&format!("SET LOCAL {setting} = on"));
            }
            assert_eq!(sqlstate_of("INSERT INTO k SELECT v FROM k LIMIT 1"), "23505");
            run("DROP TABLE k");
        }
        assert_eq!(
            value::<i64>("SELECT count(*) FROM pg_opclass c WHERE opcname IN ('tinyint_ops', 'varint_ops', 'timeuuid_ops') AND amvalidate(c.oid)"),
            Some(6)
        );
    }

    #[pg_test]
    fn own_types_survive_the_binary_protocol() {
        for (own_type, literal, sent) in [
            ("tinyint", "-2", "fe"),
            ("timeuuid", "d2177dd0-eaa2-11de-a572-001b779c76e3", "d2177dd0eaa211dea572001b779c76e3"),
            ("varint", "-129", "ff7f"),
        ] {
            assert_eq!(text(&format!("SELECT encode({own_type}_send('{literal}'::{own_type}), 'hex')")), sent);
            let path = format!("/tmp/cass_binary_{}_{own_type}", std::process::id());
            run(&format!("CREATE TEMP TABLE b (v {own_type})"));
            run(&format!("INSERT INTO b VALUES ('{literal}')"));
            run(&format!("COPY b TO '{path}' (FORMAT binary)"));
            run("TRUNCATE b");
            run(&format!("COPY b FROM '{path}' (FORMAT binary)"));
            assert_eq!(text("SELECT v::text FROM b"), literal);
            run("DROP TABLE b");
            assert!(std::fs::remove_file(&path).is_ok());
        }
    }
}
