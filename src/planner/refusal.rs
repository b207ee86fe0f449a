//! What a refused query is told, and what happens then.

use std::ffi::c_char;

use crate::catalog::identifier::quote_list;
use crate::catalog::{KeyColumn, TableKey};
use crate::error::Report;
use crate::settings::{on_refusal, OnRefusal};
use cass_storage::key::Order;

/// SQLSTATE: the partition key is not given.
pub const PARTITION_KEY: &str = "42K01";
/// SQLSTATE: clustering columns are not restricted from the first on.
pub const CLUSTERING: &str = "42K02";
/// SQLSTATE: an order that the table does not have.
pub const ORDER: &str = "42K03";

/// The table and statement that a message is about.
pub struct Context<'a> {
    /// Name of the table.
    pub table: String,
    pub key: &'a TableKey,
    /// Text of the statement, or null.
    pub source: *const c_char,
    /// Byte offset in it of the condition at fault; negative if unknown.
    pub location: i32,
}

/// What a query without the whole partition key says instead.
pub enum Instead {
    /// Conditions on these columns.
    Conditions(Vec<String>),
    /// Nothing; it is a SELECT.
    Nothing,
    /// Nothing; it is this command (UPDATE, DELETE).
    Command(&'static str),
}

impl Context<'_> {
    /// Message A: the whole partition key is not given; `missing` are its columns without "=" or IN.
    pub fn partition_key(&self, missing: &[&str], instead: &Instead) -> Report {
        let partition = names(self.key.partition());
        let missing = quote_list(missing.iter().copied());
        let hint = match instead {
            Instead::Conditions(columns) => {
                let columns = quote_list(columns.iter().map(String::as_str));
                format!(
                    "Add a condition on {missing}; or create an index on ({columns}), or a table whose partition key \
                     is ({columns}). To read the whole table once, add AND cass_allow_filtering() (ALLOW FILTERING in \
                     CQL)."
                )
            }
            Instead::Nothing => format!(
                "Add a condition on {missing}. To read the whole table once, add WHERE cass_allow_filtering() (ALLOW \
                 FILTERING in CQL)."
            ),
            Instead::Command("DELETE") => format!(
                "Add a condition on {missing}. To delete every row, use TRUNCATE, or add WHERE cass_allow_filtering()."
            ),
            Instead::Command(command) => format!(
                "Add a condition on {missing}. To empty a table, use TRUNCATE; to {} every row, add WHERE \
                 cass_allow_filtering().",
                command.to_lowercase()
            ),
        };
        Report::new(PARTITION_KEY, format!("query does not supply the whole partition key of table \"{}\"", self.table))
            .detail(format!("The partition key is ({partition}). No \"=\" or IN condition was found for {missing}."))
            .hint(hint)
    }

    /// Message B: `column` is restricted though `before`, a clustering column before it, is not restricted by "=".
    pub fn clustering(&self, column: &str, before: &str) -> Report {
        Report::new(
            CLUSTERING,
            format!(
                "clustering column \"{column}\" cannot be restricted, because \"{before}\" before it is not restricted \
                 by \"=\""
            ),
        )
        .detail(self.clustering_detail())
        .hint(format!("Restrict {} by \"=\" or IN, or add AND cass_allow_filtering().", quote_list([before])))
    }

    /// The clustering columns and what follows from them.
    pub fn clustering_detail(&self) -> String {
        format!(
            "The clustering columns of \"{}\" are ({}); a partition is read as one contiguous slice.",
            self.table,
            ordered_names(self.key.clustering())
        )
    }

    /// Does to the query what `cass.on_refusal` says. Returns unless that is `error`.
    pub fn issue(&self, report: Report) {
        // SAFETY: `source` is null or the text of the statement that is being planned.
        let report = unsafe { report.location(self.source, self.location) };
        match on_refusal() {
            OnRefusal::Error => report.raise(),
            OnRefusal::Warning => report.warn(),
            OnRefusal::Log => report.log(),
        }
    }
}

/// Column names as a list in SQL.
pub fn names(columns: &[KeyColumn]) -> String {
    quote_list(columns.iter().map(|column| column.name.as_str()))
}

/// Column names as a list in SQL, with DESC where it was declared.
pub fn ordered_names(columns: &[KeyColumn]) -> String {
    let item = |column: &KeyColumn| {
        let name = quote_list([column.name.as_str()]);
        match column.order {
            Order::Ascending => name,
            Order::Descending => format!("{name} DESC"),
        }
    };
    columns.iter().map(item).collect::<Vec<_>>().join(", ")
}
