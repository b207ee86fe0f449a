//! `cass_prepare_upgrade()`: empties the deltas of all tables.
//!
//! A procedure, since a table takes two transactions: that the delta is empty can only be seen, and noted where no rollback
//! takes it back, once the rows that were moved to a segment are gone for good.

use std::time::{Duration, Instant};

use pgrx::pg_sys::{self, Oid};
use pgrx::prelude::*;

use super::tables;
use crate::catalog::is_cass_relation;
use crate::catalog::primary_key::qualified_name;
use crate::error::Report;
use crate::maintenance::{flush, note_delta_if_empty, InUse};
use crate::read::TableState;

/// How long tables that are in use are tried again: what is not done by then does not end by itself.
const PATIENCE: Duration = Duration::from_secs(3);
const PAUSE_MICROSECONDS: i64 = 100_000;

const EXCLUSIVE_TO_MAINTENANCE: pg_sys::LOCKMODE = pg_sys::ShareUpdateExclusiveLock as pg_sys::LOCKMODE;

/// A table that is to be prepared.
struct Table {
    oid: Oid,
    name: String,
    /// Rows moved to segments so far.
    flushed: u64,
    /// Why it is not ready.
    obstacle: String,
}

/// Moves the rows of all deltas of this database into segments, and notes in the tables that pg_upgrade may go on.
///
/// A NOTICE tells of each table. For superusers and the owner of the database, who may VACUUM all tables too.
///
/// # Errors
/// 25001 inside a transaction; 42501 for others; 55006, after all tables were tried, for those that are in use; XX001
/// for a table whose delta is lost.
#[pg_extern(sql = r#"
CREATE PROCEDURE cass_prepare_upgrade() LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON PROCEDURE cass_prepare_upgrade() IS 'moves rows that pg_upgrade does not carry into segments';
"#)]
fn cass_prepare_upgrade(fcinfo: pg_sys::FunctionCallInfo) {
    check_alone(fcinfo);
    check_privilege();
    // SAFETY: the procedure may commit, as has been checked; an error leaves SPI by the abort of its transaction.
    unsafe { pg_sys::SPI_connect_ext(pg_sys::SPI_OPT_NONATOMIC as i32) };
    let mut waiting: Vec<Table> = tables::permanent()
        .into_iter()
        .map(|oid| Table { oid, name: qualified_name(oid), flushed: 0, obstacle: String::new() })
        .collect();
    let start = Instant::now();
    loop {
        waiting.retain_mut(|table| !prepare(table));
        if waiting.is_empty() || start.elapsed() > PATIENCE {
            break;
        }
        pgrx::check_for_interrupts!();
        // SAFETY: sleeps; the transaction that runs has no snapshot, so it keeps no row from being settled.
        unsafe { pg_sys::pg_usleep(PAUSE_MICROSECONDS) };
    }
    if !waiting.is_empty() {
        refuse(&waiting);
    }
    // SAFETY: connected above.
    unsafe { pg_sys::SPI_finish() };
}

/// Refuses to be a part of a longer transaction, or of a function. An error in a subtransaction would leave locks behind.
fn check_alone(fcinfo: pg_sys::FunctionCallInfo) {
    // SAFETY: the server's arguments of this call; the context of a CALL is a CallContext.
    let alone = unsafe {
        let context = (*fcinfo).context;
        !context.is_null()
            && (*context).type_ == pg_sys::NodeTag::T_CallContext
            && !(*context.cast::<pg_sys::CallContext>()).atomic
            && !pg_sys::IsSubTransaction()
    };
    if !alone {
        Report::new("25001", "cass_prepare_upgrade() cannot run inside a transaction block")
            .detail("It commits what it has moved, to see that nothing is left.")
            .hint("Run CALL cass_prepare_upgrade() as a statement of its own.")
            .raise();
    }
}

fn check_privilege() {
    if !crate::pg::versions::owner::owns_database() {
        Report::new("42501", "permission denied to prepare the tables of this database for pg_upgrade")
            .hint("Only superusers and the owner of the database may run cass_prepare_upgrade().")
            .raise();
    }
}

/// Prepares a table in two transactions, under a lock that keeps other maintenance out meanwhile. Returns whether nothing
/// is left to do; else it is noted why.
fn prepare(table: &mut Table) -> bool {
    let flushed = in_transaction(table.oid, |rel| {
        // SAFETY: the table is open.
        let identity = unsafe { &raw mut (*rel).rd_lockInfo.lockRelId };
        // SAFETY: the table is open and locked; an error or the second transaction gives the lock up.
        unsafe { pg_sys::LockRelationIdForSession(identity, EXCLUSIVE_TO_MAINTENANCE) };
        let state = TableState::of(rel);
        if let Some(delta) = state.open_delta() {
            delta.close();
        }
        flush(&state)
    });
    let Some(flushed) = flushed else {
        return true;
    };
    table.flushed += flushed.rows;
    let emptied = in_transaction(table.oid, |rel| {
        let emptied = note_delta_if_empty(rel);
        // SAFETY: as above; the lock was taken by the first transaction.
        unsafe {
            let identity = &raw mut (*rel).rd_lockInfo.lockRelId;
            pg_sys::UnlockRelationIdForSession(identity, EXCLUSIVE_TO_MAINTENANCE);
        }
        emptied
    });
    match emptied {
        Some(Err(in_use)) => {
            table.obstacle = match (in_use, flushed.left) {
                (InUse::Written, _) => "a transaction that writes to it or locks rows of it is open".into(),
                (InUse::HoldsRows, left) => {
                    format!("{} rows are newer than the oldest transaction", left.max(1))
                }
            };
            false
        }
        Some(Ok(())) => {
            Report::new("00000", format!("table {} is ready for pg_upgrade", table.name))
                .detail(format!("Rows flushed: {}.", table.flushed))
                .notice();
            true
        }
        None => true,
    }
}

/// Does `work` with a table that is a cass table still, and commits it.
fn in_transaction<R>(table: Oid, work: impl FnOnce(pg_sys::Relation) -> R) -> Option<R> {
    // SAFETY: opened by OID, null where it has been dropped meanwhile; closed once, its lock kept to the commit. The snapshot is
    // popped before the commit, which wants none but the portal's.
    unsafe {
        let rel = pg_sys::try_relation_open(table, EXCLUSIVE_TO_MAINTENANCE);
        let mut result = None;
        if !rel.is_null() {
            if is_cass_relation(rel) {
                pg_sys::PushActiveSnapshot(pg_sys::GetLatestSnapshot());
                result = Some(work(rel));
                pg_sys::PopActiveSnapshot();
            }
            pg_sys::relation_close(rel, pg_sys::NoLock as pg_sys::LOCKMODE);
        }
        pg_sys::SPI_commit();
        result
    }
}

fn refuse(waiting: &[Table]) -> ! {
    let reasons: Vec<String> = waiting.iter().map(|table| format!("{}: {}.", table.name, table.obstacle)).collect();
    let count = match waiting.len() {
        1 => "1 cass table is".to_owned(),
        many => format!("{many} cass tables are"),
    };
    Report::new("55006", format!("{count} not ready for pg_upgrade"))
        .detail(reasons.join("\n"))
        .hint(
            "End the transactions that are open (pg_stat_activity, pg_prepared_xacts), drop replication slots that keep old \
             rows (pg_replication_slots), and run CALL cass_prepare_upgrade() again.",
        )
        .raise()
}
