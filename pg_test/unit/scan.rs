//! The custom scan: what it reads, in which order, and what EXPLAIN says of it.

#[pgrx::pg_schema]
mod tests {
    use pgrx::prelude::*;

    use crate::unit_tests::support::{error_of, explain, plan, rows, run, text};

    /// messages ((channel), sent DESC, id): channels 1 to 4, sent 1 to 5, id 1 to 3; and a plain table of channels.
    fn messages() {
        run("CREATE TABLE messages (channel int, sent int, id int, body text, PRIMARY KEY (channel, sent, id)) \
             USING cass WITH (partition_key = 'channel', clustering_order = 'sent DESC')");
        run("INSERT INTO messages SELECT c, s, i, format('%s-%s-%s', c, s, i) \
             FROM generate_series(1, 4) c, generate_series(1, 5) s, generate_series(1, 3) i");
        run("CREATE TABLE wanted (channel int, name text)");
        run("INSERT INTO wanted VALUES (1, 'one'), (3, 'three')");
    }

    /// The bodies a query returns, in its order.
    fn bodies(condition: &str) -> String {
        rows(&format!("SELECT body FROM messages WHERE {condition}"))
    }

    #[pg_test]
    fn a_partition_comes_in_clustering_order() {
        messages();
        let partition = "4-5-1 4-5-2 4-5-3 4-4-1 4-4-2 4-4-3 4-3-1 4-3-2 4-3-3 4-2-1 4-2-2 4-2-3 4-1-1 4-1-2 4-1-3";
        assert_eq!(bodies("channel = 4"), partition);
        assert_eq!(bodies("4 = channel"), partition);
        let reversed: Vec<&str> = partition.split(' ').rev().collect();
        assert_eq!(bodies("channel = 4 ORDER BY sent, id DESC"), reversed.join(" "));
    }

    #[pg_test]
    fn slices_of_a_clustering_column_hold_what_their_operators_say() {
        messages();
        let sent =
            |condition: &str| bodies(&format!("channel = 1 AND id = 2 AND cass_allow_filtering() AND {condition}"));
        assert_eq!(sent("sent > 3"), "1-5-2 1-4-2");
        assert_eq!(sent("sent >= 3"), "1-5-2 1-4-2 1-3-2");
        assert_eq!(sent("sent < 3"), "1-2-2 1-1-2");
        assert_eq!(sent("sent <= 3"), "1-3-2 1-2-2 1-1-2");
        assert_eq!(sent("3 < sent"), "1-5-2 1-4-2");
        assert_eq!(sent("sent BETWEEN 2 AND 3"), "1-3-2 1-2-2");
        assert_eq!(sent("sent > 1 AND sent > 3 AND sent <= 4"), "1-4-2");
        assert_eq!(sent("sent > 3 AND sent < 2"), "");
        assert_eq!(sent("sent > 3 AND sent < 4"), "");
        assert_eq!(sent("sent BETWEEN 2 AND 3 ORDER BY sent"), "1-2-2 1-3-2");
        // An ascending column, after an equality.
        let id = |condition: &str| bodies(&format!("channel = 1 AND sent = 2 AND {condition}"));
        assert_eq!(id("id > 1"), "1-2-2 1-2-3");
        assert_eq!(id("id >= 3"), "1-2-3");
        assert_eq!(id("id < 3 ORDER BY id DESC"), "1-2-2 1-2-1");
        assert_eq!(id("id <= 0"), "");
    }

    #[pg_test]
    fn values_of_other_integer_types_bind_and_those_out_of_range_mean_what_they_say() {
        messages();
        assert_eq!(bodies("channel = 2::bigint AND sent = 3::smallint AND id = 1"), "2-3-1");
        assert_eq!(bodies("channel = 4294967298"), "");
        assert_eq!(bodies("channel = ANY ('{1,4294967298}'::bigint[]) AND sent = 5 AND id = 1"), "1-5-1");
        let count =
            |condition: &str| text(&format!("SELECT count(*)::text FROM messages WHERE channel = 1 AND {condition}"));
        assert_eq!(count("sent < 4294967298"), "15");
        assert_eq!(count("sent > -4294967298"), "15");
        assert_eq!(count("sent > 4294967298"), "0");
        assert_eq!(count("sent <= -4294967298"), "0");
        assert!(plan("SELECT FROM messages WHERE channel = 2::bigint").contains("Partition Key"));
    }

