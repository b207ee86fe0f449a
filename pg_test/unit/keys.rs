//! Key encoding of PostgreSQL's values: byte order is PostgreSQL's order, and exact types read back.

#[pgrx::pg_schema]
mod tests {
    use cass_storage::key::{KeyReader, Order};
    use pgrx::pg_sys::{self, Datum};
    use pgrx::prelude::*;
    use pgrx::AnyElement;

    use crate::types::KeyType;
    use crate::unit_tests::support::{error_of, run, sqlstate_of, text, value};

    /// What becomes of a value on its way through a key: NULL if its type cannot be in one.
    fn key_type_of(fcinfo: pg_sys::FunctionCallInfo) -> KeyType {
        // SAFETY: the call's first argument has a known type.
        let type_oid = unsafe { pg_sys::get_fn_expr_argtype((*fcinfo).flinfo, 0) };
        KeyType::of(type_oid).unwrap_or_else(|| error!("no key type"))
    }

    fn argument(fcinfo: pg_sys::FunctionCallInfo) -> Datum {
        // SAFETY: the test functions are strict and have an argument.
        unsafe { pgrx::pg_getarg_datum_raw(fcinfo, 0) }
    }

    fn encoded(fcinfo: pg_sys::FunctionCallInfo, order: Order) -> Vec<u8> {
        let mut key = Vec::new();
        // SAFETY: the argument is a live value of the call's type.
        match unsafe { key_type_of(fcinfo).encode_key(argument(fcinfo), order, &mut key) } {
            Ok(()) => key,
            Err(error) => error.report().raise(),
        }
    }

