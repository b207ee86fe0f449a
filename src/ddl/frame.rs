//! What the hooks tell each other while a statement runs.

use std::cell::RefCell;

use pgrx::pg_sys::Oid;

use crate::catalog::{self, primary_key};
use crate::error::Report;

/// The statement being run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statement {
    /// CREATE TABLE, CREATE TABLE AS.
    CreateTable,
    /// REINDEX CONCURRENTLY, which makes a second index for a while.
    ReindexConcurrently,
    /// One that may drop or alter tables.
    Other,
}

/// A running statement.
struct Frame {
    statement: Statement,
    /// The cass table it has created.
    created: Option<Oid>,
    /// Options given to the table, until its primary key takes them.
    options: Vec<(String, String)>,
    /// Tables that have lost their `cass_key` index.
    lost_keys: Vec<Oid>,
}

thread_local! {
    static FRAMES: RefCell<Vec<Frame>> = const { RefCell::new(Vec::new()) };
}

/// Takes the frame off when the statement ends, by an error too.
struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        FRAMES.with_borrow_mut(Vec::pop);
    }
}

/// What a statement has left behind.
pub struct Outcome {
    /// The cass table it has created.
    pub created: Option<Oid>,
    /// Options that no primary key has taken.
    pub options: Vec<(String, String)>,
}

/// Runs a statement; a cass table that has lost its primary key at its end is an error.
pub fn run(statement: Statement, options: Vec<(String, String)>, call: impl FnOnce()) -> Outcome {
    FRAMES.with_borrow_mut(|frames| {
        frames.push(Frame {
            statement,
            created: None,
            options,
            lost_keys: Vec::new(),
        });
    });
    let guard = Guard;
    call();
    let outcome = with_top(|frame| {
        (
            Outcome {
                created: frame.created,
                options: std::mem::take(&mut frame.options),
            },
            std::mem::take(&mut frame.lost_keys),
        )
    });
    drop(guard);
    let Some((outcome, lost_keys)) = outcome else {
        return Outcome {
            created: None,
            options: Vec::new(),
        };
    };
    for table in lost_keys {
        if catalog::is_cass_oid(table) && primary_key::primary_key_of(table).is_none() {
            refuse_dropped_key(table);
        }
    }
    outcome
}

/// The error of a statement that would leave a cass table without its primary key.
pub fn refuse_dropped_key(table: Oid) -> ! {
    Report::new("0A000", format!("cannot drop the primary key of table \"{}\"", primary_key::relation_name(table)))
        .detail("The rows of a cass table lie in the order of its primary key.")
        .hint("To give the table another key, convert it: ALTER TABLE ... SET ACCESS METHOD heap, then back with the new key.")
        .raise()
}

fn with_top<R>(read: impl FnOnce(&mut Frame) -> R) -> Option<R> {
    FRAMES.with_borrow_mut(|frames| frames.last_mut().map(read))
}

/// Notes that the running statement has created a cass table.
pub fn note_created(table: Oid) {
    with_top(|frame| {
        if frame.statement == Statement::CreateTable && frame.created.is_none() {
            frame.created = Some(table);
        }
    });
}

/// Notes that a table has lost its `cass_key` index.
pub fn note_lost_key(table: Oid) {
    with_top(|frame| frame.lost_keys.push(table));
}

/// Takes the options that the running CREATE TABLE gives to its table.
pub fn take_options(table: Oid) -> Vec<(String, String)> {
    with_top(|frame| {
        if frame.created == Some(table) {
            std::mem::take(&mut frame.options)
        } else {
            Vec::new()
        }
    })
    .unwrap_or_default()
}

/// Whether REINDEX CONCURRENTLY runs.
pub fn in_reindex() -> bool {
    with_top(|frame| frame.statement == Statement::ReindexConcurrently).unwrap_or(false)
}
