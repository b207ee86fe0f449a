//! What is known of a cass table: key, columns, options; read from the catalogs once and kept while they stand.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use cass_storage::segment::ColumnClass;
use pgrx::pg_sys::{self, Oid};
use pgrx::{pg_guard, PgRelation};

use super::access_method::{cass_key_am_oid, with_class_row};
use super::key_layout::KeyLayout;
use super::options::{self, TableOptions};
use super::table_key::{KeyColumn, TableKey};
use crate::error::Report;
use crate::pg::versions::{descriptors, tables};

/// A column of a cass table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its number, from 1.
    pub attnum: u16,
    /// Whether it has been dropped; its other fields but the length mean nothing then.
    pub dropped: bool,
    /// Length of its values in bytes; -1 for varlena, -2 for C strings.
    pub type_len: i16,
    /// Whether a value is kept in the Datum itself.
    pub by_value: bool,
    /// How a segment encodes its values.
    pub class: ColumnClass,
    /// Whether the key's bytes give its value back, so that rows do not store it again.
    pub in_key: bool,
}

/// A cass table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its primary key; `None` while rows are kept unplaced.
    pub key: Option<Rc<TableKey>>,
    /// Its columns by number less 1, dropped ones included.
    pub columns: Vec<Column>,
    /// Its options; defaults without a primary key, which carries them.
    pub options: TableOptions,
}

thread_local! {
    static TABLES: RefCell<HashMap<Oid, Rc<Table>>> = RefCell::new(HashMap::new());
    /// Counts invalidations, so that nothing is kept that was read before one.
    static GENERATION: Cell<u64> = const { Cell::new(0) };
}

/// Registers the callback that forgets what catalog changes make stale.
pub(super) fn init() {
    // SAFETY: called once a process from _PG_init; the callback is a static function.
    unsafe { pg_sys::CacheRegisterRelcacheCallback(Some(forget), pg_sys::Datum::from(0)) };
}

/// Relcache callback: drops the table of this OID, or whose key's index has it; all for an invalid OID.
#[pg_guard]
unsafe extern "C-unwind" fn forget(_argument: pg_sys::Datum, relid: Oid) {
    GENERATION.set(GENERATION.get().wrapping_add(1));
    TABLES.with_borrow_mut(|tables| {
        if relid == Oid::INVALID {
            tables.clear();
        } else {
            tables
                .retain(|table, entry| *table != relid && entry.key.as_ref().is_none_or(|key| key.index_oid != relid));
        }
    });
}

/// What the catalogs say of an open cass table.
///
/// For a transient table, which a rewrite fills (`relrewrite`), the key is that of the table being rewritten.
///
/// # Safety
/// `rel` is an open relation of access method `cass`, under a lock that holds off changes of its definition.
pub unsafe fn table_of(rel: pg_sys::Relation) -> Rc<Table> {
    // SAFETY: the caller vouches for `rel`.
    let relid = unsafe { (*rel).rd_id };
    if let Some(table) = TABLES.with_borrow(|tables| tables.get(&relid).cloned()) {
        return table;
    }
    let generation = GENERATION.get();
    // SAFETY: the caller vouches for `rel`.
    let table = Rc::new(unsafe { read(rel) });
    if generation == GENERATION.get() {
        TABLES.with_borrow_mut(|tables| tables.insert(relid, Rc::clone(&table)));
    }
    table
}

/// Reads the catalogs.
///
/// # Safety
/// As [`table_of`].
unsafe fn read(rel: pg_sys::Relation) -> Table {
    // SAFETY: the caller vouches for `rel`, whose descriptor and pg_class row live while it is open.
    unsafe {
        let original = (*(*rel).rd_rel).relrewrite;
        let index = if original == Oid::INVALID {
            primary_key_index(rel)
        } else {
            // The statement that rewrites the table holds its lock.
            let original = PgRelation::with_lock(original, pg_sys::NoLock as i32);
            primary_key_index(original.as_ptr())
        };
        let (key, options) = match index {
            Some(index) => {
                let pairs = options::stored(index);
                let key = read_key(rel, index, &pairs);
                (Some(Rc::new(key)), TableOptions::from_pairs(&pairs))
            }
            None => (None, TableOptions::default()),
        };
        let attributes = descriptors::attributes((*rel).rd_att);
        let columns = attributes.iter().map(|attribute| column_of(attribute, key.as_deref())).collect();
        Table { key, columns, options }
    }
}