    #[pg_test]
    fn several_partitions_come_in_token_order_each_once() {
        messages();
        // Tokens: 1 is -4069959284402364209, 2 is -3248873570005575792, 3 is 9010454139840013625.
        assert_eq!(bodies("channel IN (3, 1, 2, 1) AND sent = 1 AND id = 1"), "1-1-1 2-1-1 3-1-1");
        assert_eq!(
            bodies("channel IN (3, 1) AND sent IN (2, 4) AND id IN (1, 3)"),
            "1-4-1 1-4-3 1-2-1 1-2-3 3-4-1 3-4-3 3-2-1 3-2-3"
        );
        assert_eq!(bodies("channel = 1 AND sent IN (4, 2, 4) AND id = 1 ORDER BY sent"), "1-2-1 1-4-1");
        assert_eq!(bodies("channel = ANY ('{}'::int[])"), "");
        assert_eq!(bodies("channel = ANY ('{3,null}'::int[]) AND sent = 1 AND id = 1"), "3-1-1");
        assert_eq!(bodies("channel = ANY (NULL::int[])"), "");
    }

    #[pg_test]
    fn null_matches_nothing() {
        messages();
        run("PREPARE by_channel(int, int) AS SELECT body FROM messages WHERE channel = $1 AND sent > $2 AND id = 1");
        run("SET plan_cache_mode = force_generic_plan");
        assert_eq!(rows("EXECUTE by_channel(1, 4)"), "1-5-1");
        assert_eq!(rows("EXECUTE by_channel(NULL, 4)"), "");
        assert_eq!(rows("EXECUTE by_channel(1, NULL)"), "");
        assert_eq!(bodies("channel = (SELECT NULL::int)"), "");
    }

    #[pg_test]
    fn order_by_the_declared_order_or_its_reverse_needs_no_sort() {
        messages();
        for (order, sorted, backward) in [
            ("sent DESC, id", false, false),
            ("sent DESC", false, false),
            ("channel, sent DESC, id", false, false),
            ("sent, id DESC", false, true),
            ("sent", false, true),
            ("sent, id", true, false),
            ("id", true, false),
            ("body", true, false),
        ] {
            let plan = plan(&format!("SELECT body FROM messages WHERE channel = 1 ORDER BY {order} LIMIT 2"));
            assert_eq!(plan.contains("Sort"), sorted, "{order}: {plan}");
            if !sorted {
                assert_eq!(plan.contains("Scan Direction: Backward"), backward, "{order}: {plan}");
            }
        }
        let plan_after_equality = plan("SELECT body FROM messages WHERE channel = 1 AND sent = 2 ORDER BY id DESC");
        assert!(!plan_after_equality.contains("Sort"), "{plan_after_equality}");
        assert!(plan("SELECT body FROM messages WHERE channel IN (1, 2) ORDER BY sent DESC").contains("Sort"));
    }

    #[pg_test]
    fn a_limit_stops_the_scan() {
        messages();
        let plan =
            explain("ANALYZE, COSTS off, TIMING off, SUMMARY off", "SELECT * FROM messages WHERE channel = 1 LIMIT 2");
        // The delta is read one row ahead.
        assert!(plan.contains("Delta Rows: 3|"), "{plan}");
    }

    #[pg_test]
    fn explain_names_what_binds_and_what_was_read() {
        messages();
        let expected = "Custom Scan (CassScan) on messages\
            |  Filter: (body <> 'x'::text)\
            |  Partition Key: (channel = 1)\
            |  Clustering: ((sent = 2) AND (id > 1))";
        assert_eq!(plan("SELECT * FROM messages WHERE channel = 1 AND sent = 2 AND id > 1 AND body <> 'x'"), expected);
        assert_eq!(
            plan("SELECT * FROM messages WHERE cass_token(channel) > 5 AND cass_token(channel) <= 9"),
            "Custom Scan (CassScan) on messages\
             |  Token Range: ((cass_token(channel) > 5) AND (cass_token(channel) <= 9))"
        );
        assert_eq!(plan("SELECT * FROM messages"), "Custom Scan (CassScan) on messages");
        let analysed = explain(
            "ANALYZE, COSTS off, TIMING off, SUMMARY off",
            "SELECT * FROM messages WHERE channel = 1 AND sent = 2",
        );
        for line in ["actual rows=3", "Segments Read: 0", "Segments Skipped: 0", "Delta Rows: 3", "Pages: 0"] {
            assert!(analysed.contains(line), "{line}: {analysed}");
        }
    }

