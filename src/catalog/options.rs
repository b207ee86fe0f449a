//! Options of a cass table, kept as the reloptions of its primary key's index.

use pgrx::pg_sys::{self, Oid};
use pgrx::PgList;

use super::identifier::owned;

/// Names of the options of a cass table, in the order in which they are shown.
pub const NAMES: [&str; 5] = [PARTITION_KEY, CLUSTERING_ORDER, DEFAULT_TIME_TO_LIVE, COMPACTION, INSERT];

/// Leading columns of the primary key that place a row: a list of SQL identifiers.
pub const PARTITION_KEY: &str = "partition_key";
/// Order of rows within a partition: a list of SQL identifiers, each with ASC or DESC.
pub const CLUSTERING_ORDER: &str = "clustering_order";
/// Seconds until a row expires; 0 is never.
pub const DEFAULT_TIME_TO_LIVE: &str = "default_time_to_live";
/// Which segments VACUUM merges.
pub const COMPACTION: &str = "compaction";
/// What an INSERT that names some columns does to the others of an existing row.
pub const INSERT: &str = "insert";

/// Which segments VACUUM merges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compaction {
    /// By size, with a bounded number of segments.
    #[default]
    Unified,
}

impl Compaction {
    /// The policy of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        (name == "unified").then_some(Self::Unified)
    }
}

/// What an INSERT that names some columns does to the others of a row that exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InsertMode {
    /// Keeps them, as Cassandra does.
    #[default]
    Cells,
    /// Gives them their defaults: the new row replaces the old.
    Row,
}

impl InsertMode {
    /// The mode of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "cells" => Some(Self::Cells),
            "row" => Some(Self::Row),
            _ => None,
        }
    }
}

/// The options that do not shape the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableOptions {
    /// Seconds until a row expires; 0 is never.
    pub default_time_to_live: i32,
    /// Which segments VACUUM merges.
    pub compaction: Compaction,
    /// What an INSERT that names some columns does to the others.
    pub insert: InsertMode,
}

impl TableOptions {
    /// The options in these names and values, defaults for what they do not name.
    pub fn from_pairs(pairs: &[(String, String)]) -> Self {
        Self {
            default_time_to_live: value(pairs, DEFAULT_TIME_TO_LIVE).and_then(|v| v.parse().ok()).unwrap_or_default(),
            compaction: value(pairs, COMPACTION).and_then(Compaction::from_name).unwrap_or_default(),
            insert: value(pairs, INSERT).and_then(InsertMode::from_name).unwrap_or_default(),
        }
    }
}

/// The value of the option of this name.
pub fn value<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    pairs.iter().find(|(option, _)| option == name).map(|(_, value)| value.as_str())
}

/// Names and values of a relation's reloptions, as they are stored.
pub fn stored(relid: Oid) -> Vec<(String, String)> {
    // SAFETY: the tuple stays pinned while its attribute is read; untransformRelOptions copies into a new list of
    // DefElem, whose arguments are String nodes.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::RELOID as i32, relid.into());
        if tuple.is_null() {
            return Vec::new();
        }
        let mut is_null = false;
        let datum = pg_sys::SysCacheGetAttr(
            pg_sys::SysCacheIdentifier::RELOID as i32,
            tuple,
            pg_sys::Anum_pg_class_reloptions as i16,
            &mut is_null,
        );
        let pairs = if is_null { Vec::new() } else { pairs_of(pg_sys::untransformRelOptions(datum)) };
        pg_sys::ReleaseSysCache(tuple);
        pairs
    }
}

/// Names and values of a list of options.
///
/// # Safety
/// `list` is a list of DefElem.
pub unsafe fn pairs_of(list: *mut pg_sys::List) -> Vec<(String, String)> {
    // SAFETY: the caller vouches for the list; defGetString reads any kind of argument.
    unsafe {
        PgList::<pg_sys::DefElem>::from_pg(list)
            .iter_ptr()
            .map(|option| {
                let value = if (*option).arg.is_null() { "true".into() } else { owned(pg_sys::defGetString(option)) };
                (owned((*option).defname), value)
            })
            .collect()
    }
}
