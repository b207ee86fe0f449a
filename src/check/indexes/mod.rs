//! Secondary indexes: each row that is in one is found by its entry, the entry has the row's values, and no two rows
//! have equal values in a unique one.

mod compare;
mod entries;
mod rows;
mod unique;

use pgrx::pg_sys;

use super::fault::Kind;
use super::Check;
use crate::catalog::is_cass_key_oid;
use crate::pg::snapshot::committed_after;
use crate::pg::subtransaction::caught;
use crate::segment::relation;
use unique::Keys;

/// How the entries of an index can be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    /// All entries come one by one, with their values: B-tree.
    Values,
    /// All entries come one by one, and their values say nothing: GiST, SP-GiST.
    Entries,
    /// The rows of all entries come as a bitmap: GIN.
    Bitmap,
    /// Entries are found by `=` only: hash.
    LookUp,
}

impl Method {
    /// # Safety
    /// `index` is an open index.
    unsafe fn of(index: pg_sys::Relation) -> Option<Method> {
        // SAFETY: an open index has its access method's routine and its pg_class row.
        let (routine, method) = unsafe { (&*(*index).rd_indam, (*(*index).rd_rel).relam) };
        match (routine.amgettuple.is_some(), routine.amgetbitmap.is_some(), routine.amoptionalkey) {
            // Its entries are of ranges of blocks, not of rows.
            _ if method == pg_sys::Oid::from(pg_sys::BRIN_AM_OID.to_u32()) => None,
            (true, _, true) if method == pg_sys::BTREE_AM_OID => Some(Method::Values),
            (true, _, true) => Some(Method::Entries),
            (_, true, true) => Some(Method::Bitmap),
            (true, _, false) if method == pg_sys::HASH_AM_OID => Some(Method::LookUp),
            _ => None,
        }
    }
}

impl Check<'_> {
    /// Checks the secondary indexes of a table that can be read to its end.
    pub(super) fn indexes(&mut self) {
        // SAFETY: the table is open; its list of indexes is copied.
        let list = unsafe { pgrx::PgList::<pg_sys::Oid>::from_pg(pg_sys::RelationGetIndexList(self.state.rel)) };
        let indexes: Vec<pg_sys::Oid> = list.iter_oid().collect();
        for oid in indexes.into_iter().filter(|index| !is_cass_key_oid(*index)) {
            // SAFETY: an index of the table, which is locked; it is closed again, by the rollback of the subtransaction if there is an
            // error.
            let result = caught(|| unsafe {
                let index = pg_sys::index_open(oid, pg_sys::AccessShareLock as pg_sys::LOCKMODE);
                if is_used_by(index, self.snapshot) {
                    if let Some(method) = Method::of(index) {
                        self.index(index, method);
                    }
                }
                pg_sys::index_close(index, pg_sys::NoLock as pg_sys::LOCKMODE);
            });
            if let Err(error) = result {
                self.faults.add(Kind::Index, oid, None, format!("the index cannot be checked: {}", error.text));
            }
        }
    }

    /// # Safety
    /// `index` is an open index of the table.
    unsafe fn index(&mut self, index: pg_sys::Relation, method: Method) {
        // SAFETY: promised by the caller.
        unsafe {
            if method == Method::LookUp {
                return self.look_up_rows(index);
            }
            let entries = self.entries(index, method);
            let mut keys = if method == Method::Values { Keys::begin(self.state.rel, index) } else { None };
            let rows = self.indexed_rows(index, method, &mut keys);
            self.compare(index, method, rows, entries);
            if let Some(keys) = keys {
                self.equal_keys(keys);
            }
        }
    }

    fn index_fault(&mut self, index: pg_sys::Relation, row_id: u64, what: &str) {
        let tid = crate::pg::tid::from_row_id(row_id);
        let block = (u32::from(tid.ip_blkid.bi_hi) << 16) | u32::from(tid.ip_blkid.bi_lo);
        let detail = format!("row id {row_id}, ctid ({block},{}): {what}", tid.ip_posid);
        self.faults.add(Kind::Index, relation::oid(index), None, detail);
    }
}

/// Whether queries with this snapshot use an index: it is built, and not by a transaction that the snapshot does not see. Such a one
/// has left out the versions that were replaced before, and that is noted with it (`indcheckxmin`).
///
/// # Safety
/// `index` is an open index; the snapshot is an MVCC snapshot.
unsafe fn is_used_by(index: pg_sys::Relation, snapshot: pg_sys::Snapshot) -> bool {
    // SAFETY: an open index has its row of pg_index.
    unsafe {
        let form = &*(*index).rd_index;
        let writer = pg_sys::htup::HeapTupleHeaderGetXmin((*(*index).rd_indextuple).t_data);
        let too_new = form.indcheckxmin && committed_after(writer, snapshot);
        form.indisvalid && form.indisready && form.indislive && !too_new
    }
}