    #[pg_test]
    fn a_join_names_the_partition_by_parameter() {
        messages();
        let plan =
            plan("SELECT * FROM wanted w JOIN messages m ON m.channel = w.channel WHERE m.sent = 5 AND m.id = 1");
        assert!(
            plan.contains("Nested Loop") && plan.contains("Partition Key: (w.channel = channel)")
                || plan.contains("Partition Key: (channel = w.channel)"),
            "{plan}"
        );
        assert_eq!(
            rows("SELECT body FROM wanted w JOIN messages m USING (channel) WHERE sent = 5 AND id = 1 ORDER BY body"),
            "1-5-1 3-5-1"
        );
        assert_eq!(
            rows(
                "SELECT coalesce(body, w.name) FROM (VALUES (1, 'a'), (9, 'b')) w(channel, name) \
                  LEFT JOIN messages m ON m.channel = w.channel AND m.sent = w.channel AND m.id = 1 ORDER BY 1"
            ),
            "1-1-1 b"
        );
        assert_eq!(
            rows(
                "SELECT l.body FROM wanted w, LATERAL (SELECT * FROM messages m WHERE m.channel = w.channel \
                  ORDER BY sent DESC, id LIMIT 2) l ORDER BY 1"
            ),
            "1-5-1 1-5-2 3-5-1 3-5-2"
        );
        assert_eq!(
            rows("SELECT body FROM messages WHERE channel IN (SELECT channel FROM wanted) AND sent = 1 AND id = 1 ORDER BY 1"),
            "1-1-1 3-1-1"
        );
        assert_eq!(
            rows("SELECT name FROM wanted w WHERE NOT EXISTS (SELECT FROM messages m WHERE m.channel = w.channel AND sent = 9)"),
            "one three"
        );
        assert_eq!(
            rows("SELECT body FROM messages WHERE channel = (SELECT channel FROM wanted WHERE name = 'three') AND sent = 1"),
            "3-1-1 3-1-2 3-1-3"
        );
    }

    #[pg_test]
    fn join_values_bind_clustering_columns_too() {
        messages();
        let query = "SELECT body FROM wanted w JOIN messages m ON m.sent = w.channel WHERE m.channel = 2 AND m.id = 1";
        assert_eq!(rows(&format!("{query} ORDER BY 1")), "2-1-1 2-3-1");
    }

    #[pg_test]
    fn a_token_range_is_a_run_of_the_ring() {
        messages();
        let channels = |condition: &str| {
            rows(&format!(
                "SELECT DISTINCT ON (cass_token(channel)) channel FROM messages WHERE {condition} \
            ORDER BY cass_token(channel)"
            ))
        };
        assert_eq!(channels("cass_token(channel) >= -9223372036854775808"), "1 2 4 3");
        assert_eq!(channels("cass_token(channel) > cass_token(2)"), "4 3");
        assert_eq!(channels("cass_token(channel) >= cass_token(2) AND cass_token(channel) < cass_token(3)"), "2 4");
        assert_eq!(channels("cass_token(channel) BETWEEN cass_token(2) AND cass_token(4)"), "2 4");
        assert_eq!(channels("cass_token(channel) = cass_token(2)"), "2");
        assert_eq!(channels("cass_token(channel) > 9223372036854775807"), "");
        assert_eq!(channels("cass_token(channel) < -9223372036854775808"), "");
        assert_eq!(channels("0 < cass_token(channel)"), "3");
        assert_eq!(channels("cass_token(channel) > 0::smallint"), "3");
        assert_eq!(channels("cass_token(channel) > NULL::bigint"), "");
        assert_eq!(channels("cass_token(channel) > 5 AND cass_token(channel) < 5"), "");
    }

