//! Whether the current user owns an object: a function for each kind in PostgreSQL 15, one for all from 16 on (aclchk.c).

use pgrx::pg_sys;

/// Whether the current user owns a relation.
pub fn owns_relation(relation: pg_sys::Oid) -> bool {
    // SAFETY: a look-up by OID inside a transaction.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::pg_class_ownercheck(relation, pg_sys::GetUserId());
        #[cfg(not(feature = "pg15"))]
        return pg_sys::object_ownercheck(pg_sys::RelationRelationId, relation, pg_sys::GetUserId());
    }
}

/// Whether the current user owns the current database.
pub fn owns_database() -> bool {
    // SAFETY: as above.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::pg_database_ownercheck(pg_sys::MyDatabaseId, pg_sys::GetUserId());
        #[cfg(not(feature = "pg15"))]
        return pg_sys::object_ownercheck(pg_sys::DatabaseRelationId, pg_sys::MyDatabaseId, pg_sys::GetUserId());
    }
}