/// The `cass_key` index that is the table's primary key.
///
/// # Safety
/// `rel` is an open relation.
unsafe fn primary_key_index(rel: pg_sys::Relation) -> Option<Oid> {
    // SAFETY: the caller vouches for `rel`.
    let index = unsafe { tables::primary_key_index(rel) };
    if index == Oid::INVALID {
        return None;
    }
    let cass_key = cass_key_am_oid()?;
    with_class_row(index, |form| form.relam == cass_key).unwrap_or(false).then_some(index)
}

/// Numbers of an index's key columns, in key order.
pub fn index_key_attnums(index: Oid) -> Vec<i16> {
    // SAFETY: the tuple stays pinned until released; indkey has indnatts members and is not toasted.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::INDEXRELID as i32, index.into());
        if tuple.is_null() {
            return Vec::new();
        }
        let form: *mut pg_sys::FormData_pg_index = pg_sys::GETSTRUCT(tuple).cast();
        let attnums = (*form).indkey.values.as_slice((*form).indnkeyatts as usize).to_vec();
        pg_sys::ReleaseSysCache(tuple);
        attnums
    }
}

/// The primary key that an index declares over the columns of a table.
///
/// # Safety
/// `rel` is an open relation.
unsafe fn read_key(rel: pg_sys::Relation, index: Oid, pairs: &[(String, String)]) -> TableKey {
    // SAFETY: the caller vouches for `rel`.
    let attributes = unsafe { descriptors::attributes((*rel).rd_att) };
    let mut columns = Vec::new();
    for attnum in index_key_attnums(index) {
        let attribute = usize::try_from(attnum).ok().and_then(|number| attributes.get(number.checked_sub(1)?));
        let Some(column) = attribute.and_then(KeyColumn::of) else {
            Report::new("XX002", format!("index {} does not describe a key of its table", index.to_u32())).raise();
        };
        columns.push(column);
    }
    let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    let layout = KeyLayout::resolve(
        &names,
        options::value(pairs, options::PARTITION_KEY),
        options::value(pairs, options::CLUSTERING_ORDER),
    )
    .unwrap_or_else(|report| report.raise());
    TableKey::new(index, columns, &layout)
}

fn column_of(attribute: &pg_sys::FormData_pg_attribute, key: Option<&TableKey>) -> Column {
    let in_key = key.is_some_and(|key| {
        key.columns.iter().any(|column| column.attnum == attribute.attnum && column.key_type.is_exact())
    });
    Column {
        attnum: attribute.attnum.unsigned_abs(),
        dropped: attribute.attisdropped,
        type_len: attribute.attlen,
        by_value: attribute.attbyval,
        class: class_of(attribute),
        in_key: in_key && !attribute.attisdropped,
    }
}

/// How a segment encodes the column's values.
fn class_of(attribute: &pg_sys::FormData_pg_attribute) -> ColumnClass {
    match (attribute.attlen, attribute.attbyval) {
        (4, true) if attribute.atttypid == pg_sys::FLOAT4OID => ColumnClass::Float4,
        (8, true) if attribute.atttypid == pg_sys::FLOAT8OID => ColumnClass::Float8,
        (1, true) => ColumnClass::Int1,
        (2, true) => ColumnClass::Int2,
        (4, true) => ColumnClass::Int4,
        (8, true) => ColumnClass::Int8,
        (length, _) => u16::try_from(length).map_or(ColumnClass::Bytes, ColumnClass::Fixed),
    }
}
