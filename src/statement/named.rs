//! Which columns the running INSERT or COPY names.
//!
//! A column with a DEFAULT, an identity or a generated one counts as named: it has a value. The others keep what the row
//! had before, as Cassandra's cells do.

use super::{Kind, STACK};
use crate::pg::versions::descriptors;
use crate::read::TableState;
use pgrx::pg_sys;
use std::rc::Rc;

/// Attribute numbers in a `Bitmapset` start here (`FirstLowInvalidHeapAttributeNumber`).
const FIRST_LOW_INVALID: i32 = pg_sys::FirstLowInvalidHeapAttributeNumber;

/// The columns of an open table that the statement on top of the stack does not name for the row in `slot`. The slot tells the
/// targets of a statement apart that writes to a table in several places.
pub fn unnamed_columns(state: &TableState, slot: *mut pg_sys::TupleTableSlot) -> Rc<[u16]> {
    STACK.with_borrow_mut(|stack| {
        let Some(running) = stack.last_mut() else {
            return Rc::from([]);
        };
        if let Some((_, known)) = running.unnamed.iter().find(|(known, _)| *known == slot) {
            return known.clone();
        }
        // SAFETY: a statement on the stack is running, so its description is alive.
        let unnamed: Rc<[u16]> = unsafe {
            match &running.kind {
                Kind::Query(query) => of_query(state, *query, slot),
                Kind::Copy(None) => Rc::from([]),
                Kind::Copy(Some(columns)) => {
                    missing(state, |attribute| columns.iter().any(|name| *name == attribute_name(attribute)))
                }
            }
        };
        // The slots of a COPY are many, and all of them alike.
        if matches!(running.kind, Kind::Query(_)) {
            running.unnamed.push((slot, unnamed.clone()));
        }
        unnamed
    })
}

unsafe fn of_query(state: &TableState, query: *mut pg_sys::QueryDesc, slot: *mut pg_sys::TupleTableSlot) -> Rc<[u16]> {
    // SAFETY: the query is running, so its state is alive; its result relations are open.
    unsafe {
        let estate = (*query).estate;
        if estate.is_null() {
            return Rc::from([]);
        }
        let targets = result_relations(estate, state.rel);
        let of_slot = targets.iter().find(|target| (***target).ri_newTupleSlot == slot);
        let Some(target) = of_slot.or(targets.first()).copied() else {
            return Rc::from([]);
        };
        let inserted = pg_sys::ExecGetInsertedCols(target, estate);
        if inserted.is_null() {
            return Rc::from([]);
        }
        missing(state, |attribute| pg_sys::bms_is_member(i32::from(attribute.attnum) - FIRST_LOW_INVALID, inserted))
    }
}

/// The descriptions of `rel` as a target of a running query, one for each place in it that writes to the table.
///
/// # Safety
/// `estate` is that of a running query; `rel` is open.
pub(super) unsafe fn result_relations(
    estate: *mut pg_sys::EState,
    rel: pg_sys::Relation,
) -> Vec<*mut pg_sys::ResultRelInfo> {
    // SAFETY: promised by the caller; a query's result relations are open while it runs.
    unsafe {
        let opened = pgrx::PgList::<pg_sys::ResultRelInfo>::from_pg((*estate).es_opened_result_relations);
        let routed = pgrx::PgList::<pg_sys::ResultRelInfo>::from_pg((*estate).es_tuple_routing_result_relations);
        opened
            .iter_ptr()
            .chain(routed.iter_ptr())
            .filter(|relation| (*(*(*relation)).ri_RelationDesc).rd_id == (*rel).rd_id)
            .collect()
    }
}

/// The columns without a value of their own that `is_named` does not know.
unsafe fn missing(state: &TableState, is_named: impl Fn(&pg_sys::FormData_pg_attribute) -> bool) -> Rc<[u16]> {
    // SAFETY: the descriptor of an open table has `natts` attributes.
    let attributes = unsafe { descriptors::attributes((*state.rel).rd_att) };
    attributes
        .iter()
        .filter(|attribute| {
            let has_value = attribute.atthasdef || attribute.attidentity != 0 || attribute.attgenerated != 0;
            let in_key = state.key.as_ref().is_some_and(|key| key.is_key_column(attribute.attnum));
            !attribute.attisdropped && !has_value && !in_key && !is_named(attribute)
        })
        .map(|attribute| attribute.attnum.unsigned_abs())
        .collect()
}

fn attribute_name(attribute: &pg_sys::FormData_pg_attribute) -> String {
    // SAFETY: a name in the catalogs is NUL-terminated.
    unsafe { std::ffi::CStr::from_ptr(attribute.attname.data.as_ptr()).to_string_lossy().into_owned() }
}

/// Computes generated columns and checks constraints again, after a row was completed from its older version.
///
/// # Safety
/// `slot` holds a row of the table.
pub unsafe fn check_completed_row(rel: pg_sys::Relation, slot: *mut pg_sys::TupleTableSlot) {
    // SAFETY: the relation is open; what is made here is freed here.
    unsafe {
        let constraints = (*(*rel).rd_att).constr;
        if constraints.is_null() {
            return;
        }
        let estate = pg_sys::CreateExecutorState();
        let mut target = pg_sys::ResultRelInfo::default();
        pg_sys::InitResultRelInfo(&mut target, rel, 0, std::ptr::null_mut(), 0);
        target.type_ = pg_sys::NodeTag::T_ResultRelInfo;
        if (*constraints).has_generated_stored {
            crate::pg::externs::compute_stored_generated(&mut target, estate, slot);
        }
        pg_sys::ExecConstraints(&mut target, slot, estate);
        pg_sys::FreeExecutorState(estate);
    }
}