    #[pg_test]
    fn order_by_token_needs_no_sort() {
        messages();
        for (query, channels) in [
            ("SELECT channel FROM messages ORDER BY cass_token(channel) LIMIT 1", "1"),
            ("SELECT channel FROM messages ORDER BY cass_token(channel) DESC LIMIT 1", "3"),
            ("SELECT channel FROM messages WHERE cass_token(channel) > cass_token(1) ORDER BY cass_token(channel) LIMIT 1", "2"),
        ] {
            assert_eq!(rows(query), channels, "{query}");
            assert!(!plan(query).contains("Sort"), "{}", plan(query));
        }
        assert!(plan("SELECT channel FROM messages ORDER BY channel").contains("Sort"));
    }

    /// Asserts what a condition beside `channel = 1` returns, that it narrows what is read, and whether rows are filtered besides.
    fn assert_clustered(condition: &str, bodies: &str, filtered: bool) {
        let query = format!("SELECT body FROM messages WHERE channel = 1 AND {condition}");
        assert_eq!(rows(&query), bodies, "{query}");
        let plan = plan(&query);
        assert!(plan.contains("Clustering: (") && plan.contains("Filter") == filtered, "{plan}");
    }

    #[pg_test]
    fn a_row_comparison_is_read_as_the_ranges_that_hold_it() {
        messages();
        for (condition, bodies) in [
            ("(sent, id) > (4, 2)", "1-5-1 1-5-2 1-5-3 1-4-3"),
            ("(2, 2) > (sent, id)", "1-2-1 1-1-1 1-1-2 1-1-3"),
            ("(sent, id) >= (4, 2) AND (sent, id) < (5, 2)", "1-5-1 1-4-2 1-4-3"),
            ("(sent, id) >= (4, 2) AND sent < 5", "1-4-2 1-4-3"),
            ("(sent, id) > (3, 3) AND (sent, id) < (4, 1)", ""),
            ("(sent, id) > (3::bigint, 3000000000)", "1-5-1 1-5-2 1-5-3 1-4-1 1-4-2 1-4-3"),
            ("(sent, id) > (4, NULL)", "1-5-1 1-5-2 1-5-3"),
            ("(sent, id) > (NULL, 4)", ""),
        ] {
            assert_clustered(condition, bodies, false);
        }
        let plan = plan("SELECT body FROM messages WHERE channel = 1 AND (sent, id) > (4, 2)");
        assert!(plan.contains("Clustering: (ROW(sent, id) > ROW(4, 2))"), "{plan}");
    }

    #[pg_test]
    fn a_row_comparison_of_other_columns_narrows_by_those_that_follow_each_other_in_the_key() {
        messages();
        for (condition, bodies) in [
            ("(sent, body) >= (5, '1-5-3')", "1-5-3"),
            ("(sent, body) < (2, '1-2-2')", "1-2-1 1-1-1 1-1-2 1-1-3"),
            ("sent = 3 AND (id, sent) >= (2, 9)", "1-3-3"),
        ] {
            assert_clustered(condition, bodies, true);
        }
    }

    #[pg_test]
    fn a_parallel_scan_reads_every_row_once() {
        run("CREATE TABLE wide (k int PRIMARY KEY, v int) USING cass");
        run("INSERT INTO wide SELECT i, i % 7 FROM generate_series(1, 5000) i");
        run("SET LOCAL parallel_setup_cost = 0");
        run("SET LOCAL parallel_tuple_cost = 0");
        run("SET LOCAL min_parallel_table_scan_size = 0");
        run("SET LOCAL max_parallel_workers_per_gather = 2");
        for condition in [
            "true",
            "v = 3 AND cass_allow_filtering()",
            "cass_token(k) > 0",
            "cass_token(k) BETWEEN cass_token(1) AND cass_token(2)",
            "cass_token(k) > 5 AND cass_token(k) < 6",
        ] {
            let query = format!("SELECT count(*) FROM wide WHERE {condition}");
            let plan = plan(&query);
            // Of a few rows the planner expects no gain.
            let is_narrow = condition.contains("AND cass_token");
            assert!(is_narrow || plan.contains("Parallel Custom Scan (CassScan) on wide"), "{plan}");
            let serial = format!("SELECT count(*) FROM (SELECT * FROM wide WHERE {condition} OFFSET 0) s");
            run("SET LOCAL max_parallel_workers_per_gather = 0");
            let expected = rows(&serial);
            run("SET LOCAL max_parallel_workers_per_gather = 2");
            assert_eq!(rows(&query), expected, "{condition}");
        }
        assert_eq!(rows("SELECT count(*) FROM wide"), "5000");
        let plan = explain("ANALYZE, COSTS off, TIMING off, SUMMARY off", "SELECT count(*) FROM wide");
        assert!(plan.contains("Delta Rows: 5000|"), "{plan}");
    }

