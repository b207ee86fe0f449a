//! What PostgreSQL's macros say about an open relation.

use std::ffi::CStr;

use crate::pg::versions::files;
use pgrx::pg_sys;

/// `InvalidSubTransactionId` of PostgreSQL's c.h.
const NO_SUBTRANSACTION: pg_sys::SubTransactionId = 0;

/// Identity of a relation's files, comparable and hashable: tablespace, database, file node and, of a temporary table, the
/// backend that owns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileNode {
    pub tablespace: pg_sys::Oid,
    pub database: pg_sys::Oid,
    pub node: pg_sys::Oid,
    pub backend: i32,
}

/// The files an open relation has now.
pub fn file_node(rel: pg_sys::Relation) -> FileNode {
    let (tablespace, database, node) = files::parts(&files::of(rel));
    // SAFETY: `rel` is an open relation, so its relcache entry is valid.
    let backend = unsafe { (*rel).rd_backend };
    FileNode { tablespace, database, node, backend }
}

/// OID of an open relation.
pub fn oid(rel: pg_sys::Relation) -> pg_sys::Oid {
    // SAFETY: `rel` is an open relation, so its relcache entry is valid.
    unsafe { (*rel).rd_id }
}

/// Name of an open relation, for messages.
pub fn name(rel: pg_sys::Relation) -> String {
    // SAFETY: `rel` is an open relation; relname is a NUL-terminated array inside its pg_class row.
    unsafe { CStr::from_ptr((*(*rel).rd_rel).relname.data.as_ptr()) }.to_string_lossy().into_owned()
}

/// OID of the table an open relation stands for: while a table is rewritten its new files belong to a transient relation,
/// whose `relrewrite` names the table.
pub fn table_oid(rel: pg_sys::Relation) -> pg_sys::Oid {
    // SAFETY: `rel` is an open relation, so its pg_class row is there.
    let rewrite = unsafe { (*(*rel).rd_rel).relrewrite };
    if rewrite == pg_sys::InvalidOid {
        oid(rel)
    } else {
        rewrite
    }
}

/// Whether an open relation is a transient one whose files are to take the place of those of a table that others can see.
/// Nobody gets at them before that is committed. A table of this transaction does not count: to others, even the list rows
/// of its present life would look like those of a table that is gone.
pub fn replaces_committed(rel: pg_sys::Relation) -> bool {
    let table = table_oid(rel);
    if table == oid(rel) {
        return false;
    }
    // SAFETY: the statement that rewrites the table holds its lock, so that it can be opened without another.
    unsafe {
        let original = pgrx::PgRelation::with_lock(table, pg_sys::NoLock as pg_sys::LOCKMODE);
        (*original.as_ptr()).rd_createSubid == NO_SUBTRANSACTION
    }
}

/// Whether an open relation is a temporary table, whose pages live in this backend's own buffers.
pub fn is_temporary(rel: pg_sys::Relation) -> bool {
    // SAFETY: `rel` is an open relation, so its pg_class row is there.
    unsafe { (*(*rel).rd_rel).relpersistence as u8 == pg_sys::RELPERSISTENCE_TEMP }
}

/// Whether changes to an open relation must be logged (`RelationNeedsWAL` of PostgreSQL's rel.h): a permanent relation,
/// unless `wal_level` is `minimal` and this transaction made its files.
pub fn needs_wal(rel: pg_sys::Relation) -> bool {
    // SAFETY: `rel` is an open relation, so its relcache entry and pg_class row are there.
    unsafe {
        (*(*rel).rd_rel).relpersistence as u8 == pg_sys::RELPERSISTENCE_PERMANENT
            && (wal_is_needed()
                || ((*rel).rd_createSubid == NO_SUBTRANSACTION && files::first_replaced_in(&*rel) == NO_SUBTRANSACTION))
    }
}

/// Whether `wal_level` wants everything logged (`XLogIsNeeded` of PostgreSQL's xlog.h).
pub fn wal_is_needed() -> bool {
    // SAFETY: a setting fixed at server start.
    unsafe { pg_sys::wal_level >= pg_sys::WalLevel::WAL_LEVEL_REPLICA as i32 }
}

/// Number of blocks of the main fork. `RelationGetNumberOfBlocks` cannot say so: it asks the table access method, which
/// reports the size of the whole table.
pub fn main_fork_blocks(rel: pg_sys::Relation) -> u32 {
    // SAFETY: `rel` is an open relation with storage.
    unsafe { pg_sys::smgrnblocks(pg_sys::RelationGetSmgr(rel), pg_sys::ForkNumber::MAIN_FORKNUM) }
}
