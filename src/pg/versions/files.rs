//! The files of a relation. What 15 calls a file node is a file locator from 16 on (`relfilenode.h`, `relfilelocator.h`).

use pgrx::pg_sys;
use std::ffi::CStr;

#[cfg(not(feature = "pg15"))]
pub use pg_sys::RelFileLocator as FileLocator;
#[cfg(feature = "pg15")]
pub use pg_sys::RelFileNode as FileLocator;

/// Tablespace, database and number of a relation's files.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    pub tablespace: pg_sys::Oid,
    pub database: pg_sys::Oid,
    pub number: pg_sys::Oid,
}

/// The parts of a locator.
pub fn parts(locator: &FileLocator) -> Parts {
    #[cfg(feature = "pg15")]
    return Parts { tablespace: locator.spcNode, database: locator.dbNode, number: locator.relNode };
    #[cfg(not(feature = "pg15"))]
    return Parts { tablespace: locator.spcOid, database: locator.dbOid, number: locator.relNumber };
}

/// The locator of these parts.
pub fn locator_of(parts: Parts) -> FileLocator {
    #[cfg(feature = "pg15")]
    return FileLocator { spcNode: parts.tablespace, dbNode: parts.database, relNode: parts.number };
    #[cfg(not(feature = "pg15"))]
    return FileLocator { spcOid: parts.tablespace, dbOid: parts.database, relNumber: parts.number };
}

/// Where an open relation's files are.
///
/// # Safety
/// `rel` is open.
pub unsafe fn locator(rel: pg_sys::Relation) -> FileLocator {
    // SAFETY: promised by the caller.
    unsafe {
        #[cfg(feature = "pg15")]
        return (*rel).rd_node;
        #[cfg(not(feature = "pg15"))]
        return (*rel).rd_locator;
    }
}

/// The subtransactions of this transaction that gave an open relation its newest files, and the first ones; 0 for none.
///
/// # Safety
/// `rel` is open.
pub unsafe fn file_subtransactions(rel: pg_sys::Relation) -> (pg_sys::SubTransactionId, pg_sys::SubTransactionId) {
    // SAFETY: promised by the caller.
    unsafe {
        #[cfg(feature = "pg15")]
        return ((*rel).rd_newRelfilenodeSubid, (*rel).rd_firstRelfilenodeSubid);
        #[cfg(not(feature = "pg15"))]
        return ((*rel).rd_newRelfilelocatorSubid, (*rel).rd_firstRelfilelocatorSubid);
    }
}

/// A number that no files in the tablespace have.
///
/// # Safety
/// `persistence` is one of pg_class's.
pub unsafe fn new_number(tablespace: pg_sys::Oid, persistence: std::ffi::c_char) -> pg_sys::Oid {
    // SAFETY: promised by the caller; no catalog is to be asked.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::GetNewRelFileNode(tablespace, std::ptr::null_mut(), persistence);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::GetNewRelFileNumber(tablespace, std::ptr::null_mut(), persistence);
    }
}

/// Gives a relation new, empty files.
///
/// # Safety
/// `rel` is open and locked exclusively.
pub unsafe fn set_new_files(rel: pg_sys::Relation) {
    // SAFETY: promised by the caller.
    unsafe {
        let persistence = (*(*rel).rd_rel).relpersistence;
        #[cfg(feature = "pg15")]
        pg_sys::RelationSetNewRelfilenode(rel, persistence);
        #[cfg(not(feature = "pg15"))]
        pg_sys::RelationSetNewRelfilenumber(rel, persistence);
    }
}

/// Notes that a relation has got new files in this transaction.
///
/// # Safety
/// `rel` is open and locked exclusively.
pub unsafe fn assume_new_files(rel: pg_sys::Relation) {
    // SAFETY: promised by the caller.
    unsafe {
        #[cfg(feature = "pg15")]
        pg_sys::RelationAssumeNewRelfilenode(rel);
        #[cfg(not(feature = "pg15"))]
        pg_sys::RelationAssumeNewRelfilelocator(rel);
    }
}

/// Tells other backends that the sizes of a relation's files have changed.
///
/// # Safety
/// `smgr` is open.
pub unsafe fn invalidate_sizes(smgr: pg_sys::SMgrRelation) {
    // SAFETY: promised by the caller.
    unsafe {
        #[cfg(feature = "pg15")]
        pg_sys::CacheInvalidateSmgr((*smgr).smgr_rnode);
        #[cfg(not(feature = "pg15"))]
        pg_sys::CacheInvalidateSmgr((*smgr).smgr_rlocator);
    }
}

/// Path, from the data directory, of the first file of a relation's main fork; `backend` is whose temporary relation it is.
pub fn main_fork_path(parts: Parts, backend: i32) -> String {
    let main = pg_sys::ForkNumber::MAIN_FORKNUM;
    // SAFETY: the function makes a NUL-terminated string, in the current memory context or to be returned.
    unsafe {
        let path = pg_sys::GetRelationPath(parts.database, parts.tablespace, parts.number, backend, main);
        #[cfg(not(feature = "pg18"))]
        {
            let copy = CStr::from_ptr(path).to_string_lossy().into_owned();
            pg_sys::pfree(path.cast());
            copy
        }
        #[cfg(feature = "pg18")]
        CStr::from_ptr(path.str_.as_ptr()).to_string_lossy().into_owned()
    }
}

#[cfg(any(test, feature = "pg_test"))]
/// The table access method's callback that makes new files.
pub type MakeFiles = unsafe extern "C-unwind" fn(
    pg_sys::Relation,
    *const FileLocator,
    std::ffi::c_char,
    *mut pg_sys::TransactionId,
    *mut pg_sys::MultiXactId,
);

#[cfg(any(test, feature = "pg_test"))]
/// Gives a routine made from another one its callback that makes new files, under the name that the version has for it.
pub fn with_maker(mut routine: pg_sys::TableAmRoutine, make: MakeFiles) -> pg_sys::TableAmRoutine {
    #[cfg(feature = "pg15")]
    {
        routine.relation_set_new_filenode = Some(make);
    }
    #[cfg(not(feature = "pg15"))]
    {
        routine.relation_set_new_filelocator = Some(make);
    }
    routine
}
