//! What the hooks tell each other while a statement runs.

use std::cell::RefCell;

use pgrx::pg_sys::{self, Oid};

use crate::catalog::{self, primary_key};
use crate::error::Report;
use crate::pg::transaction::when_aborted;

/// The statement being run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statement {
    /// CREATE TABLE, CREATE TABLE AS.
    CreateTable,
    /// REINDEX CONCURRENTLY, which makes a second index for a while.
    ReindexConcurrently,
    /// ALTER TABLE of a cass table.
    AlterTable,
    /// Another that may drop or alter tables.
    Other,
}

/// What is done when a statement has been run.
type AfterWork = Box<dyn FnOnce(Outcome)>;

/// A running statement.
struct Frame {
    statement: Statement,
    /// The cass table it has created.
    created: Option<Oid>,
    /// Options given to the table, until its primary key takes them.
    options: Vec<(String, String)>,
    /// Tables that have lost their `cass_key` index.
    lost_keys: Vec<Oid>,
    /// What is left to do when it has been run.
    after: Option<AfterWork>,
    /// Nesting level of the (sub)transaction it runs in; an abort of that takes the frame away.
    transaction_level: i32,
}

thread_local! {
    static FRAMES: RefCell<Vec<Frame>> = const { RefCell::new(Vec::new()) };
}

/// What a statement has left behind.
pub struct Outcome {
    /// The cass table it has created.
    pub created: Option<Oid>,
    /// Options that no primary key has taken.
    pub options: Vec<(String, String)>,
}

/// Lets aborted transactions take away the frames of statements that have failed.
pub(super) fn init() {
    when_aborted(|level| FRAMES.with_borrow_mut(|frames| frames.retain(|frame| frame.transaction_level < level)));
}

/// Begins a statement with the options that it gives to the table it creates; [`finish`] ends it.
pub fn begin(statement: Statement, options: Vec<(String, String)>, after: impl FnOnce(Outcome) + 'static) {
    // SAFETY: reads the state of the current transaction.
    let transaction_level = unsafe { pg_sys::GetCurrentTransactionNestLevel() };
    FRAMES.with_borrow_mut(|frames| {
        frames.push(Frame {
            statement,
            created: None,
            options,
            lost_keys: Vec::new(),
            after: Some(Box::new(after)),
            transaction_level,
        });
    });
}

/// Ends a statement that has been run; a cass table that has lost its primary key at its end is an error.
pub fn finish() {
    let ended = with_top(|frame| {
        let outcome = Outcome { created: frame.created, options: std::mem::take(&mut frame.options) };
        (outcome, frame.after.take())
    });
    if let Some((outcome, Some(after))) = ended {
        after(outcome);
    }
    let lost_keys = FRAMES.with_borrow_mut(Vec::pop).map_or_else(Vec::new, |frame| frame.lost_keys);
    for table in lost_keys {
        if catalog::is_cass_oid(table) && primary_key::primary_key_of(table).is_none() {
            refuse_dropped_key(table);
        }
    }
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
    with_top(|frame| if frame.created == Some(table) { std::mem::take(&mut frame.options) } else { Vec::new() })
        .unwrap_or_default()
}

/// Whether REINDEX CONCURRENTLY runs.
pub fn in_reindex() -> bool {
    with_top(|frame| frame.statement == Statement::ReindexConcurrently).unwrap_or(false)
}

/// Whether an ALTER TABLE of a cass table runs, which may check it by queries of the server's own.
pub fn in_alter_table() -> bool {
    FRAMES.with_borrow(|frames| frames.iter().any(|frame| frame.statement == Statement::AlterTable))
}
