//! Random statements, run on both tables of a pair.

use crate::schemas::{number, Column, Schema};
use cass_server_tests::{assert_same_rows, Cluster, Random, Session};
use std::collections::BTreeMap;

/// The tables: statements name them as `{t}`.
const TABLES: [&str; 2] = ["cass_twin", "heap_twin"];

/// The column that is added with a default.
const WITH_DEFAULT: &str = "extra";

/// Makes parallel plans the cheapest.
const PARALLEL: &str =
    "SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
     SET min_parallel_table_scan_size = 0";

pub struct Workload {
    schema: Schema,
    random: Random,
    /// Runs the statements on both tables, in one transaction where there is one.
    session: Session,
    /// Runs VACUUM, also while the session is in a transaction.
    other: Session,
    in_transaction: bool,
    savepoints: usize,
    history: Vec<String>,
    _cluster: Cluster,
}

impl Drop for Workload {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("The statements were:\n{}", self.history.join("\n"));
        }
    }
}

fn names(columns: &[Column]) -> String {
    columns.iter().map(|column| column.name).collect::<Vec<_>>().join(", ")
}

impl Workload {
    pub fn new(schema: Schema, seed: u64) -> Self {
        let eager_merge_size = if seed.is_multiple_of(2) { "4MB" } else { "0" };
        let cluster = Cluster::with_settings(&[
            ("cass.enforcement", "off"),
            ("max_parallel_workers_per_gather", "0"),
            ("cass.eager_merge_size", eager_merge_size),
        ]);
        let (session, other) = (cluster.connect(), cluster.connect());
        let mut workload = Workload {
            schema,
            random: Random::seeded(seed),
            session,
            other,
            in_transaction: false,
            savepoints: 0,
            history: Vec::new(),
            _cluster: cluster,
        };
        workload.create();
        workload
    }

    fn create(&mut self) {
        let declared: Vec<String> =
            self.schema.columns.iter().map(|column| format!("{} {}", column.name, column.declared)).collect();
        let key = match self.schema.key_columns {
            0 => String::new(),
            _ => format!(", PRIMARY KEY ({})", names(self.schema.key())),
        };
        let options = self.schema.options;
        let create = format!("({}{key})", declared.join(", "));
        self.session.run(&format!("CREATE TABLE cass_twin {create} USING cass {options}"));
        self.session.run(&format!("CREATE TABLE heap_twin {create} USING heap"));
        for index in self.schema.indexes {
            self.on_both(&index.replace("{n}", "{t}"));
        }
    }

    pub fn run(&mut self, steps: usize) {
        for step in 0..steps {
            self.step(step * 3 == steps);
            self.compare_all();
        }
        if self.in_transaction {
            self.session.run("COMMIT");
        }
        self.vacuum();
        self.compare_all();
    }

    fn step(&mut self, is_third: bool) {
        if is_third {
            return self.change_columns();
        }
        match self.random.below(100) {
            0..=29 => self.upsert(),
            30..=35 => self.insert_some_columns(),
            36..=47 => self.update(),
            48..=53 => self.update_key(),
            54..=63 => self.delete(),
            64..=77 => self.transaction_control(),
            78..=85 => self.vacuum(),
            _ => self.read(),
        }
    }

    /// Runs a statement on a table, and keeps it for the report.
    fn on(&mut self, table: &str, sql: &str) -> Result<Vec<String>, String> {
        let sql = sql.replace("{t}", table);
        self.history.push(format!("{sql};"));
        self.session.try_rows(&sql).map_err(|error| match error.as_db_error() {
            Some(error) => error.code().code().to_owned(),
            None => error.to_string(),
        })
    }

    /// Runs a statement on both tables; rows or SQLSTATE must be the same. A failure is undone.
    fn on_both(&mut self, sql: &str) {
        let results = TABLES.map(|table| {
            if self.in_transaction {
                self.session.run("SAVEPOINT statement");
            }
            let result = self.on(table, sql);
            if self.in_transaction {
                let undo = if result.is_err() { "ROLLBACK TO statement;" } else { "" };
                self.session.run(&format!("{undo} RELEASE statement"));
            }
            result
        });
        match &results {
            [Ok(cass), Ok(heap)] => assert_same_rows(sql, cass, heap),
            [cass, heap] => assert_eq!(cass, heap, "{sql}"),
        }
    }

