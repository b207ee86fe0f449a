//! The custom scan against a heap table with the same rows: any conditions, any order, the same answer.

#[pgrx::pg_schema]
mod tests {
    use pgrx::prelude::*;

    use crate::unit_tests::support::{plan, rows, run};

    /// A small generator of numbers (Knuth's MMIX constants), so that every run asks the same queries.
    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % limit
        }

        fn choose<'a>(&mut self, from: &[&'a str]) -> &'a str {
            from[self.below(from.len())]
        }
    }

    const COLUMNS: &str = "a int, b text, c bigint, d text COLLATE \"C\", e boolean, v int";
    const INTEGERS: [&str; 9] =
        ["0", "1", "2", "1::smallint", "2::bigint", "-1", "3000000000", "-3000000000", "NULL::int"];
    const TEXTS: [&str; 5] = ["'x'", "'y'", "''", "'x'::varchar", "NULL::text"];

    fn value(random: &mut Random, column: &str) -> &'static str {
        match column {
            "b" | "d" => random.choose(&TEXTS),
            "e" => random.choose(&["true", "false"]),
            _ => random.choose(&INTEGERS),
        }
    }

    fn condition(random: &mut Random, column: &str) -> String {
        let one = value(random, column);
        let other = value(random, column);
        // A partition column is mostly given.
        let kinds = if matches!(column, "a" | "b") { 30 } else { 10 };
        match random.below(kinds) {
            0 => format!("{column} IN ({one}, {other})"),
            1 => format!("{column} > {one}"),
            2 => format!("{column} <= {one}"),
            3 => format!("{column} BETWEEN {one} AND {other}"),
            4 => format!("{one} < {column}"),
            5 => format!("{column} = ANY (ARRAY[{one}, {other}])"),
            6 if column == "e" => random.choose(&["e", "NOT e", "e IS TRUE"]).into(),
            6 if column == "c" => format!("(c, d) {} (1, 'x')", random.choose(&["<", ">", "<=", ">="])),
            _ => format!("{column} = {one}"),
        }
    }

    fn make_twins() {
        run(&format!(
            "CREATE TABLE wide ({COLUMNS}, PRIMARY KEY (a, b, c, d, e)) \
             USING cass WITH (partition_key = 'a, b', clustering_order = 'c DESC, e DESC')"
        ));
        run(&format!("CREATE TABLE twin ({COLUMNS})"));
        run("INSERT INTO twin SELECT a, b, c, d, e, (row_number() OVER ())::int \
             FROM generate_series(-1, 2) a, unnest('{x,y,\"\"}'::text[]) b, generate_series(-1, 3) c, \
             unnest('{x,xx,y,\"\"}'::text[]) d, unnest('{t,f}'::bool[]) e WHERE (a + c) % 4 <> 1");
        run("INSERT INTO wide SELECT * FROM twin");
        run("SET LOCAL cass.enforcement = off");
    }

    /// Asserts that both tables have the same rows of a condition; the plan by which the cass table gives them.
    fn plan_of_same_rows(filter: &str) -> String {
        let query = |table: &str| {
            rows(&format!("SELECT array_agg(v ORDER BY v)::text FROM (SELECT v FROM {table} WHERE {filter}) s"))
        };
        assert_eq!(query("wide"), query("twin"), "{filter}");
        plan(&format!("SELECT v FROM wide WHERE {filter}"))
    }

    #[pg_test]
    fn random_conditions_give_what_a_heap_table_gives() {
        make_twins();
        let mut random = Random(20_260_907);
        let mut bound = 0;
        for _ in 0..400 {
            let mut conditions = Vec::new();
            for (column, chance) in [("a", 9), ("b", 9), ("c", 7), ("d", 5), ("e", 4), ("v", 1)] {
                if random.below(10) < chance {
                    conditions.push(condition(&mut random, column));
                }
            }
            let filter = if conditions.is_empty() { "true".into() } else { conditions.join(" AND ") };
            bound += usize::from(plan_of_same_rows(&filter).contains("Partition Key"));
        }
        assert!(bound > 100, "only {bound} queries were bound");
    }

    /// A comparison of rows of key columns, mostly in the key's order, either side first.
    fn row_comparison(random: &mut Random) -> String {
        let columns: &[&str] = match random.below(7) {
            0 | 1 => &["c", "d"],
            2 | 3 => &["c", "d", "e"],
            4 => &["d", "e"],
            5 => &["c", "e"],
            _ => &["c", "d", "v"],
        };
        let values: Vec<&str> = columns.iter().map(|column| value(random, column)).collect();
        let (row, values) = (columns.join(", "), values.join(", "));
        let operator = random.choose(&["<", ">", "<=", ">="]);
        if random.below(4) == 0 {
            format!("({values}) {operator} ({row})")
        } else {
            format!("({row}) {operator} ({values})")
        }
    }

    #[pg_test]
    fn random_row_comparisons_give_what_a_heap_table_gives() {
        make_twins();
        let mut random = Random(24);
        let mut unfiltered = 0;
        for _ in 0..400 {
            let mut filter = format!("a = {} AND b IN ('x', '')", random.choose(&["0", "1", "2"]));
            if random.below(4) == 0 {
                filter.push_str(&format!(" AND {}", condition(&mut random, "c")));
            }
            for _ in 0..=random.below(2) {
                filter.push_str(&format!(" AND {}", row_comparison(&mut random)));
            }
            unfiltered += usize::from(!plan_of_same_rows(&filter).contains("Filter"));
        }
        assert!(unfiltered > 100, "only {unfiltered} queries came without a filter");
    }

    #[pg_test]
    fn random_orders_give_what_a_heap_table_gives() {
        make_twins();
        let mut random = Random(7);
        let mut unsorted = 0;
        for _ in 0..200 {
            let mut filter =
                format!("a = {} AND b = {}", random.choose(&["0", "1", "2"]), random.choose(&["'x'", "''"]));
            for column in ["c", "d"] {
                if random.below(3) == 0 {
                    filter.push_str(&format!(" AND {}", condition(&mut random, column)));
                }
            }
            let order = random.choose(&[
                "c DESC, d, e DESC",
                "c, d DESC, e",
                "c, d, e",
                "d, c DESC, e",
                "c DESC, d, e",
                "a, b, c DESC, d, e DESC",
            ]);
            let query = |table: &str| format!("SELECT v FROM {table} WHERE {filter} ORDER BY {order} LIMIT 7");
            assert_eq!(rows(&query("wide")), rows(&query("twin")), "{filter} ORDER BY {order}");
            unsorted += usize::from(!plan(&query("wide")).contains("Sort"));
        }
        assert!(unsorted > 50, "only {unsorted} queries came without a sort");
    }

    #[pg_test]
    fn random_joins_give_what_a_heap_table_gives() {
        make_twins();
        run("CREATE TABLE outer_rows (x bigint, y text, z int)");
        run("INSERT INTO outer_rows SELECT x, y, x * 2 - 1 FROM generate_series(-2, 3) x, unnest('{x,y,z}'::text[]) y");
        run("INSERT INTO outer_rows VALUES (NULL, 'x', 1), (1, NULL, 1), (3000000000, 'x', 0)");
        // The whole table is then read only where a join cannot name the partition.
        run("SET LOCAL cass.enforcement = partition_key");
        let mut random = Random(99);
        let mut bound = 0;
        for _ in 0..150 {
            let mut conditions =
                vec![random.choose(&["w.a = o.x", "w.a = o.z", "o.z = w.a", "w.a = ANY (ARRAY[o.x, o.z])", "w.a = 1"])];
            conditions.push(random.choose(&["w.b = o.y", "w.b = 'x'", "w.b = ANY (ARRAY[o.y, 'x'])"]));
            if random.below(2) == 0 {
                conditions.push(random.choose(&["w.c = o.z", "w.c > o.x", "w.c BETWEEN o.z AND o.x", "w.c <= 1"]));
            }
            let on = conditions.join(" AND ");
            let kind = random.choose(&["JOIN", "LEFT JOIN", "RIGHT JOIN"]);
            let from = |table: &str| format!("outer_rows o {kind} {table} w ON {on}");
            let query = |table: &str| {
                rows(&format!(
                    "SELECT array_agg(r ORDER BY r)::text FROM (SELECT concat_ws(',', x, y, z, v) FROM {}) s(r)",
                    from(table)
                ))
            };
            assert_eq!(query("wide"), query("twin"), "{}", from("wide"));
            let is_bound = plan(&format!("SELECT FROM {}", from("wide"))).contains("Partition Key");
            assert!(is_bound || kind == "RIGHT JOIN", "{}", from("wide"));
            bound += usize::from(is_bound);
        }
        assert!(bound > 50, "only {bound} joins were bound");
    }
}
