//! The running statements: which columns an INSERT or COPY names, and when what they buffered must be written.
//!
//! No argument of a table access method's callback carries either, so the executor's hooks and the utility hook keep a
//! stack of what is running.

mod hooks;
mod named;

pub use hooks::{copying, init};
pub use named::{check_completed_row, unnamed_columns};

use pgrx::pg_sys;
use std::cell::RefCell;
use std::rc::Rc;

/// A running statement.
struct Running {
    kind: Kind,
    /// What was found for a table, by its OID.
    unnamed: Vec<(pg_sys::Oid, Rc<[u16]>)>,
}

enum Kind {
    /// One that the executor runs.
    Query(*mut pg_sys::QueryDesc),
    /// COPY FROM; the columns it lists, if it does.
    Copy(Option<Vec<String>>),
}

thread_local! {
    static STACK: RefCell<Vec<Running>> = const { RefCell::new(Vec::new()) };
}

/// Takes a statement off the stack when it ends, by an error too.
struct Guard;

impl Guard {
    fn push(kind: Kind) -> Guard {
        STACK.with_borrow_mut(|stack| stack.push(Running { kind, unnamed: Vec::new() }));
        Guard
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        STACK.with_borrow_mut(Vec::pop);
    }
}

/// How many statements are running, one inside the other.
pub fn depth() -> usize {
    STACK.with_borrow(Vec::len)
}
