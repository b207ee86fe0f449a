//! The planner's hooks: which queries of cass tables are refused, and which paths read them.
//!
//! `statement` reads a statement before it is simplified, `verdict` judges each table's read when its paths are made,
//! `cql` adds Cassandra's own rules, `refusal` has the messages, `exemption` says who is never refused, `hooks` ties
//! them to the planner. `index_build` keeps workers out of the building of indexes.

mod cql;
mod exemption;
mod hooks;
mod index_build;
mod known_functions;
mod parameters;
mod refusal;
mod scopes;
mod statement;
mod token_types;
mod verdict;

use std::rc::Rc;

use pgrx::pg_sys::{self, Oid};

use crate::catalog::{table_of, TableKey};

pub use hooks::refuse_chosen;
pub use known_functions::{known_function, KnownFunction};

/// Installs the hooks. Called once a process from `_PG_init`.
pub fn init() {
    known_functions::init();
    hooks::init();
    index_build::init();
}

/// The primary key of a table that the statement being planned has locked; `None` for one whose rows are unplaced.
pub fn key_of(relation: Oid) -> Option<Rc<TableKey>> {
    // SAFETY: the relation is locked, so it exists; the reference is given back.
    unsafe {
        let rel = pg_sys::RelationIdGetRelation(relation);
        if rel.is_null() {
            return None;
        }
        let key = table_of(rel).key.clone();
        pg_sys::RelationClose(rel);
        key
    }
}
