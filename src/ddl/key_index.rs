//! The index of a cass table's primary key: what is checked as it is created, and what is stored with it.

use cass_storage::key::Order;
use pgrx::pg_sys::{self, Datum, Oid};
use pgrx::{IntoDatum, PgRelation};

use super::nodes;
use super::option_list;
use crate::catalog::identifier::{self, owned};
use crate::catalog::key_layout::KeyLayout;
use crate::catalog::options::{self, CLUSTERING_ORDER, NAMES, PARTITION_KEY};
use crate::catalog::primary_key::{self, with_index_row};
use crate::catalog::table::index_key_attnums;
use crate::error::Report;
use crate::types::KeyType;

/// Whether the option says how rows are placed and ordered.
pub(super) fn shapes_key(option: &str) -> bool {
    [PARTITION_KEY, CLUSTERING_ORDER].contains(&option)
}

/// Refuses what a primary key of a cass table cannot be.
pub(super) fn check_declaration(deferrable: bool, includes: bool) {
    if deferrable {
        Report::new("0A000", "the primary key of a cass table cannot be deferrable")
            .detail("A row is placed by its key as it is written.")
            .hint("Leave out DEFERRABLE.")
            .raise();
    }
    if includes {
        Report::new("0A000", "the primary key of a cass table cannot include other columns")
            .detail("Rows lie in the order of the key with all their columns.")
            .hint("Leave out INCLUDE.")
            .raise();
    }
}

/// Refuses a key column, by name, whose type no key can have. A name that is not a column's is left to PostgreSQL.
pub(super) fn check_named_column(table: Oid, column: &str) {
    let name = nodes::c_string(column);
    // SAFETY: catalog look-ups; a missing column has number 0.
    let type_oid = unsafe {
        match pg_sys::get_attnum(table, name) {
            0 => return,
            attnum => pg_sys::get_atttype(table, attnum),
        }
    };
    check_type(column, type_oid);
}

/// Refuses a type that no key column can have.
pub(super) fn check_type(column: &str, type_oid: Oid) {
    // SAFETY: a catalog look-up of an existing type.
    let base = unsafe { pg_sys::getBaseType(type_oid) };
    if KeyType::of(base).is_none() {
        // SAFETY: a catalog look-up; the result is a palloc'ed C string.
        let type_name = unsafe { owned(pg_sys::format_type_be(type_oid)) };
        Report::new("0A000", format!("column \"{column}\" of type {type_name} cannot be in the primary key of a cass table"))
            .detail("Its values cannot be hashed and ordered as Cassandra does.")
            .hint(
                "Key types are smallint, integer, bigint, text, varchar, uuid, timestamp, timestamptz, date, time, inet, bytea, \
                 boolean, real, double precision, numeric, timeuuid, varint and tinyint.",
            )
            .raise();
    }
}

/// Checks a new index of access method `cass_key`, and stores its options whole and its columns' order.
///
/// The catalogs must show the index to the current command.
pub(super) fn complete(index: Oid, table: Oid) {
    let Some((immediate, includes)) =
        with_index_row(index, |form| (form.indimmediate, form.indnatts > form.indnkeyatts))
    else {
        return;
    };
    check_declaration(!immediate, includes);
    let columns = column_names(index, table);
    let mut pairs = options::stored(index);
    let layout =
        KeyLayout::resolve(&columns, options::value(&pairs, PARTITION_KEY), options::value(&pairs, CLUSTERING_ORDER))
            .unwrap_or_else(|report| report.raise());
    check_columns(index, table, &layout);
    set_shape(&mut pairs, &layout, &columns);
    store_options(index, &pairs);
    store_order(index, &layout.orders);
}

/// Names of the key's columns, as they are now.
fn column_names(index: Oid, table: Oid) -> Vec<String> {
    index_key_attnums(index).into_iter().map(|attnum| primary_key::column_name(table, attnum)).collect()
}

