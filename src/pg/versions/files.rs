//! The files of relations: `RelFileNode` in PostgreSQL 15, `RelFileLocator` from 16 on.

use pgrx::pg_sys;

#[cfg(not(feature = "pg15"))]
pub use pg_sys::RelFileLocator as Locator;
#[cfg(feature = "pg15")]
pub use pg_sys::RelFileNode as Locator;

/// The files an open relation has now.
pub fn of(rel: pg_sys::Relation) -> Locator {
    // SAFETY: `rel` is an open relation, so its relcache entry is valid.
    unsafe {
        #[cfg(feature = "pg15")]
        return (*rel).rd_node;
        #[cfg(not(feature = "pg15"))]
        return (*rel).rd_locator;
    }
}

/// Tablespace, database and number of files.
pub fn parts(files: &Locator) -> (pg_sys::Oid, pg_sys::Oid, pg_sys::Oid) {
    #[cfg(feature = "pg15")]
    return (files.spcNode, files.dbNode, files.relNode);
    #[cfg(not(feature = "pg15"))]
    return (files.spcOid, files.dbOid, files.relNumber);
}

/// The files that `rel` would have in a tablespace under a number of its own.
///
/// # Safety
/// `rel` is open and locked exclusively.
pub unsafe fn new_in(rel: pg_sys::Relation, tablespace: pg_sys::Oid) -> Locator {
    let nobody = std::ptr::null_mut();
    // SAFETY: promised by the caller; the number is only sought, not written anywhere.
    unsafe {
        let persistence = (*(*rel).rd_rel).relpersistence;
        #[cfg(feature = "pg15")]
        return Locator {
            spcNode: tablespace,
            relNode: pg_sys::GetNewRelFileNode(tablespace, nobody, persistence),
            ..of(rel)
        };
        #[cfg(not(feature = "pg15"))]
        return Locator {
            spcOid: tablespace,
            relNumber: pg_sys::GetNewRelFileNumber(tablespace, nobody, persistence),
            ..of(rel)
        };
    }
}

/// Notes that this transaction has given `rel` new files (`RelationAssumeNewRelfilenode` of relcache.c).
///
/// # Safety
/// `rel` is open and has just got them.
pub unsafe fn assume_new(rel: pg_sys::Relation) {
    // SAFETY: promised by the caller.
    unsafe {
        #[cfg(feature = "pg15")]
        pg_sys::RelationAssumeNewRelfilenode(rel);
        #[cfg(not(feature = "pg15"))]
        pg_sys::RelationAssumeNewRelfilelocator(rel);
    }
}

/// Gives `rel` new, empty files (`RelationSetNewRelfilenode` of relcache.c).
///
/// # Safety
/// `rel` is open and locked exclusively.
pub unsafe fn set_new(rel: pg_sys::Relation) {
    // SAFETY: promised by the caller.
    unsafe {
        let persistence = (*(*rel).rd_rel).relpersistence;
        #[cfg(feature = "pg15")]
        pg_sys::RelationSetNewRelfilenode(rel, persistence);
        #[cfg(not(feature = "pg15"))]
        pg_sys::RelationSetNewRelfilenumber(rel, persistence);
    }
}

/// The subtransaction that first gave the relation new files, if it is of this transaction; else 0.
pub fn first_replaced_in(rel: &pg_sys::RelationData) -> pg_sys::SubTransactionId {
    #[cfg(feature = "pg15")]
    return rel.rd_firstRelfilenodeSubid;
    #[cfg(not(feature = "pg15"))]
    return rel.rd_firstRelfilelocatorSubid;
}

/// The subtransaction that last gave the relation new files, if it is of this transaction; else 0.
pub fn last_replaced_in(rel: &pg_sys::RelationData) -> pg_sys::SubTransactionId {
    #[cfg(feature = "pg15")]
    return rel.rd_newRelfilenodeSubid;
    #[cfg(not(feature = "pg15"))]
    return rel.rd_newRelfilelocatorSubid;
}

/// Tells other backends that the sizes of a relation's files have changed (`CacheInvalidateSmgr` of inval.c).
///
/// # Safety
/// `smgr` is an open relation's storage manager.
pub unsafe fn invalidate(smgr: pg_sys::SMgrRelation) {
    // SAFETY: promised by the caller.
    unsafe {
        #[cfg(feature = "pg15")]
        pg_sys::CacheInvalidateSmgr((*smgr).smgr_rnode);
        #[cfg(not(feature = "pg15"))]
        pg_sys::CacheInvalidateSmgr((*smgr).smgr_rlocator);
    }
}
