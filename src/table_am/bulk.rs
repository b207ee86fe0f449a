//! Rows that go straight into a segment: rewrites of the table, and large loads.
//!
//! COPY, INSERT ... SELECT and CREATE TABLE AS gather their rows where nobody else needs to see them one by one. A load that
//! outgrows [`DIRECT_BYTES`] takes the table for itself, if it can without waiting, and is published as a segment at the end
//! of the statement; a smaller one goes through the delta then, and takes no lock.

use super::{insert, version};
use crate::maintenance::BulkLoad;
use crate::pg::scratch::in_scratch;
use crate::read::{loading, TableState};
use crate::statement::{self, Source};
use pgrx::pg_sys;
use std::cell::RefCell;
use std::collections::HashMap;

/// Bytes of rows from which on a load goes straight into a segment.
const DIRECT_BYTES: u64 = 64 << 20;

/// Rows of an INSERT ... SELECT that go through the delta before the rest is gathered.
const ROWS_BEFORE: u64 = 1000;

/// What becomes of a load's rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// They replace the rows of a table that is being rewritten.
    Rewrite,
    /// Not decided yet.
    Gathering,
    /// They become a segment; the table is locked.
    Direct,
}

struct Load {
    rows: BulkLoad,
    stage: Stage,
    command: pg_sys::CommandId,
    /// The level of the subtransaction that gathers.
    nest_level: i32,
}

thread_local! {
    /// Loads of this transaction that are under way, by the table's OID.
    static LOADS: RefCell<HashMap<u32, Load>> = RefCell::new(HashMap::new());
}

/// Forgets the loads of subtransactions of this level and deeper, which are aborted.
pub fn forget(nest_level: i32) {
    LOADS.with_borrow_mut(|loads| loads.retain(|_, load| load.nest_level < nest_level));
    loading::forget(nest_level);
}

/// Whether the table is one that ALTER TABLE, VACUUM FULL or the like is filling to put it in another's place.
pub fn is_transient(rel: pg_sys::Relation) -> bool {
    // SAFETY: the relation is open.
    unsafe { (*(*rel).rd_rel).relrewrite != pg_sys::InvalidOid }
}

fn oid_of(rel: pg_sys::Relation) -> u32 {
    // SAFETY: the relation is open.
    unsafe { (*rel).rd_id }.to_u32()
}

/// Takes the load of a table out of the list. What is then done with it may raise an error, and then it is gone, as it must be.
fn take(rel: pg_sys::Relation) -> Option<Load> {
    loading::end(rel);
    LOADS.with_borrow_mut(|loads| loads.remove(&oid_of(rel)))
}

fn put_back(rel: pg_sys::Relation, load: Load) {
    if load.stage != Stage::Rewrite {
        loading::begin(rel, load.nest_level);
    }
    LOADS.with_borrow_mut(|loads| loads.insert(oid_of(rel), load));
}

fn start(state: &TableState, stage: Stage, command: pg_sys::CommandId) -> Load {
    let nest_level = nest_level();
    if stage != Stage::Rewrite {
        loading::begin(state.rel, nest_level);
    }
    Load { rows: BulkLoad::new(state), stage, command, nest_level }
}

fn nest_level() -> i32 {
    // SAFETY: reads a counter of this backend.
    unsafe { pg_sys::GetCurrentTransactionNestLevel() }
}

/// Adds the row in `slot` to the load of a transient table.
///
/// # Safety
/// `slot` holds a row of the table.
pub unsafe fn rewrite(state: &TableState, slot: *mut pg_sys::TupleTableSlot, command: pg_sys::CommandId) {
    let mut load = take(state.rel).unwrap_or_else(|| start(state, Stage::Rewrite, command));
    // SAFETY: promised by the caller.
    unsafe { push(state, &mut load.rows, slot, 0) };
    put_back(state.rel, load);
}

/// Adds the row in `slot` to a load. The row id matters only if the load ends in the delta.
///
/// # Safety
/// `slot` holds a row of the table.
pub unsafe fn push(state: &TableState, load: &mut BulkLoad, slot: *mut pg_sys::TupleTableSlot, row_id: u64) {
    // SAFETY: promised by the caller.
    unsafe { push_encoded(state, load, slot, |values| version::encode(state, values, row_id)) }
}

/// Adds the row in `slot`, which the same table stores otherwise until now, to a load.
///
/// # Safety
/// `slot` holds a row of the table.
pub unsafe fn push_again(state: &TableState, load: &mut BulkLoad, slot: *mut pg_sys::TupleTableSlot) {
    // SAFETY: promised by the caller.
    unsafe { push_encoded(state, load, slot, |values| version::encode_again(state, values, 0)) }
}