/// Refuses key columns whose `=` is wider than what their bytes say.
fn check_columns(index: Oid, table: Oid, layout: &KeyLayout) {
    for (position, attnum) in index_key_attnums(index).into_iter().enumerate() {
        let (mut type_oid, mut typmod, mut collation) = (Oid::INVALID, -1, Oid::INVALID);
        // SAFETY: a catalog look-up of a column that the index names.
        let (base, deterministic) = unsafe {
            pg_sys::get_atttypetypmodcoll(table, attnum, &mut type_oid, &mut typmod, &mut collation);
            let base = pg_sys::getBaseTypeAndTypmod(type_oid, &mut typmod);
            (base, collation == Oid::INVALID || pg_sys::get_collation_isdeterministic(collation))
        };
        let column = primary_key::column_name(table, attnum);
        check_type(&column, type_oid);
        if !deterministic {
            Report::new("0A000", format!("collation of key column \"{column}\" is not deterministic"))
                .detail("It holds texts equal whose bytes differ, and a row is placed by its key's bytes.")
                .hint("Use a deterministic collation for the column, such as \"C\".")
                .raise();
        }
        if position < layout.partition_columns && base == pg_sys::NUMERICOID && typmod < 0 {
            Report::new("0A000", format!("partition column \"{column}\" of type numeric has no precision and scale"))
                .detail("1.0 and 1.00 are equal but have different tokens, so they would lie in different partitions.")
                .hint("Declare it as numeric(p, s), or as bigint or text.")
                .raise();
        }
    }
}

/// Writes the key's layout into its options, in the order in which they are shown.
fn set_shape(pairs: &mut Vec<(String, String)>, layout: &KeyLayout, columns: &[String]) {
    pairs.retain(|(name, _)| !shapes_key(name));
    pairs.push((PARTITION_KEY.into(), layout.partition_key(columns)));
    if let Some(order) = layout.clustering_order(columns) {
        pairs.push((CLUSTERING_ORDER.into(), order));
    }
    pairs.sort_by_key(|(name, _)| NAMES.iter().position(|known| known == name));
}

/// Refuses a change of options that would place or order the key's rows anew.
///
/// `changed` are the options to be set; those in `reset` go back to their defaults.
pub(super) fn check_change(index: Oid, table: Oid, changed: &[(String, String)], reset: &[String]) {
    if !changed.iter().map(|(name, _)| name).chain(reset).any(|name| shapes_key(name)) {
        return;
    }
    let columns = column_names(index, table);
    let stored = options::stored(index);
    let resolve = |partition_key, clustering_order| {
        KeyLayout::resolve(&columns, partition_key, clustering_order).unwrap_or_else(|report| report.raise())
    };
    let old = resolve(options::value(&stored, PARTITION_KEY), options::value(&stored, CLUSTERING_ORDER));
    let mut new = resolve(
        options::value(changed, PARTITION_KEY).or(options::value(&stored, PARTITION_KEY)),
        options::value(changed, CLUSTERING_ORDER),
    );
    if options::value(changed, CLUSTERING_ORDER).is_none() {
        for (order, old) in new.orders.iter_mut().zip(&old.orders).skip(new.partition_columns) {
            *order = *old;
        }
    }
    let resets_shape = reset.iter().any(|name| shapes_key(name));
    if old != new || resets_shape {
        let table = identifier::quote(&primary_key::relation_name(table));
        let mut pairs = Vec::new();
        set_shape(&mut pairs, &new, &columns);
        Report::new("0A000", "cannot change the partition key or the clustering order of a table in place")
            .detail("Every row would have to be placed anew.")
            .hint(format!(
                "Convert the table: ALTER TABLE {table} SET ACCESS METHOD heap; then ALTER TABLE {table} SET ACCESS METHOD cass,{};",
                option_list::to_sql("SET", &pairs)
            ))
            .raise();
    }
}

/// Writes the options anew after a column's renaming; the layout stays.
pub(super) fn follow_rename(index: Oid, table: Oid) {
    let columns = column_names(index, table);
    let mut pairs = options::stored(index);
    let partition_columns = options::value(&pairs, PARTITION_KEY)
        .and_then(|text| identifier::parse_list(text).ok())
        .map_or(1, |items| items.len());
    let orders = stored_order(index);
    set_shape(&mut pairs, &KeyLayout { partition_columns, orders }, &columns);
    store_options(index, &pairs);
}