    fn compare_all(&mut self) {
        let order = match self.schema.order[0] {
            "" => "t::text",
            order => order,
        };
        let read = |table: &str| format!("SELECT t::text FROM {table} t ORDER BY {order}");
        let [cass, heap] = TABLES.map(|table| self.session.rows(&read(table)));
        assert_same_rows("all rows", &cass, &heap);
    }

    fn row(&mut self) -> Vec<String> {
        let random = &mut self.random;
        self.schema.columns.iter().map(|column| (column.value)(random)).collect()
    }

    /// INSERT of whole rows. On the heap table each key is given once, as the last row of it is what an overwrite leaves.
    fn upsert(&mut self) {
        let count = *self.random.pick(&[1, 1, 3, 8, 40]);
        let mut rows: Vec<Vec<String>> = (0..count).map(|_| self.row()).collect();
        if count > 1 && self.random.chance(30) {
            rows.push(rows[0].clone());
        }
        let columns = names(&self.schema.columns);
        let list = |rows: &[Vec<String>]| {
            let rows: Vec<String> = rows.iter().map(|row| format!("({})", row.join(", "))).collect();
            rows.join(", ")
        };
        let returning = if self.random.chance(30) { " RETURNING {t}::text" } else { "" };
        let cass = self.on(TABLES[0], &format!("INSERT INTO {{t}} ({columns}) VALUES {}{returning}", list(&rows)));
        assert!(cass.is_ok(), "{cass:?}");
        if self.schema.key_columns > 0 {
            rows = self.last_of_each_key(rows);
        }
        let conflict = match self.schema.key_columns {
            0 => String::new(),
            _ => {
                let new: Vec<String> = self.schema.columns.iter().map(|c| format!("excluded.{}", c.name)).collect();
                let key = names(self.schema.key());
                format!("ON CONFLICT ({key}) DO UPDATE SET ({columns}) = ROW({})", new.join(", "))
            }
        };
        let heap =
            self.on(TABLES[1], &format!("INSERT INTO {{t}} ({columns}) VALUES {} {conflict}{returning}", list(&rows)));
        assert!(heap.is_ok(), "{heap:?}");
        if let (Ok(cass), Ok(heap)) = (cass, heap) {
            if cass.len() == heap.len() {
                let mut sorted = [cass, heap];
                sorted.iter_mut().for_each(|rows| rows.sort());
                assert_same_rows("RETURNING of INSERT", &sorted[0], &sorted[1]);
            }
        }
    }

    /// Which of the rows have the same key is asked of the server, whose `=` it is.
    fn last_of_each_key(&mut self, rows: Vec<Vec<String>>) -> Vec<Vec<String>> {
        let key_columns = self.schema.key_columns;
        let keys: Vec<String> =
            rows.iter().enumerate().map(|(i, row)| format!("({i}, {})", row[..key_columns].join(", "))).collect();
        let key: Vec<String> = (0..key_columns).map(|i| format!("column{}", i + 2)).collect();
        let sql =
            format!("SELECT max(column1) FROM (VALUES {}) v GROUP BY {} ORDER BY 1", keys.join(", "), key.join(", "));
        let last: BTreeMap<usize, ()> =
            self.session.rows(&sql).iter().filter_map(|n| Some((n.parse().ok()?, ()))).collect();
        rows.into_iter().enumerate().filter(|(i, _)| last.contains_key(i)).map(|(_, row)| row).collect()
    }