    #[pg_test]
    fn a_segment_is_counted_once_however_often_it_is_read() {
        run("CREATE TABLE wide (k int PRIMARY KEY, v int) USING cass");
        run("INSERT INTO wide SELECT i, i % 7 FROM generate_series(1, 5000) i");
        run("CREATE TABLE rewritten (k int PRIMARY KEY, v int) USING cass");
        run("INSERT INTO rewritten SELECT * FROM wide");
        run("ALTER TABLE rewritten ALTER v TYPE bigint");
        run("SET LOCAL parallel_setup_cost = 0");
        run("SET LOCAL parallel_tuple_cost = 0");
        run("SET LOCAL min_parallel_table_scan_size = 0");
        run("SET LOCAL max_parallel_workers_per_gather = 2");
        let options = "ANALYZE, COSTS off, TIMING off, SUMMARY off";
        let all = explain(options, "SELECT count(*) FROM rewritten");
        assert!(all.contains("Workers Launched: 2") && all.contains("Parallel Custom Scan"), "{all}");
        let some = explain(options, "SELECT count(*) FROM rewritten WHERE k IN (1, 2, 3, 90000)");
        for plan in [all, some] {
            assert!(plan.contains("Segments Read: 1|") && plan.contains("Segments Skipped: 0|"), "{plan}");
        }
        let none = explain(options, "SELECT count(*) FROM rewritten WHERE k IN (90000, 90001)");
        assert!(none.contains("Segments Read: 0|") && none.contains("Segments Skipped: 1|"), "{none}");
    }

    #[pg_test]
    fn tokens_of_different_types_are_not_compared() {
        messages();
        assert_eq!(
            error_of("SELECT * FROM messages WHERE cass_token(channel) > cass_token(42::bigint)"),
            "42804|tokens of different types cannot be compared|\
             One side is the token of type integer, the other of type bigint.|\
             Cast the values to the types of the partition key's columns."
        );
    }

    #[pg_test]
    fn a_full_scan_comes_in_token_order() {
        messages();
        assert_eq!(
            rows("SELECT body FROM messages WHERE sent = 1 AND id = 1 AND cass_allow_filtering()"),
            "1-1-1 2-1-1 4-1-1 3-1-1"
        );
    }

    #[pg_test]
    fn update_and_delete_find_rows_through_the_scan() {
        messages();
        assert_eq!(
            rows("UPDATE messages SET body = 'new' WHERE channel = 1 AND sent = 2 AND id > 1 RETURNING id"),
            "2 3"
        );
        assert_eq!(bodies("channel = 1 AND sent = 2"), "1-2-1 new new");
        assert_eq!(rows("UPDATE messages m SET body = w.name FROM wanted w WHERE m.channel = w.channel AND sent = 1 AND id = 1 \
            RETURNING m.body"), "one three");
        assert_eq!(
            rows("DELETE FROM messages WHERE channel = 1 AND sent <= 4 RETURNING sent"),
            "4 4 4 3 3 3 2 2 2 1 1 1"
        );
        assert_eq!(bodies("channel = 1"), "1-5-1 1-5-2 1-5-3");
        assert_eq!(
            rows(
                "DELETE FROM messages m USING wanted w WHERE m.channel = w.channel AND sent = 5 AND id = 3 \
            RETURNING m.body"
            ),
            "1-5-3 3-5-3"
        );
        assert_eq!(rows("SELECT body FROM messages WHERE channel = 1 FOR UPDATE"), "1-5-1 1-5-2");
    }

