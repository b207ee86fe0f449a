//! Where the rows come from that a table is given, and whether they may be gathered first.

use super::named::result_relations;
use super::{Kind, STACK};
use pgrx::pg_sys;

/// Where rows come from.
pub enum Source {
    /// COPY FROM.
    Copy,
    /// An INSERT without RETURNING, or a CREATE TABLE AS, that has written this many rows.
    Query { rows: u64 },
    /// Something whose rows are to be written one by one.
    Other,
}

/// The source of `rows` further rows of an open table, by the statement on top of the stack.
pub fn source_of(rel: pg_sys::Relation, rows: u64) -> Source {
    STACK.with_borrow_mut(|stack| {
        let Some(running) = stack.last_mut().filter(|running| running.gathers) else {
            return Source::Other;
        };
        running.rows += rows;
        match running.kind {
            Kind::Copy(_) => Source::Copy,
            // SAFETY: a statement on the stack is running, so its description is alive.
            Kind::Query(query) if unsafe { may_wait(query, rel) } => Source::Query { rows: running.rows },
            Kind::Query(_) => Source::Other,
        }
    })
}

/// Whether nothing in the query asks for a row right after it was inserted.
unsafe fn may_wait(query: *mut pg_sys::QueryDesc, rel: pg_sys::Relation) -> bool {
    // SAFETY: promised by the caller.
    unsafe {
        let estate = (*query).estate;
        match result_relations(estate, rel).as_slice() {
            [target] => {
                (*query).operation == pg_sys::CmdType::CMD_INSERT
                    && (**target).ri_projectReturning.is_null()
                    && (**target).ri_WithCheckOptions.is_null()
            }
            [_, ..] => false,
            [] => (*query).operation == pg_sys::CmdType::CMD_SELECT && (*rel).rd_createSubid != 0,
        }
    }
}

/// The running statements write the rest of their rows one by one.
pub fn stop_gathering() {
    STACK.with_borrow_mut(|stack| stack.iter_mut().for_each(|running| running.gathers = false));
}