    /// INSERT that names the key and one column more: the others keep their values.
    fn insert_some_columns(&mut self) {
        if self.schema.key_columns == 0 {
            return self.upsert();
        }
        let row = self.row();
        let key_columns = self.schema.key_columns;
        let chosen = key_columns + self.random.below((row.len() - key_columns) as u64) as usize;
        let column = self.schema.columns[chosen].name;
        let key = names(self.schema.key());
        let insert =
            format!("INSERT INTO {{t}} ({key}, {column}) VALUES ({}, {})", row[..key_columns].join(", "), row[chosen]);
        let returning = "RETURNING {t}::text";
        let cass = self.on(TABLES[0], &format!("{insert} {returning}"));
        // A column with a default counts as named.
        let written = self.schema.columns.iter().enumerate();
        let written = written.filter(|(i, c)| *i < key_columns || *i == chosen || c.name == WITH_DEFAULT);
        let set: Vec<String> = written.map(|(_, c)| format!("{0} = excluded.{0}", c.name)).collect();
        let conflict = format!("ON CONFLICT ({key}) DO UPDATE SET {}", set.join(", "));
        let heap = self.on(TABLES[1], &format!("{insert} {conflict} {returning}"));
        assert_eq!(cass, heap, "{insert}");
    }

    /// A condition: on the whole key, on the partition, on a part of the partition, or on any column.
    fn condition(&mut self) -> String {
        let schema = &self.schema;
        let random = &mut self.random;
        let equal = |columns: &[Column], random: &mut Random| {
            let parts: Vec<String> = columns.iter().map(|c| format!("{} = {}", c.name, (c.value)(random))).collect();
            parts.join(" AND ")
        };
        let any = random.pick(schema.values());
        let filter = format!("{} {} {}", any.name, random.pick(&["=", "<", ">="]), (any.value)(random));
        match random.below(6) {
            _ if schema.key_columns == 0 => filter,
            0 | 1 => equal(schema.key(), random),
            2 => equal(schema.partition(), random),
            3 => match schema.key().get(schema.partition_columns) {
                Some(first) => format!(
                    "{} AND {} {} {}",
                    equal(schema.partition(), random),
                    first.name,
                    random.pick(&["<", "<=", ">", ">=", "="]),
                    (first.value)(random)
                ),
                None => equal(schema.partition(), random),
            },
            4 => {
                let first = &schema.key()[0];
                let list: Vec<String> = (0..3).map(|_| (first.value)(random)).collect();
                let rest = equal(&schema.partition()[1..], random);
                let rest = if rest.is_empty() { rest } else { format!(" AND {rest}") };
                format!("{} IN ({}){rest}", first.name, list.join(", "))
            }
            _ => filter,
        }
    }

    fn update(&mut self) {
        let condition = self.condition();
        let column = self.random.pick(self.schema.values());
        let value = (column.value)(&mut self.random);
        let update = format!("UPDATE {{t}} SET {} = {value} WHERE {condition}", column.name);
        let sql = match self.random.chance(30) {
            true => format!("WITH u AS ({update} RETURNING {{t}}::text AS r) SELECT r FROM u ORDER BY r"),
            false => update,
        };
        self.on_both(&sql);
    }

    /// Gives one row another key; an error on both tables if that key is taken.
    fn update_key(&mut self) {
        if self.schema.key_columns == 0 {
            return self.update();
        }
        let random = &mut self.random;
        let new: Vec<String> =
            self.schema.key().iter().map(|c| format!("{} = {}", c.name, (c.value)(random))).collect();
        let old: Vec<String> =
            self.schema.key().iter().map(|c| format!("{} = {}", c.name, (c.value)(random))).collect();
        self.on_both(&format!("UPDATE {{t}} SET {} WHERE {}", new.join(", "), old.join(" AND ")));
    }

    fn delete(&mut self) {
        let condition = self.condition();
        self.on_both(&format!("DELETE FROM {{t}} WHERE {condition}"));
    }

