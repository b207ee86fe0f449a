//! Bitmap scans over secondary indexes: what keeps PostgreSQL from taking a row id's block for a page of the table.
//!
//! The executor asks for the pages behind a bitmap ahead of their use (`BitmapPrefetch` in PostgreSQL's nodeBitmapHeapscan.c).
//! Row ids have no pages: the request is useless, and an error where the block's file would lie behind the table's last.
//! So each node is told to ask for none once it has begun.

use crate::catalog::{cass_am_oid, is_cass_oid};
use crate::pg::externs::{planstate_children, unguarded};
use crate::pg::nodes::downcast;
use crate::pg::versions::plans::prefetch_nothing;
use crate::segment::relation::oid;
use pgrx::pg_sys::{self, CmdType, NodeTag};
use pgrx::prelude::*;

static mut PREVIOUS_START: pg_sys::ExecutorStart_hook_type = None;

/// Installs the hook. Called once a process from `_PG_init`.
pub(super) fn init() {
    // SAFETY: called before any statement; a backend has one thread.
    unsafe {
        PREVIOUS_START = pg_sys::ExecutorStart_hook;
        pg_sys::ExecutorStart_hook = Some(start);
    }
}

/// Calls on without pgrx's guard, through which an error would lose its context; this frame holds nothing to drop.
unsafe extern "C-unwind" fn start(query: *mut pg_sys::QueryDesc, flags: i32) {
    // SAFETY: the arguments are those that PostgreSQL called the hook with.
    unsafe {
        match PREVIOUS_START {
            Some(previous) => previous(query, flags),
            None => unguarded::standard_ExecutorStart(query, flags),
        }
        started(query);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn started(query: *mut pg_sys::QueryDesc) {
    // SAFETY: the query has begun, so its nodes are initialised.
    unsafe {
        if cass_am_oid().is_some() {
            ask_for_no_pages((*query).planstate);
        }
    }
}

/// Does so in all nodes from `node` on.
unsafe fn ask_for_no_pages(node: *mut pg_sys::PlanState) {
    // SAFETY: the node is null or an initialised one of a running query; a bitmap heap scan has its table open, unless the
    // query is only explained.
    unsafe {
        if node.is_null() {
            return;
        }
        if (*node).type_ == NodeTag::T_BitmapHeapScanState {
            let scan = node.cast::<pg_sys::BitmapHeapScanState>();
            let table = (*scan).ss.ss_currentRelation;
            if !table.is_null() && is_cass_oid(oid(table)) {
                prefetch_nothing(scan);
            }
        }
        planstate_children(node, &mut |child| ask_for_no_pages(child));
    }
}

/// Whether a path is a bitmap scan.
///
/// # Safety
/// `path` is a live path.
pub unsafe fn is_bitmap(path: *mut pg_sys::Path) -> bool {
    // SAFETY: promised by the caller.
    unsafe { downcast::<pg_sys::BitmapHeapPath>(path, NodeTag::T_BitmapHeapPath) }.is_some()
}

/// Whether nodes of this query may begin a second time, unseen by the hook: a subquery of a statement that locks or changes rows
/// is begun anew to look at a row that another transaction has changed meanwhile (`EvalPlanQualStart` in PostgreSQL's execMain.c).
///
/// # Safety
/// `root` is live.
pub unsafe fn may_begin_again(root: *const pg_sys::PlannerInfo) -> bool {
    // SAFETY: the queries around a live one are live.
    unsafe {
        let mut outer = (*root).parent_root;
        while let Some(query) = outer.as_ref() {
            let parse = &*query.parse;
            let changes = matches!(parse.commandType, CmdType::CMD_UPDATE | CmdType::CMD_DELETE | CmdType::CMD_MERGE);
            if changes || !parse.rowMarks.is_null() {
                return true;
            }
            outer = query.parent_root;
        }
        false
    }
}
