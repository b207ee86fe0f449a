//! The running statements: which columns an INSERT or COPY names, and when what they buffered must be written.
//!
//! No argument of a table access method's callback carries either, so the executor's hooks and the utility hook keep a
//! stack of what is running.

mod hooks;
mod named;
mod source;

pub use hooks::{copied, copying, init};
pub use named::{check_completed_row, unnamed_columns};
pub use source::{source_of, stop_gathering, Source};

use pgrx::pg_sys;
use std::cell::RefCell;
use std::rc::Rc;

/// A running statement.
struct Running {
    kind: Kind,
    /// The level of the subtransaction it runs in: what an error leaves on the stack goes when that is aborted.
    nest_level: i32,
    /// What was found for a target, by the slot its rows come in.
    unnamed: Vec<(*mut pg_sys::TupleTableSlot, Rc<[u16]>)>,
    /// Rows it has inserted.
    rows: u64,
    /// Whether its rows may be gathered.
    gathers: bool,
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

fn push(kind: Kind) {
    // SAFETY: reads a counter of this backend.
    let nest_level = unsafe { pg_sys::GetCurrentTransactionNestLevel() };
    STACK
        .with_borrow_mut(|stack| stack.push(Running { kind, nest_level, unnamed: Vec::new(), rows: 0, gathers: true }));
}

fn pop() {
    STACK.with_borrow_mut(Vec::pop);
}

/// Forgets the statements of the subtransaction of this level, and of those inside it.
fn forget(nest_level: i32) {
    STACK.with_borrow_mut(|stack| stack.retain(|running| running.nest_level < nest_level));
}