    #[pg_test]
    fn whole_rows_and_system_columns_can_be_selected() {
        messages();
        assert_eq!(text("SELECT m::text FROM messages m WHERE channel = 1 AND sent = 2 AND id = 3"), "(1,2,3,1-2-3)");
        assert_eq!(text("SELECT tableoid::regclass::text FROM messages WHERE channel = 1 LIMIT 1"), "messages");
        assert_eq!(
            text("SELECT b.body FROM messages a JOIN messages b ON b.ctid = a.ctid WHERE a.channel = 1 AND a.sent = 2 AND a.id = 3"),
            "1-2-3"
        );
    }

    #[pg_test]
    fn a_cursor_updates_the_row_it_stands_on() {
        messages();
        run("DECLARE c CURSOR FOR SELECT * FROM messages WHERE channel = 1 FOR UPDATE");
        run("DO $$ DECLARE c refcursor := 'c'; r record; BEGIN FETCH c INTO r; FETCH c INTO r; \
             UPDATE messages SET body = 'here' WHERE CURRENT OF c; END $$");
        assert_eq!(bodies("channel = 1 AND sent = 5"), "1-5-1 here 1-5-3");
    }

    #[pg_test]
    fn boolean_and_text_and_domain_columns_bind() {
        run("CREATE DOMAIN code AS varchar(10)");
        run("CREATE TABLE flags (active boolean, name code, \"Day\" date, n bigint, PRIMARY KEY (active, name, \"Day\")) \
             USING cass WITH (partition_key = 'active, name')");
        run("INSERT INTO flags SELECT b, 'n' || i, '2026-01-01'::date + i, i FROM unnest('{t,f}'::bool[]) b, generate_series(1, 3) i");
        assert_eq!(rows("SELECT n FROM flags WHERE active AND name = 'n2'"), "2");
        assert_eq!(
            rows("SELECT active::text || n FROM flags WHERE NOT active AND name IN ('n1', 'n3') ORDER BY n"),
            "false1 false3"
        );
        assert_eq!(
            rows("SELECT n FROM flags WHERE active = true AND name = 'n2'::text AND \"Day\" >= '2026-01-03'"),
            "2"
        );
        assert_eq!(rows("SELECT count(*) FROM flags WHERE active IN (true, false) AND name = 'n1'"), "2");
        // A date compared with a timestamp is no bound, but it is a filter.
        let query = "SELECT n FROM flags WHERE active AND name = 'n2' AND \"Day\" >= timestamp '2026-01-03 00:00'";
        assert_eq!(rows(query), "2");
        assert!(plan(query).contains("Filter"), "{}", plan(query));
    }

    #[cfg_attr(not(feature = "pg15"), ignore = "the servers of PyPI are built without ICU")]
    #[pg_test]
    fn a_slice_of_text_in_another_order_is_a_filter_and_sorts() {
        run("CREATE TABLE names (k int, name text COLLATE \"und-x-icu\", plain text COLLATE \"C\", PRIMARY KEY (k, name, plain)) USING cass");
        run("INSERT INTO names VALUES (1, 'a', 'a'), (1, 'B', 'b'), (1, 'c', 'C')");
        assert_eq!(rows("SELECT name FROM names WHERE k = 1"), "B a c");
        assert_eq!(rows("SELECT name FROM names WHERE k = 1 ORDER BY name"), "a B c");
        assert_eq!(rows("SELECT name FROM names WHERE k = 1 AND name > 'a' ORDER BY name"), "B c");
        assert_eq!(rows("SELECT name FROM names WHERE k = 1 AND name = 'B' AND plain >= 'a'"), "B");
        let slice = plan("SELECT name FROM names WHERE k = 1 AND name > 'a' ORDER BY name");
        assert!(slice.contains("Sort") && slice.contains("Filter: (name > 'a'::text)"), "{slice}");
        let by_bytes = plan("SELECT name FROM names WHERE k = 1 AND name = 'B' AND plain >= 'a' ORDER BY plain");
        assert!(!by_bytes.contains("Sort") && !by_bytes.contains("Filter"), "{by_bytes}");
    }

