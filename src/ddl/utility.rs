//! The ProcessUtility hook: which statements need what.

use std::ffi::c_char;

use pgrx::pg_sys::{self, NodeTag};
use pgrx::prelude::*;

use super::frame::{self, Statement};
use super::{alter_table, create_table, nodes, publication};
use crate::catalog::{self, identifier::owned};
use crate::maintenance::reclaim;
use crate::pg::externs::unguarded;
use crate::pg::injection::point;

static mut PREVIOUS: pg_sys::ProcessUtility_hook_type = None;

/// Installs the hook.
pub(super) fn init() {
    // SAFETY: called once a process, from _PG_init, before any statement.
    unsafe {
        PREVIOUS = pg_sys::ProcessUtility_hook;
        pg_sys::ProcessUtility_hook = Some(process_utility);
    }
}

/// The arguments of a call of ProcessUtility.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub statement: *mut pg_sys::PlannedStmt,
    pub query: *const c_char,
    pub read_only_tree: bool,
    pub context: pg_sys::ProcessUtilityContext::Type,
    pub parameters: pg_sys::ParamListInfo,
    pub environment: *mut pg_sys::QueryEnvironment,
    pub destination: *mut pg_sys::DestReceiver,
    pub completion: *mut pg_sys::QueryCompletion,
}

impl Call {
    /// Puts a copy in the statement's place, which may be changed; gives the utility statement in it.
    pub fn take_copy<T>(&mut self) -> *mut T {
        // SAFETY: PostgreSQL passed a valid planned statement; the copy lives in the current memory context.
        unsafe {
            self.statement = nodes::copy(self.statement);
            self.read_only_tree = false;
            (*self.statement).utilityStmt.cast()
        }
    }

    /// Whether the statement is part of another, as the index of a CREATE TABLE.
    pub fn is_part(&self) -> bool {
        self.context == pg_sys::ProcessUtilityContext::PROCESS_UTILITY_SUBCOMMAND
    }
}

/// What is left to do for a statement after [`begin`].
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(super) enum Remainder {
    /// To run it as PostgreSQL does.
    Run,
    /// The same, and to finish the frame that was begun for it.
    RunFrame,
    /// Only to finish the frame: it has nothing in it for PostgreSQL.
    FinishFrame,
    /// To run it, and to say that the COPY noted has ended.
    RunCopy,
    /// To run it, and to give back what a VACUUM can give back once it has committed.
    RunVacuum,
}

/// The hook. The statement itself is run without pgrx's guard, since an error that passes through that loses its
/// constraint name, position and context: it jumps over this frame, which holds nothing to drop.
unsafe extern "C-unwind" fn process_utility(
    statement: *mut pg_sys::PlannedStmt,
    query: *const c_char,
    read_only_tree: bool,
    context: pg_sys::ProcessUtilityContext::Type,
    parameters: pg_sys::ParamListInfo,
    environment: *mut pg_sys::QueryEnvironment,
    destination: *mut pg_sys::DestReceiver,
    completion: *mut pg_sys::QueryCompletion,
) {
    let mut call = Call { statement, query, read_only_tree, context, parameters, environment, destination, completion };
    // SAFETY: the arguments are those that PostgreSQL called the hook with, or copies of them.
    unsafe {
        let remainder = begin(&mut call);
        if remainder != Remainder::FinishFrame {
            let run = PREVIOUS.unwrap_or(unguarded::standard_ProcessUtility);
            run(
                call.statement,
                call.query,
                call.read_only_tree,
                call.context,
                call.parameters,
                call.environment,
                call.destination,
                call.completion,
            );
        }
        match remainder {
            Remainder::Run => {}
            Remainder::RunFrame | Remainder::FinishFrame => finish(),
            Remainder::RunCopy => end_copy(),
            Remainder::RunVacuum => end_vacuum(),
        }
    }
}

