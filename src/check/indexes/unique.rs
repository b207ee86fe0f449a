//! That no two rows have equal keys in a unique index.
//!
//! The rows' own values are sorted by PostgreSQL as for building the index, so that equal ones are neighbours whatever they look
//! like. A check of the index's entries alone would not do: those of rows that are gone stay until VACUUM.

use pgrx::pg_sys;

use super::compare::{deform, is_equal, Values};
use super::entries::tuple_bytes;
use super::rows::Indexed;
use crate::check::{sort_memory, Check};
use crate::pg::scratch::in_scratch;
use crate::pg::tid;

/// The keys of rows, gathered to find equal ones.
pub(super) struct Keys {
    sort: *mut pg_sys::Tuplesortstate,
    index: pg_sys::Relation,
}

impl Keys {
    /// Begins to gather the keys of an index whose rows are to have different ones; `None` where they need not.
    ///
    /// # Safety
    /// `index` is an open B-tree of the open table `rel`; both outlive the value made. The current memory context outlives it too.
    pub(super) unsafe fn begin(rel: pg_sys::Relation, index: pg_sys::Relation) -> Option<Keys> {
        // SAFETY: promised by the caller; an open index has its row of pg_index.
        unsafe {
            let form = &*(*index).rd_index;
            // Until a transaction ends, it may hold rows that a deferrable constraint has yet to judge.
            let may_be_deferred =
                !form.indimmediate && pg_sys::GetTopTransactionIdIfAny() != pg_sys::InvalidTransactionId;
            if !form.indisunique || may_be_deferred {
                return None;
            }
            let kilobytes = i32::try_from(sort_memory() / 1024).unwrap_or(i32::MAX);
            // Without its own enforcement, whose error would end the check at the first two.
            let (enforced, none) = (false, std::ptr::null_mut());
            let sort = pg_sys::tuplesort_begin_index_btree(rel, index, enforced, false, kilobytes, none, 0);
            Some(Keys { sort, index })
        }
    }

    /// Adds the key of a row.
    ///
    /// # Safety
    /// The row's values are those that the index has of it.
    pub(super) unsafe fn push(&mut self, row: &mut Indexed<'_>) {
        let mut tid = tid::from_row_id(row.row_id);
        // SAFETY: promised by the caller and by that of `begin`; the sort copies the values.
        unsafe {
            let (values, nulls) = (row.values.as_mut_ptr(), row.nulls.as_mut_ptr());
            pg_sys::tuplesort_putindextuplevalues(self.sort, self.index, &raw mut tid, values, nulls);
        }
    }
}

impl Check<'_> {
    /// Tells of each row that has the key of a row before it.
    pub(super) fn equal_keys(&mut self, keys: Keys) {
        let Keys { sort, index } = keys;
        let mut first: Option<(u64, Vec<u8>)> = None;
        // SAFETY: promised to `Keys::begin`; a tuple is used before the next one is fetched.
        unsafe {
            pg_sys::tuplesort_performsort(sort);
            loop {
                pgrx::check_for_interrupts!();
                let tuple = pg_sys::tuplesort_getindextuple(sort, true);
                if tuple.is_null() {
                    break;
                }
                let row_id = tid::to_row_id((*tuple).t_tid).unwrap_or(0);
                let bytes = tuple_bytes(tuple);
                let same = first.as_ref().and_then(|(of_row, key)| {
                    in_scratch(|| {
                        let (a, mut b) = (deform(index, key), deform(index, bytes));
                        is_same_key(index, &a, &b).then(|| (*of_row, describe(index, &mut b)))
                    })
                });
                match same {
                    Some((of_row, key)) => {
                        self.index_fault(
                            index,
                            row_id,
                            &format!("row id {of_row} has the same key in the unique index{key}"),
                        );
                    }
                    None => first = Some((row_id, bytes.to_vec())),
                }
            }
            pg_sys::tuplesort_end(sort);
        }
    }
}

/// Whether a unique index takes two entries for the same. NULL is like no other unless the index says NULLS NOT DISTINCT.
///
/// # Safety
/// `index` is an open B-tree, and the values are of entries of it.
unsafe fn is_same_key(index: pg_sys::Relation, a: &Values, b: &Values) -> bool {
    // SAFETY: promised by the caller; an open index has its row of pg_index.
    unsafe {
        let form = &*(*index).rd_index;
        let keys = usize::try_from(form.indnkeyatts).unwrap_or(0);
        (0..keys).all(|column| match (a.nulls[column], b.nulls[column]) {
            (false, false) => is_equal(index, column, a.values[column], b.values[column]),
            (true, true) => form.indnullsnotdistinct,
            _ => false,
        })
    }
}

/// The key as PostgreSQL shows one that is there twice; nothing where it does not show rows of the table.
///
/// # Safety
/// `index` is an open B-tree, and the values are of an entry of it. Called in memory that is given back.
unsafe fn describe(index: pg_sys::Relation, key: &mut Values) -> String {
    // SAFETY: promised by the caller; the text is copied.
    unsafe {
        let shown = pg_sys::BuildIndexValueDescription(index, key.values.as_mut_ptr(), key.nulls.as_mut_ptr());
        if shown.is_null() {
            String::new()
        } else {
            format!(", {}", std::ffi::CStr::from_ptr(shown).to_string_lossy())
        }
    }
}