    #[pg_test]
    fn a_scan_starts_again_with_new_parameters() {
        messages();
        assert_eq!(
            rows("SELECT (SELECT string_agg(body, '+') FROM messages m WHERE m.channel = n AND m.sent = n AND m.id < n) \
                  FROM generate_series(1, 4) n"),
            "null 2-2-1 3-3-1+3-3-2 4-4-1+4-4-2+4-4-3"
        );
    }

    #[pg_test]
    fn an_aggregate_reads_the_ends_of_a_partition_only() {
        messages();
        run("INSERT INTO messages SELECT 9, s, 1, '' FROM generate_series(1, 500) s");
        run("ANALYZE messages");
        let plan =
            explain("ANALYZE, COSTS off, TIMING off, SUMMARY off", "SELECT max(sent) FROM messages WHERE channel = 9");
        assert!(plan.contains("Delta Rows: 2|"), "{plan}");
        assert_eq!(text("SELECT max(sent)::text FROM messages WHERE channel = 9"), "500");
        assert_eq!(text("SELECT min(sent)::text FROM messages WHERE channel = 9"), "1");
    }

    #[pg_test]
    fn values_that_no_row_can_have_as_partition_find_none() {
        let finds = |column: &str, stored: &str, sought: &str, found: &str| {
            run(&format!("CREATE TABLE sought_in (k {column} PRIMARY KEY, v int) USING cass"));
            run(&format!("INSERT INTO sought_in VALUES ('{stored}', 1)"));
            run(&format!("CREATE TABLE sought (k {column})"));
            run(&format!("INSERT INTO sought VALUES ('{sought}'), ('{stored}')"));
            assert_eq!(rows(&format!("SELECT v FROM sought_in WHERE k = '{sought}'")), found, "{column}");
            let list = format!("SELECT v FROM sought_in WHERE k IN ('{sought}', '{stored}')");
            assert_eq!(rows(&list), "1", "{column}");
            run("SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off");
            let matches = if found.is_empty() { "1" } else { "2" };
            let join = "SELECT count(*) FROM sought JOIN sought_in USING (k)";
            assert_eq!(rows(join), matches, "{column}");
            let lateral = "SELECT count(*) FROM sought s, LATERAL (SELECT FROM sought_in i WHERE i.k = s.k OFFSET 0) l";
            assert_eq!(rows(lateral), matches, "{column}");
            run("DROP TABLE sought, sought_in");
        };
        finds("date", "2026-09-07", "infinity", "");
        finds("timestamptz", "2026-09-07", "-infinity", "");
        finds("timestamp", "2026-09-07", "infinity", "");
        finds("time", "12:00", "24:00", "");
        finds("inet", "10.0.0.1", "10.0.0.0/8", "");
        finds("numeric(10,2)", "1.5", "NaN", "");
        finds("float8", "0", "-0.0", "1");
        finds("real", "0", "-0.0", "1");
        finds("text", "a", "", "");
        finds("bytea", "a", "", "");
        finds("text", "a", &"x".repeat(70_000), "");
    }

    #[pg_test]
    fn in_lists_of_too_many_combinations_are_an_error() {
        run("CREATE TABLE lists (a int, b int, c int, PRIMARY KEY (a, b, c)) USING cass \
             WITH (partition_key = 'a, b')");
        run("INSERT INTO lists VALUES (1, 1, 1), (2, 2, 2)");
        let query = |a: i32, b: i32, c: i32| {
            let list = |count| format!("ANY (ARRAY(SELECT generate_series(1, {count})))");
            format!("SELECT c FROM lists WHERE a = {} AND b = {} AND c = {}", list(a), list(b), list(c))
        };
        assert_eq!(
            error_of(&query(3000, 3000, 20)),
            "54000|IN lists of the query on table \"lists\" give 180000000 combinations of key values|\
             At most 100000 are read at once.|Use fewer values, or join with a table of the values."
        );
        assert!(error_of(&query(100, 100, 11)).starts_with("54000|"));
        assert_eq!(rows(&format!("{} ORDER BY c", query(100, 100, 10))), "1 2");
        assert_eq!(rows(&query(3000, 3000, 0)), "");
    }
}