    #[pg_extern(
        sql = "CREATE FUNCTION tests.key_ascending(anyelement) RETURNS bytea STRICT LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';"
    )]
    fn key_ascending(fcinfo: pg_sys::FunctionCallInfo) -> Vec<u8> {
        encoded(fcinfo, Order::Ascending)
    }

    #[pg_extern(
        sql = "CREATE FUNCTION tests.key_descending(anyelement) RETURNS bytea STRICT LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';"
    )]
    fn key_descending(fcinfo: pg_sys::FunctionCallInfo) -> Vec<u8> {
        encoded(fcinfo, Order::Descending)
    }

    #[pg_extern(
        sql = "CREATE FUNCTION tests.through_key(anyelement) RETURNS anyelement STRICT LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';"
    )]
    fn through_key(fcinfo: pg_sys::FunctionCallInfo) -> AnyElement {
        let key_type = key_type_of(fcinfo);
        let mut both = encoded(fcinfo, Order::Ascending);
        both.extend(encoded(fcinfo, Order::Descending));
        let mut reader = KeyReader::new(&both);
        let ahead = |result: Result<(), crate::types::TypeError>| result.unwrap_or_else(|error| error.report().raise());
        ahead(key_type.skip_key(&mut reader, Order::Ascending));
        let value = key_type.decode_key(&mut reader, Order::Descending).unwrap_or_else(|error| error.report().raise());
        assert!(reader.remaining().is_empty());
        // SAFETY: the value was just made, of the type of the argument.
        let element = unsafe {
            let type_oid = pg_sys::get_fn_expr_argtype((*fcinfo).flinfo, 0);
            AnyElement::from_polymorphic_datum(value, false, type_oid)
        };
        element.unwrap_or_else(|| error!("no value"))
    }

    #[pg_extern(
        sql = "CREATE FUNCTION tests.check_partition(anyelement) RETURNS text STRICT LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';"
    )]
    fn check_partition(fcinfo: pg_sys::FunctionCallInfo) -> String {
        // SAFETY: the argument is a live value of the call's type.
        match unsafe { key_type_of(fcinfo).check_partition_value(argument(fcinfo)) } {
            Ok(()) => "good".to_owned(),
            Err(error) => error.report().raise(),
        }
    }

    /// Values of each key type, in no order.
    const VALUES: [(&str, &str); 18] = [
        ("boolean", "true,false"),
        ("tinyint", "0,-128,127,-1,1"),
        ("smallint", "0,-32768,32767,-1,256"),
        ("integer", "0,-2147483648,2147483647,-1,256,65536"),
        ("bigint", "0,-9223372036854775808,9223372036854775807,-1,4294967296"),
        ("varint", "0,-1,127,128,-128,-129,340282366920938463463374607431768211456,-340282366920938463463374607431768211456"),
        ("real", "0,1.5,-1.5,Infinity,-Infinity,NaN,1e-45,-1e-45,3.4e38"),
        ("double precision", "0,1.5,-1.5,Infinity,-Infinity,NaN,5e-324,-5e-324,1e308"),
        ("numeric", "0,1,1.5,-1.5,Infinity,-Infinity,NaN,10000,9999,0.0001,-0.0001,1e100,-1e100,1e-100,10000.0001,0.00010001,123456789012345678901234567890"),
        ("text", "a,,ab,é,aa,B,zz,z,\u{1}"),
        ("varchar", "a,ab,b"),
        ("bytea", "\\\\x,\\\\x00,\\\\x0000,\\\\x00ff,\\\\xff,\\\\xff00,\\\\x01"),
        ("uuid", "00000000-0000-0000-0000-000000000000,ffffffff-ffff-ffff-ffff-ffffffffffff,550e8400-e29b-41d4-a716-446655440000"),
        ("timeuuid", "d2177dd0-eaa2-11de-a572-001b779c76e3,50554d6e-29bb-11e5-b345-feff819cdc9f,d2177dd0-eaa2-11de-7f72-001b779c76e3"),
        ("timestamptz", "2015-05-03 13:30:54.234567+00,-infinity,infinity,1900-01-01 00:00:00+00,4713-01-01 BC"),
        ("timestamp", "2015-05-03 13:30:54.234567,-infinity,infinity,294276-12-31 23:59:59.999999"),
        ("date", "2015-05-03,-infinity,infinity,1969-12-31,5874897-12-31"),
        ("time", "00:00:00,24:00:00,13:30:54.234567"),
    ];

    const ADDRESSES: &str =
        "10.0.0.0/8,10.0.0.0/16,10.1.0.0/16,10.0.0.1/8,10.0.0.0,10.0.0.0/0,0.0.0.0/0,9.255.0.0/16,255.255.255.255,\
        10.128.0.0/9,10.64.0.0/9,::,::/0,2001:db8::ff00:42:8329,2001:db8::/32,2001:db8::1/32,ffff::/16,::ffff:10.0.0.1";

    fn values() -> impl Iterator<Item = (&'static str, &'static str)> {
        VALUES.into_iter().chain([("inet", ADDRESSES)])
    }

    fn fill(sql_type: &str, values: &str) {
        let collate = if matches!(sql_type, "text" | "varchar") { "COLLATE \"C\"" } else { "" };
        run(&format!("CREATE TEMP TABLE v (v {sql_type} {collate})"));
        for value in values.split(',') {
            run(&format!("INSERT INTO v VALUES (E'{value}')"));
        }
    }

    #[pg_test]
    fn key_bytes_order_as_postgresql_does() {
        for (sql_type, values) in values() {
            fill(sql_type, values);
            let wrong = "SELECT string_agg(format('%s and %s', a.v, b.v), '; ') FROM v a, v b \
                 WHERE (a.v < b.v) <> (tests.key_ascending(a.v) < tests.key_ascending(b.v)) \
                    OR (a.v > b.v) <> (tests.key_descending(a.v) < tests.key_descending(b.v)) \
                    OR (a.v = b.v) <> (tests.key_ascending(a.v) = tests.key_ascending(b.v))";
            assert_eq!(value::<String>(wrong), None, "{sql_type}");
            run("DROP TABLE v");
        }
    }

    #[pg_test]
    fn exact_values_read_back_from_a_key() {
        for (sql_type, values) in values().filter(|(sql_type, _)| *sql_type != "numeric") {
            fill(sql_type, values);
            let wrong = "SELECT string_agg(format('%s as %s', v, tests.through_key(v)), '; ') FROM v \
                 WHERE v::text COLLATE \"C\" <> tests.through_key(v)::text";
            assert_eq!(value::<String>(wrong), None, "{sql_type}");
            run("DROP TABLE v");
        }
        assert_eq!(sqlstate_of("SELECT tests.through_key(1.0)"), "XX000");
    }

    #[pg_test]
    fn equal_numbers_written_differently_are_one_key() {
        for (a, b) in [
            ("1.0::numeric", "1.000::numeric"),
            ("0::numeric", "0.00::numeric"),
            ("'-0'::float8", "0::float8"),
            ("'-0'::real", "0::real"),
        ] {
            assert_eq!(text(&format!("SELECT (tests.key_ascending({a}) = tests.key_ascending({b}))::text")), "true");
        }
        assert!(!KeyType::Numeric.is_exact() && !KeyType::Double.is_exact() && !KeyType::Real.is_exact());
        assert!(KeyType::Text.is_exact() && KeyType::Inet.is_exact());
    }

    #[pg_test]
    fn a_partition_value_must_have_one_token() {
        for good in [
            "0.0::float8",
            "'NaN'::real",
            "'infinity'::float8",
            "''::text",
            "'10.0.0.1'::inet",
            "1.50::numeric",
            "now()",
            "'1999-12-31'::date",
        ] {
            assert_eq!(text(&format!("SELECT tests.check_partition({good})")), "good", "{good}");
        }
        assert_eq!(
            error_of("SELECT tests.check_partition('-0'::float8)"),
            "22023|-0.0 cannot be part of a partition key|It equals 0.0 but has another token, so that it would not be found.|\
             Store 0.0 instead, for example by adding 0.0 to the value."
        );
        for (bad, sqlstate) in [
            ("'-0'::real", "22023"),
            ("'infinity'::timestamptz", "22008"),
            ("'-infinity'::date", "22008"),
            ("'24:00'::time", "22008"),
            ("'NaN'::numeric", "22023"),
            ("'10.0.0.0/8'::inet", "22023"),
        ] {
            assert_eq!(sqlstate_of(&format!("SELECT tests.check_partition({bad})")), sqlstate, "{bad}");
        }
    }
}
