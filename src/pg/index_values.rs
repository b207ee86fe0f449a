//! The values that an index has of a row.

use pgrx::pg_sys;

/// What evaluating an index's expressions and predicate takes.
pub struct Evaluation {
    estate: *mut pg_sys::EState,
    econtext: *mut pg_sys::ExprContext,
    predicate: *mut pg_sys::ExprState,
    /// Holds the row; a virtual slot of the table.
    pub slot: *mut pg_sys::TupleTableSlot,
}

impl Evaluation {
    /// Prepares the index's expressions and predicate.
    ///
    /// # Safety
    /// `rel` is an open table and `info` describes an index of it.
    pub unsafe fn begin(rel: pg_sys::Relation, info: *mut pg_sys::IndexInfo) -> Evaluation {
        // SAFETY: the relation is open and the index's description valid; everything is freed by `end`.
        unsafe {
            let estate = pg_sys::CreateExecutorState();
            let econtext = pg_sys::MakePerTupleExprContext(estate);
            let slot = pg_sys::table_slot_create(rel, std::ptr::null_mut());
            (*econtext).ecxt_scantuple = slot;
            let predicate = pg_sys::ExecPrepareQual((*info).ii_Predicate, estate);
            Evaluation { estate, econtext, predicate, slot }
        }
    }

    /// Fills in the index's values for the row in the slot. False where the predicate leaves the row out.
    ///
    /// # Safety
    /// `info` is what `begin` was given; the slot holds a row. The values live until the slot or this is used again.
    pub unsafe fn values(
        &self,
        info: *mut pg_sys::IndexInfo,
        values: &mut [pg_sys::Datum; pg_sys::INDEX_MAX_KEYS as usize],
        nulls: &mut [bool; pg_sys::INDEX_MAX_KEYS as usize],
    ) -> bool {
        // SAFETY: the slot holds a row; both arrays have room for any index's columns.
        unsafe {
            pg_sys::MemoryContextReset((*self.econtext).ecxt_per_tuple_memory);
            if !self.predicate.is_null() && !pg_sys::ExecQual(self.predicate, self.econtext) {
                return false;
            }
            pg_sys::FormIndexDatum(info, self.slot, self.estate, values.as_mut_ptr(), nulls.as_mut_ptr());
            true
        }
    }

    /// Gives back what `begin` took.
    ///
    /// # Safety
    /// `info` is what `begin` was given.
    pub unsafe fn end(self, info: *mut pg_sys::IndexInfo) {
        // SAFETY: made by `begin`, freed once; the index's expression states lived in the freed memory.
        unsafe {
            pg_sys::ExecDropSingleTupleTableSlot(self.slot);
            pg_sys::FreeExecutorState(self.estate);
            (*info).ii_ExpressionsState = std::ptr::null_mut();
            (*info).ii_PredicateState = std::ptr::null_mut();
        }
    }
}