    fn transaction_control(&mut self) {
        let sql = if !self.in_transaction {
            self.savepoints = 0;
            self.in_transaction = true;
            self.random
                .pick(&["BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN ISOLATION LEVEL SERIALIZABLE"])
                .to_string()
        } else if self.random.chance(25) {
            self.in_transaction = false;
            self.random.pick(&["COMMIT", "COMMIT", "ROLLBACK"]).to_string()
        } else if self.savepoints == 0 || self.random.chance(50) {
            self.savepoints += 1;
            format!("SAVEPOINT s{}", self.savepoints)
        } else {
            let chosen = self.random.below(self.savepoints as u64) as usize + 1;
            self.savepoints = chosen - 1;
            if self.random.chance(60) {
                self.savepoints = chosen;
                format!("ROLLBACK TO s{chosen}")
            } else {
                format!("RELEASE s{chosen}")
            }
        };
        self.history.push(format!("{sql};"));
        self.session.run(&sql);
    }

    fn vacuum(&mut self) {
        let vacuum = self.random.pick(&["VACUUM", "VACUUM", "VACUUM ANALYZE", "VACUUM FREEZE"]);
        let sql = match self.in_transaction {
            false if self.random.chance(15) => "VACUUM FULL cass_twin".to_owned(),
            _ => format!("{vacuum} cass_twin"),
        };
        self.history.push(format!("{sql};  -- by another session"));
        self.other.run(&sql);
    }

    /// A column more, which old rows show with its default, and one less. Outside a transaction.
    fn change_columns(&mut self) {
        if self.in_transaction {
            self.in_transaction = false;
            self.history.push("COMMIT;".into());
            self.session.run("COMMIT");
        }
        self.on_both("ALTER TABLE {t} ADD COLUMN extra int DEFAULT 5, ADD COLUMN late text");
        let dropped = self.schema.columns.remove(self.schema.key_columns + 1);
        self.on_both(&format!("ALTER TABLE {{t}} DROP COLUMN {}", dropped.name));
        self.schema.columns.push(Column { name: WITH_DEFAULT, declared: "int", value: number });
    }

    fn read(&mut self) {
        let condition = self.condition();
        let [forward, backward] = self.schema.order;
        let order = if self.random.chance(50) { forward } else { backward };
        let any = self.random.pick(self.schema.values()).name;
        let sql = match self.random.below(7) {
            0 => format!("SELECT count(*), count({any}), max({any}::text) FROM {{t}} WHERE {condition}"),
            1 => format!("SELECT {any}::text, count(*) FROM {{t}} GROUP BY 1 ORDER BY 1"),
            2 if !order.is_empty() => {
                format!("SELECT t::text FROM {{t}} t WHERE {condition} ORDER BY {order} LIMIT {}", self.random.below(6))
            }
            3 if !order.is_empty() => {
                // A join by the whole partition key, with values from elsewhere.
                let (random, partition) = (&mut self.random, self.schema.partition());
                let row = |random: &mut Random| {
                    let values: Vec<String> =
                        partition.iter().map(|c| format!("{}::{}", (c.value)(random), c.declared)).collect();
                    format!("({})", values.join(", "))
                };
                let rows: Vec<String> = (0..3).map(|_| row(random)).collect();
                let names = names(partition);
                format!(
                    "SELECT t::text FROM (SELECT DISTINCT * FROM (VALUES {}) v ({names})) v JOIN {{t}} t USING ({names}) \
                     ORDER BY t::text",
                    rows.join(", ")
                )
            }
            4 if !order.is_empty() => format!("SELECT t::text FROM {{t}} t WHERE {condition} ORDER BY {order}"),
            5 => format!("SELECT t::text FROM {{t}} t WHERE {condition} AND EXISTS (SELECT FROM {{t}} u WHERE u.{any} = t.{any}) ORDER BY 1"),
            _ => format!("SELECT t::text FROM {{t}} t WHERE {condition} ORDER BY t::text"),
        };
        let plan = self.random.pick(&[
            "",
            "",
            "SET enable_seqscan = off",
            "SET enable_bitmapscan = off; SET enable_seqscan = off",
            PARALLEL,
        ]);
        self.session.run(plan);
        self.on_both(&sql);
        self.session.run(
            "RESET enable_seqscan; RESET enable_bitmapscan; RESET max_parallel_workers_per_gather; RESET parallel_setup_cost;
             RESET parallel_tuple_cost; RESET min_parallel_table_scan_size",
        );
    }
}