/// What is done before a statement is run, which may put a changed copy in its place.
#[pg_guard]
unsafe extern "C-unwind" fn begin(call: &mut Call) -> Remainder {
    // SAFETY: PostgreSQL passes a valid statement, whose utility statement is a node.
    let tag = unsafe { (*(*call.statement).utilityStmt).type_ };
    match tag {
        NodeTag::T_CreateStmt
        | NodeTag::T_CreateTableAsStmt
        | NodeTag::T_IndexStmt
        | NodeTag::T_AlterTableStmt
        | NodeTag::T_CreatePublicationStmt
        | NodeTag::T_AlterPublicationStmt
        | NodeTag::T_AlterObjectSchemaStmt
        | NodeTag::T_ReindexStmt
        | NodeTag::T_DropStmt
        | NodeTag::T_DropOwnedStmt
            if catalog::cass_am_oid().is_some() =>
        {
            dispatch(call, tag)
        }
        NodeTag::T_CopyStmt => begin_copy(call),
        NodeTag::T_VacuumStmt => begin_vacuum(call),
        _ => Remainder::Run,
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn finish() {
    frame::finish();
    point("statement-finished");
}

/// Notes which columns a COPY FROM lists.
fn begin_copy(call: &Call) -> Remainder {
    // SAFETY: the caller has seen that the statement is a CopyStmt.
    let (is_from, columns) = unsafe {
        let statement = (*call.statement).utilityStmt.cast::<pg_sys::CopyStmt>();
        ((*statement).is_from, nodes::names((*statement).attlist))
    };
    if !is_from {
        return Remainder::Run;
    }
    crate::statement::copying((!columns.is_empty()).then_some(columns));
    Remainder::RunCopy
}

#[pg_guard]
unsafe extern "C-unwind" fn end_copy() {
    crate::statement::copied();
}

/// VACUUM has a second step, if it may begin and end transactions; an ANALYZE has none.
fn begin_vacuum(call: &Call) -> Remainder {
    // SAFETY: the caller has seen that the statement is a VacuumStmt.
    let is_vacuum = unsafe { (*(*call.statement).utilityStmt.cast::<pg_sys::VacuumStmt>()).is_vacuumcmd };
    if !is_vacuum || call.context != pg_sys::ProcessUtilityContext::PROCESS_UTILITY_TOPLEVEL {
        return Remainder::Run;
    }
    reclaim::begin();
    Remainder::RunVacuum
}

#[pg_guard]
unsafe extern "C-unwind" fn end_vacuum() {
    // SAFETY: PostgreSQL runs VACUUM only outside a transaction block, and leaves it in a new transaction without a snapshot.
    unsafe { reclaim::finish() }
}

fn dispatch(call: &mut Call, tag: NodeTag) -> Remainder {
    match tag {
        NodeTag::T_CreateStmt => create_table::create(call),
        NodeTag::T_CreateTableAsStmt => create_table::create_as(call),
        NodeTag::T_IndexStmt => create_table::create_index(call),
        NodeTag::T_AlterTableStmt => alter_table::alter(call),
        NodeTag::T_CreatePublicationStmt => publication::create(call),
        NodeTag::T_AlterPublicationStmt => publication::alter(call),
        NodeTag::T_AlterObjectSchemaStmt => publication::move_to_schema(call),
        NodeTag::T_ReindexStmt => reindex(call),
        _ => {
            frame::begin(Statement::Other, Vec::new(), drop);
            Remainder::RunFrame
        }
    }
}

/// REINDEX, which with CONCURRENTLY makes a second index of a key for a while.
fn reindex(call: &Call) -> Remainder {
    // SAFETY: the hook dispatches by the node's tag; its parameters are DefElem with a name.
    let concurrently = unsafe {
        let statement: *mut pg_sys::ReindexStmt = (*call.statement).utilityStmt.cast();
        nodes::members::<pg_sys::DefElem>((*statement).params)
            .into_iter()
            .any(|parameter| owned((*parameter).defname) == "concurrently" && pg_sys::defGetBoolean(parameter))
    };
    if !concurrently {
        return Remainder::Run;
    }
    frame::begin(Statement::ReindexConcurrently, Vec::new(), drop);
    Remainder::RunFrame
}