/// The order of each key column, as pg_index has it.
fn stored_order(index: Oid) -> Vec<Order> {
    with_index_tuple(index, |tuple| {
        let mut is_null = false;
        // SAFETY: indoption is never null and not toasted; it has a member for each key column.
        let bits = unsafe {
            let datum = pg_sys::SysCacheGetAttr(
                pg_sys::SysCacheIdentifier::INDEXRELID as i32,
                tuple,
                pg_sys::Anum_pg_index_indoption as i16,
                &mut is_null,
            );
            let vector: *mut pg_sys::int2vector = datum.cast_mut_ptr();
            (*vector).values.as_slice((*vector).dim1 as usize).to_vec()
        };
        bits.into_iter()
            .map(|bits| if bits & pg_sys::INDOPTION_DESC as i16 == 0 { Order::Ascending } else { Order::Descending })
            .collect()
    })
    .unwrap_or_default()
}

/// Stores the order of each key column, so that `\d` shows it.
fn store_order(index: Oid, orders: &[Order]) {
    if stored_order(index) == orders {
        return;
    }
    let bits: Vec<i16> = orders
        .iter()
        .map(|order| match order {
            Order::Ascending => 0,
            // What DESC means in CREATE INDEX.
            Order::Descending => (pg_sys::INDOPTION_DESC | pg_sys::INDOPTION_NULLS_FIRST) as i16,
        })
        .collect();
    // SAFETY: copies the numbers.
    let vector = unsafe { pg_sys::buildint2vector(bits.as_ptr(), bits.len() as i32) };
    with_index_tuple(index, |tuple| {
        update(pg_sys::IndexRelationId, tuple, pg_sys::Anum_pg_index_indoption, Datum::from(vector));
    });
}

/// Stores a relation's reloptions.
fn store_options(index: Oid, pairs: &[(String, String)]) {
    if options::stored(index) == pairs {
        return;
    }
    let texts: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let Some(datum) = texts.into_datum() else {
        return;
    };
    // SAFETY: the tuple stays pinned until it is released, after its new version has been written.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::RELOID as i32, index.into());
        if !tuple.is_null() {
            update(pg_sys::RelationRelationId, tuple, pg_sys::Anum_pg_class_reloptions, datum);
            pg_sys::ReleaseSysCache(tuple);
        }
    }
}

fn with_index_tuple<R>(index: Oid, read: impl FnOnce(pg_sys::HeapTuple) -> R) -> Option<R> {
    // SAFETY: the tuple stays pinned until it is released.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::INDEXRELID as i32, index.into());
        if tuple.is_null() {
            return None;
        }
        let result = read(tuple);
        pg_sys::ReleaseSysCache(tuple);
        Some(result)
    }
}

/// Writes a new version of a catalog row with another value in one column, and shows it to what follows.
fn update(catalog: Oid, tuple: pg_sys::HeapTuple, column: u32, value: Datum) {
    // SAFETY: the tuple is a pinned row of this catalog; the arrays have a member for each of its columns.
    unsafe {
        let catalog = PgRelation::with_lock(catalog, pg_sys::RowExclusiveLock as i32);
        let descriptor = (*catalog.as_ptr()).rd_att;
        let count = (*descriptor).natts as usize;
        let mut values = vec![Datum::from(0); count];
        let mut nulls = vec![false; count];
        let mut replaced = vec![false; count];
        let position = column as usize - 1;
        if let (Some(slot), Some(flag)) = (values.get_mut(position), replaced.get_mut(position)) {
            *slot = value;
            *flag = true;
        }
        let new = pg_sys::heap_modify_tuple(
            tuple,
            descriptor,
            values.as_mut_ptr(),
            nulls.as_mut_ptr(),
            replaced.as_mut_ptr(),
        );
        pg_sys::CatalogTupleUpdate(catalog.as_ptr(), &mut (*new).t_self, new);
        pg_sys::CommandCounterIncrement();
    }
}