unsafe fn push_encoded(
    state: &TableState,
    load: &mut BulkLoad,
    slot: *mut pg_sys::TupleTableSlot,
    encode: impl FnOnce(&version::Values) -> Vec<u8>,
) {
    in_scratch(|| {
        // SAFETY: promised by the callers.
        let values = unsafe { version::Values::of_slot(slot) };
        let key = state.encode_key(&values.values, &values.nulls, load.next_position());
        load.push(&key.bytes, key.partition_len, &encode(&values));
    });
}

/// Gathers rows of a statement that may load the table. False where they are to be written one by one.
///
/// # Safety
/// `slots` hold rows of the table.
pub unsafe fn gather(state: &TableState, slots: &[*mut pg_sys::TupleTableSlot], command: pg_sys::CommandId) -> bool {
    let mut load = match take(state.rel) {
        Some(load) if load.nest_level != nest_level() => {
            put_back(state.rel, load);
            loading::refuse(state.rel);
        }
        Some(load) => load,
        None if may_gather(state, slots) => start(state, Stage::Gathering, command),
        None => return false,
    };
    for slot in slots {
        // SAFETY: promised by the caller.
        unsafe { push(state, &mut load.rows, *slot, super::row_ids::next(state)) };
    }
    if load.stage == Stage::Gathering && load.rows.bytes() >= DIRECT_BYTES {
        // SAFETY: the table is open and locked for writing; more may be asked for, without waiting.
        if !unsafe { pg_sys::ConditionalLockRelation(state.rel, pg_sys::ExclusiveLock as i32) } {
            statement::stop_gathering();
            drain(state, load);
            return true;
        }
        load.stage = Stage::Direct;
    }
    put_back(state.rel, load);
    true
}

/// Whether nobody can need the rows before the statement ends, and nobody can compete with them (docs/architecture.md, "Bulk
/// loads").
fn may_gather(state: &TableState, slots: &[*mut pg_sys::TupleTableSlot]) -> bool {
    match statement::source_of(state.rel, slots.len() as u64) {
        Source::Copy => {}
        Source::Query { rows } if rows > ROWS_BEFORE => {}
        _ => return false,
    }
    // SAFETY: the relation is open.
    unsafe {
        let rel = &*state.rel;
        let is_new = rel.rd_createSubid != 0
            || crate::pg::versions::files::last_replaced_in(rel) != 0
            || crate::pg::versions::files::first_replaced_in(rel) != 0;
        let has_row_triggers = rel.trigdesc.as_ref().is_some_and(|triggers| {
            triggers.trig_insert_before_row || triggers.trig_insert_after_row || triggers.trig_insert_instead_row
        });
        let indexes = pgrx::PgList::<pg_sys::Oid>::from_pg(pg_sys::RelationGetIndexList(state.rel)).len();
        (is_new || pg_sys::XactIsoLevel < pg_sys::XACT_REPEATABLE_READ as i32)
            && !has_row_triggers
            && indexes == usize::from(state.key.is_some())
            && !(*rel.rd_rel).relrowsecurity
            && slots.first().is_some_and(|slot| insert::columns_to_keep(state, *slot).is_empty())
    }
}

/// Writes the rows of a load to the delta.
fn drain(state: &TableState, load: Load) {
    let delta = insert::open_delta_for_writing(state);
    let command = load.command;
    load.rows.into_rows(|key, row_id, row| {
        in_scratch(|| insert::upsert_encoded(state, &delta, key, row_id, row, command));
    });
    delta.close();
}

/// Ends the load of a table: a rewrite or a direct load is published, a small one written to the delta.
pub fn finish(rel: pg_sys::Relation) {
    let Some(load) = take(rel) else { return };
    match load.stage {
        Stage::Rewrite | Stage::Direct => {
            load.rows.finish(rel);
        }
        Stage::Gathering => drain(&TableState::of(rel), load),
    }
}

/// Ends all loads of statements, where one of them ends.
pub fn finish_all() {
    for_each_open(finish);
}

/// Writes what statements of this subtransaction gathered to the delta, since one that starts inside them must see it; they go on
/// without gathering.
pub fn drain_all() {
    for_each_open(|rel| {
        if let Some(load) = take(rel) {
            statement::stop_gathering();
            drain(&TableState::of(rel), load);
        }
    });
}

/// Runs `work` on the tables that statements of this subtransaction load. What a statement outside of it has gathered is not
/// touched: written here, it would go with this subtransaction (see [`loading`]).
fn for_each_open(mut work: impl FnMut(pg_sys::Relation)) {
    let tables: Vec<u32> = LOADS.with_borrow(|loads| {
        let level = nest_level();
        let ours = |load: &Load| load.stage != Stage::Rewrite && load.nest_level == level;
        loads.iter().filter(|(_, load)| ours(load)).map(|(oid, _)| *oid).collect()
    });
    for oid in tables {
        // SAFETY: the statement that loads the table holds a lock on it.
        unsafe {
            let rel = pg_sys::table_open(pg_sys::Oid::from(oid), pg_sys::NoLock as i32);
            work(rel);
            pg_sys::table_close(rel, pg_sys::NoLock as i32);
        }
    }
}
