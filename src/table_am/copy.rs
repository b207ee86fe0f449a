//! Copying a table's files as they are: for SET TABLESPACE, and for VACUUM FULL while an older snapshot reads what a rewrite would
//! leave out. The copy has the storage id of the original, so that list and delta go with it.

use crate::error::Report;
use crate::pg::injection::point;
use crate::pg::versions::files;
use crate::pg::versions::tables;
use crate::segment::{metapage, relation};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ptr;

/// Row ids that the original keeps away from, so that it does not give those of the copy again after a rollback. In indexes,
/// entries of what was rolled back would else lead to its rows.
const ROW_IDS_FOR_COPY: u64 = 1 << 28;

/// `relation_copy_data`: SET TABLESPACE copies the blocks, and takes the delta along.
#[pg_guard]
pub unsafe extern "C-unwind" fn copy_data(rel: pg_sys::Relation, new_node: *const files::FileLocator) {
    // SAFETY: as heapam does: the new file is made, filled block by block, and the old one dropped at commit.
    unsafe {
        crate::delta::tablespace::follow(rel, files::parts(&*new_node).tablespace);
        let persistence = (*(*rel).rd_rel).relpersistence;
        let target = pg_sys::RelationCreateStorage(*new_node, persistence, true);
        copy_blocks(rel, target);
        pg_sys::RelationDropStorage(rel);
        pg_sys::smgrclose(target);
    }
}

/// Fills the new files of `old`, which are those of the transient table `new`, with what is in the old ones, TOAST table included.
/// `horizon` is what dead values are told by; the cutoffs are those that core gives to `relation_copy_for_cluster`.
///
/// # Safety
/// Both are open and locked exclusively, `old`'s TOAST table too; the pointers are core's.
pub unsafe fn copy_table(
    old: pg_sys::Relation,
    new: pg_sys::Relation,
    horizon: pg_sys::TransactionId,
    xid_cutoff: *mut pg_sys::TransactionId,
    multi_cutoff: *mut pg_sys::MultiXactId,
) {
    // SAFETY: promised by the caller. Truncating drops the metapage that the new files were made with, from buffers as well.
    unsafe {
        pg_sys::RelationTruncate(new, 0);
        copy_blocks(old, pg_sys::RelationGetSmgr(new));
        metapage::files_filled(new);
        let (old_toast, new_toast) = ((*(*old).rd_rel).reltoastrelid, (*(*new).rd_rel).reltoastrelid);
        if old_toast != pg_sys::InvalidOid && new_toast != pg_sys::InvalidOid {
            copy_toast_table(old_toast, new_toast, horizon, xid_cutoff, multi_cutoff);
        }
    }
    Report::new("00000", format!("table \"{}\" was copied as it is", relation::name(old)))
        .detail("There are transactions that are older than its latest changes and may read what a rewrite would leave out.")
        .hint("Run the command again when they have ended.")
        .notice();
}

/// # Safety
/// `old` is an open relation, locked exclusively; `target` has no block, and no buffer.
unsafe fn copy_blocks(old: pg_sys::Relation, target: pg_sys::SMgrRelation) {
    // SAFETY: promised by the caller. What is in buffers is written before the file is read.
    unsafe {
        let main = pg_sys::ForkNumber::MAIN_FORKNUM;
        pg_sys::FlushRelationBuffers(old);
        pg_sys::RelationCopyStorage(pg_sys::RelationGetSmgr(old), target, main, (*(*old).rd_rel).relpersistence);
    }
    point("files-copied");
    metapage::reserve_row_ids(old, ROW_IDS_FOR_COPY);
}

/// Copies a TOAST table as VACUUM FULL does with any heap, old versions included, and builds the new one's index.
///
/// # Safety
/// Both are TOAST tables, locked exclusively; the pointers are core's.
unsafe fn copy_toast_table(
    old: pg_sys::Oid,
    new: pg_sys::Oid,
    horizon: pg_sys::TransactionId,
    xid_cutoff: *mut pg_sys::TransactionId,
    multi_cutoff: *mut pg_sys::MultiXactId,
) {
    // SAFETY: promised by the caller; the tables are closed before the index is built, and keep their locks.
    unsafe {
        let no_lock = pg_sys::NoLock as pg_sys::LOCKMODE;
        let (from, to) = (pg_sys::table_open(old, no_lock), pg_sys::table_open(new, no_lock));
        let (mut live, mut removed, mut recently_dead) = (0.0, 0.0, 0.0);
        if let Some(copy) = (*pg_sys::GetHeapamTableAmRoutine()).relation_copy_for_cluster {
            copy(
                from,
                to,
                ptr::null_mut(),
                false,
                horizon,
                xid_cutoff,
                multi_cutoff,
                &raw mut live,
                &raw mut removed,
                &raw mut recently_dead,
            );
        }
        pg_sys::table_close(from, no_lock);
        pg_sys::table_close(to, no_lock);
        tables::rebuild_indexes(new);
    }
}
