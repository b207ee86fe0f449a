//! The routine and its handler function.

use super::{
    analyze, callbacks, copy, index_build, index_fetch, insert, lock, modify, rewrite, sample, scan, slot, storage,
};
use pgrx::pg_sys;
use pgrx::prelude::*;

/// PostgreSQL keeps the pointer for the life of the process and never copies what it points to.
struct Routine(pg_sys::TableAmRoutine);

// SAFETY: the routine is never written after it was made, and a backend has one thread.
unsafe impl Sync for Routine {}

/// TID range scans are left out, which tells the planner not to plan them: rows are not kept in the order of their ids.
static ROUTINE: Routine = Routine(pg_sys::TableAmRoutine {
    type_: pg_sys::NodeTag::T_TableAmRoutine,
    slot_callbacks: Some(slot::slot_callbacks),
    scan_begin: Some(scan::begin),
    scan_end: Some(scan::end),
    scan_rescan: Some(scan::rescan),
    scan_getnextslot: Some(scan::next_slot),
    scan_set_tidrange: None,
    scan_getnextslot_tidrange: None,
    parallelscan_estimate: Some(scan::parallel_estimate),
    parallelscan_initialize: Some(scan::parallel_initialize),
    parallelscan_reinitialize: Some(scan::parallel_reinitialize),
    index_fetch_begin: Some(index_fetch::begin),
    index_fetch_reset: Some(index_fetch::reset),
    index_fetch_end: Some(index_fetch::end),
    index_fetch_tuple: Some(index_fetch::fetch_tuple),
    tuple_fetch_row_version: Some(index_fetch::fetch_row_version),
    tuple_tid_valid: Some(index_fetch::tid_valid),
    tuple_get_latest_tid: Some(index_fetch::latest_tid),
    tuple_satisfies_snapshot: Some(index_fetch::satisfies_snapshot),
    index_delete_tuples: Some(index_fetch::delete_tuples),
    tuple_insert: Some(insert::insert),
    tuple_insert_speculative: Some(insert::insert_speculative),
    tuple_complete_speculative: Some(insert::complete_speculative),
    multi_insert: Some(insert::multi_insert),
    tuple_delete: Some(modify::delete),
    tuple_update: Some(modify::update),
    tuple_lock: Some(lock::lock),
    finish_bulk_insert: Some(insert::finish_bulk_insert),
    #[cfg(feature = "pg15")]
    relation_set_new_filenode: Some(storage::set_new_filenode),
    #[cfg(not(feature = "pg15"))]
    relation_set_new_filelocator: Some(storage::set_new_filenode),
    relation_nontransactional_truncate: Some(storage::nontransactional_truncate),
    relation_copy_data: Some(copy::copy_data),
    relation_copy_for_cluster: Some(rewrite::copy_for_cluster),
    relation_vacuum: Some(storage::vacuum),
    scan_analyze_next_block: Some(callbacks::analyze_block),
    scan_analyze_next_tuple: Some(analyze::next_tuple),
    index_build_range_scan: Some(index_build::build_range_scan),
    index_validate_scan: Some(index_build::validate_scan),
    relation_size: Some(storage::relation_size),
    relation_needs_toast_table: Some(storage::needs_toast_table),
    relation_toast_am: Some(storage::toast_am),
    relation_fetch_toast_slice: Some(storage::fetch_toast_slice),
    relation_estimate_size: Some(storage::estimate_size),
    #[cfg(not(feature = "pg18"))]
    scan_bitmap_next_block: Some(callbacks::bitmap_block),
    scan_bitmap_next_tuple: Some(callbacks::bitmap_row),
    scan_sample_next_block: Some(sample::next_block),
    scan_sample_next_tuple: Some(sample::next_tuple),
});

/// The handler of access method `cass`.
#[pg_extern(sql = "
CREATE FUNCTION cass_handler(internal) RETURNS table_am_handler
    STRICT LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
CREATE ACCESS METHOD cass TYPE TABLE HANDLER cass_handler;
COMMENT ON ACCESS METHOD cass IS 'rows placed by partition token and clustering order';
")]
fn cass_handler(_call: pg_sys::FunctionCallInfo) -> pgrx::PgBox<pg_sys::TableAmRoutine> {
    // SAFETY: the pointer is to a static, which PostgreSQL only reads.
    unsafe { pgrx::PgBox::from_pg(std::ptr::from_ref(&ROUTINE.0).cast_mut()) }
}
