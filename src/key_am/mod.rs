//! Index access method `cass_key`: the primary key of a cass table.
//!
//! Its index holds no entries. It declares the key, carries the table's options as reloptions, so that stock
//! `pg_dump` keeps them, and answers look-ups of a whole key out of the table itself, which is kept in key order.
//! The planner never scans it: reads go through the custom scan.

mod maintenance;
mod operator_class;
pub mod options;
mod planning;
mod scan;

use pgrx::pg_sys;
use pgrx::prelude::*;

/// Registers the reloptions and hooks. Called once a process from `_PG_init`.
pub fn init() {
    options::init();
    planning::init();
}

/// Handler function of access method `cass_key`.
#[pg_extern(sql = "
CREATE FUNCTION cass_key_handler(internal) RETURNS index_am_handler
    STRICT LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
CREATE ACCESS METHOD cass_key TYPE INDEX HANDLER cass_key_handler;
COMMENT ON ACCESS METHOD cass_key IS 'primary key of a table of access method cass';
")]
fn cass_key_handler(_call: pg_sys::FunctionCallInfo) -> PgBox<pg_sys::IndexAmRoutine> {
    // SAFETY: the node is allocated in the caller's context, zeroed, with its tag set.
    let mut routine = unsafe { PgBox::<pg_sys::IndexAmRoutine>::alloc_node(pg_sys::NodeTag::T_IndexAmRoutine) };
    // Strategies and support function are those of btree: the planner maps them to btree's families.
    routine.amstrategies = 5;
    routine.amsupport = 1;
    routine.amoptsprocnum = 0;
    routine.amcanorder = true;
    routine.amcanunique = true;
    routine.amcanmulticol = true;
    // The delta's btree takes the predicate locks.
    routine.ampredlocks = true;
    routine.amkeytype = pg_sys::InvalidOid;
    routine.ambuild = Some(maintenance::build);
    routine.ambuildempty = Some(maintenance::build_empty);
    routine.aminsert = Some(maintenance::insert);
    routine.ambulkdelete = Some(maintenance::bulk_delete);
    routine.amvacuumcleanup = Some(maintenance::vacuum_cleanup);
    routine.amcanreturn = Some(scan::can_return);
    routine.amcostestimate = Some(planning::cost_estimate);
    routine.amoptions = Some(options::parse);
    routine.amproperty = Some(operator_class::property);
    routine.ambuildphasename = Some(maintenance::build_phase_name);
    routine.amvalidate = Some(operator_class::validate);
    routine.amadjustmembers = Some(operator_class::adjust_members);
    routine.ambeginscan = Some(scan::begin);
    routine.amrescan = Some(scan::restart);
    routine.amgettuple = Some(scan::next);
    routine.amgetbitmap = Some(scan::bitmap);
    routine.amendscan = Some(scan::end);
    routine.ammarkpos = Some(scan::mark);
    routine.amrestrpos = Some(scan::restore);
    #[cfg(feature = "pg18")]
    {
        routine.amconsistentequality = true;
        routine.amconsistentordering = true;
        routine.amtranslatestrategy = Some(operator_class::compare_type);
        routine.amtranslatecmptype = Some(operator_class::strategy);
    }
    routine.into_pg_boxed()
}
