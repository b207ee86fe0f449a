//! How the columns of a primary key are used: which place a row on the ring, which order it within its partition.

use cass_storage::key::Order;

use super::identifier::{self, Item};
use crate::error::Report;

/// The layout that the options `partition_key` and `clustering_order` give to a primary key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyLayout {
    /// Number of leading key columns that make up the partition key; at least 1.
    pub partition_columns: usize,
    /// Order of each column of the primary key; partition columns are ascending.
    pub orders: Vec<Order>,
}

impl KeyLayout {
    /// Reads the options of a primary key of these columns, in key order.
    ///
    /// Without `partition_key` the first column alone is the partition key, and a clustering column that
    /// `clustering_order` does not name is ascending, as in CQL.
    pub fn resolve(
        columns: &[String],
        partition_key: Option<&str>,
        clustering_order: Option<&str>,
    ) -> Result<Self, Report> {
        let partition_columns = match partition_key {
            Some(text) => partition_columns(columns, text)?,
            None => 1,
        };
        let mut orders = vec![Order::Ascending; columns.len()];
        if let Some(text) = clustering_order {
            set_orders(columns, partition_columns, text, &mut orders)?;
        }
        Ok(Self { partition_columns, orders })
    }

    /// The value of option `partition_key` that says this.
    pub fn partition_key(&self, columns: &[String]) -> String {
        identifier::quote_list(columns.iter().take(self.partition_columns).map(String::as_str))
    }

    /// The value of option `clustering_order` that says this; `None` if there are no clustering columns.
    pub fn clustering_order(&self, columns: &[String]) -> Option<String> {
        let parts: Vec<String> = columns
            .iter()
            .zip(&self.orders)
            .skip(self.partition_columns)
            .map(|(name, order)| format!("{} {}", identifier::quote(name), order_word(*order)))
            .collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

fn order_word(order: Order) -> &'static str {
    match order {
        Order::Ascending => "ASC",
        Order::Descending => "DESC",
    }
}

fn parse(option: &str, text: &str) -> Result<Vec<Item>, Report> {
    identifier::parse_list(text).map_err(|reason| {
        Report::new("22023", format!("invalid value for option \"{option}\": \"{text}\""))
            .detail(format!("The value cannot be read as a list of column names: {reason}."))
            .hint("Write column names separated by commas, as in SQL.")
    })
}

/// Number of key columns that the value of `partition_key` names; it must name the leading ones, in key order.
fn partition_columns(columns: &[String], text: &str) -> Result<usize, Report> {
    let items = parse("partition_key", text)?;
    for (position, item) in items.iter().enumerate() {
        if !item.suffix.is_empty() {
            return Err(Report::new("22023", format!("invalid value for option \"partition_key\": \"{text}\""))
                .detail(format!("\"{}\" follows column \"{}\".", item.suffix, item.name))
                .hint("A partition key has no order. The order of clustering columns is option clustering_order."));
        }
        if items.iter().take(position).any(|earlier| earlier.name == item.name) {
            return Err(Report::new("42701", format!("column \"{}\" appears twice in partition_key", item.name)));
        }
        if columns.get(position) != Some(&item.name) {
            return Err(Report::new("42P16", "partition_key does not name the leading columns of the primary key")
                .detail(format!(
                    "partition_key is ({}) and the primary key is ({}).",
                    identifier::quote_list(items.iter().map(|item| item.name.as_str())),
                    identifier::quote_list(columns.iter().map(String::as_str)),
                ))
                .hint(if columns.contains(&item.name) {
                    "Declare the primary key with the partition columns first, and name them in the same order."
                } else {
                    "Name only columns of the primary key, beginning with its first."
                }));
        }
    }
    Ok(items.len())
}

/// Applies the value of `clustering_order`, which names clustering columns in key order.
fn set_orders(columns: &[String], partition_columns: usize, text: &str, orders: &mut [Order]) -> Result<(), Report> {
    let items = parse("clustering_order", text)?;
    let clustering = || match columns.get(partition_columns..) {
        Some(names @ [_, ..]) => {
            let names = identifier::quote_list(names.iter().map(String::as_str));
            format!("The clustering columns are ({names}).")
        }
        _ => "The primary key has no clustering columns.".into(),
    };
    let mut next = partition_columns;
    for item in &items {
        let order = match item.suffix.as_str() {
            "" | "asc" => Order::Ascending,
            "desc" => Order::Descending,
            other => {
                return Err(Report::new("22023", format!("invalid value for option \"clustering_order\": \"{text}\""))
                    .detail(format!("\"{other}\" follows column \"{}\".", item.name))
                    .hint("Write ASC or DESC after a column's name."))
            }
        };
        let Some(position) = columns.iter().position(|name| *name == item.name) else {
            return Err(Report::new(
                "42P16",
                format!("clustering_order names \"{}\", which is not a clustering column", item.name),
            )
            .detail(clustering())
            .hint("Name only columns of the primary key that are not in partition_key."));
        };
        if position < partition_columns {
            return Err(Report::new(
                "42P16",
                format!("clustering_order names \"{}\", which is in the partition key", item.name),
            )
            .detail(clustering())
            .hint("Partitions lie in token order; only clustering columns have an order of their own."));
        }
        if position < next {
            return Err(Report::new("42P16", "clustering_order does not follow the order of the primary key")
                .detail(clustering())
                .hint("Name each clustering column at most once, in the order of the primary key."));
        }
        if let Some(slot) = orders.get_mut(position) {
            *slot = order;
        }
        next = position + 1;
    }
    Ok(())
}
