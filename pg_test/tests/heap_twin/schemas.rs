//! The tables that the twins are made of.

use cass_server_tests::Random;

/// A column and its random values, as SQL.
pub struct Column {
    pub name: &'static str,
    pub declared: &'static str,
    pub value: fn(&mut Random) -> String,
}

/// A table. Its first columns are the key, of these the first ones the partition key.
pub struct Schema {
    pub columns: Vec<Column>,
    pub partition_columns: usize,
    pub key_columns: usize,
    /// Options of the cass table.
    pub options: &'static str,
    /// The order of rows, as ORDER BY takes it, and its reverse; empty for a table without a key.
    pub order: [&'static str; 2],
    /// Index statements; `{t}` is the table, `{n}` its name as a part of the index's.
    pub indexes: &'static [&'static str],
}

impl Schema {
    pub fn key(&self) -> &[Column] {
        &self.columns[..self.key_columns]
    }

    pub fn partition(&self) -> &[Column] {
        &self.columns[..self.partition_columns]
    }

    pub fn values(&self) -> &[Column] {
        &self.columns[self.key_columns..]
    }
}

fn column(name: &'static str, declared: &'static str, value: fn(&mut Random) -> String) -> Column {
    Column { name, declared, value }
}

/// A small number, NULL now and then.
pub fn number(random: &mut Random) -> String {
    match random.chance(15) {
        true => "NULL".into(),
        false => random.below(10).to_string(),
    }
}

/// Text: short, empty, NULL, or so long that it is stored out of line.
fn text(random: &mut Random) -> String {
    match random.below(12) {
        0 => "NULL".into(),
        1 => "''".into(),
        2 => format!(
            "(SELECT string_agg(md5((g * {})::text), '') FROM generate_series(1, 300) g)",
            random.below(1000) + 1
        ),
        _ => format!("'w{}'", random.below(8)),
    }
}

pub fn readings() -> Schema {
    Schema {
        columns: vec![
            column("sensor", "text", |r| format!("'{}'", r.pick(&["s1", "s2", "S10", "ä", ""]))),
            column("day", "date", |r| format!("'2026-09-0{}'::date", r.below(3) + 1)),
            column("ts", "timestamptz", |r| format!("'2026-09-01 00:00:00.00{}+00'::timestamptz", r.below(40) * 53)),
            column("value", "float8", |r| format!("{}.5", r.below(20))),
            column("status", "text", text),
        ],
        partition_columns: 2,
        key_columns: 3,
        options: "WITH (partition_key = 'sensor, day', clustering_order = 'ts DESC')",
        order: ["sensor, day, ts DESC", "sensor DESC, day DESC, ts"],
        indexes: &[],
    }
}

pub fn members() -> Schema {
    Schema {
        columns: vec![
            column("id", "int", |r| format!("{}", r.below(12) as i64 - 6)),
            column("member", "uuid", |r| {
                format!("'00000000-0000-0000-{:04x}-00000000000{}'::uuid", r.below(2) * 0xff00, r.below(10))
            }),
            column("n", "int", number),
            column("note", "text", text),
            column("big", "bigint", |r| format!("{}::bigint", r.below(1 << 50))),
        ],
        partition_columns: 1,
        key_columns: 2,
        options: "",
        order: ["id, member", "id DESC, member DESC"],
        indexes: &[],
    }
}

pub fn unplaced() -> Schema {
    Schema {
        columns: vec![
            column("n", "int", number),
            column("word", "text", text),
            column("flag", "boolean", |r| r.pick(&["true", "false", "NULL"]).to_string()),
        ],
        partition_columns: 0,
        key_columns: 0,
        options: "",
        order: ["", ""],
        indexes: &[],
    }
}

pub fn indexed() -> Schema {
    Schema {
        columns: vec![
            column("id", "bigint", |r| r.below(60).to_string()),
            column("n", "int", number),
            column("word", "text", text),
            column("tags", "int[]", |r| format!("ARRAY[{}, {}]", r.below(5), r.below(5))),
        ],
        partition_columns: 1,
        key_columns: 1,
        options: "",
        order: ["id", "id DESC"],
        indexes: &[
            "CREATE INDEX {n}_n ON {t} (n)",
            "CREATE INDEX {n}_word ON {t} USING hash (word)",
            "CREATE INDEX {n}_tags ON {t} USING gin (tags)",
            "CREATE INDEX {n}_part ON {t} (n, id) WHERE n > 4",
        ],
    }
}

pub fn ledger() -> Schema {
    Schema {
        columns: vec![
            column("account", "numeric(8,2)", |r| format!("{}.{}", r.below(5) as i64 - 2, r.below(2) * 5)),
            // Equal numbers of different scale are one key.
            column("entry", "numeric", |r| {
                format!("{}{}", r.pick(&["1", "1.0", "-1", "10.50", "10.5", "1e20", "1e-5", "'NaN'"]), "::numeric")
            }),
            column("booked", "date", |r| format!("'2026-01-1{}'::date", r.below(4))),
            column("amount", "numeric", |r| format!("{}.{}", r.below(100) as i64 - 50, r.below(1000))),
            column("n", "int", number),
        ],
        partition_columns: 1,
        key_columns: 3,
        options: "WITH (clustering_order = 'entry DESC, booked')",
        order: ["account, entry DESC, booked", "account DESC, entry, booked DESC"],
        indexes: &["CREATE INDEX {n}_amount ON {t} (amount, booked)"],
    }
}
