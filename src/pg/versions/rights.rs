//! Ownership (`acl.h`).

use pgrx::pg_sys;

/// Whether the current user owns a relation.
pub fn owns_relation(relation: pg_sys::Oid) -> bool {
    // SAFETY: looks into the catalogs.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::pg_class_ownercheck(relation, pg_sys::GetUserId());
        #[cfg(not(feature = "pg15"))]
        return pg_sys::object_ownercheck(pg_sys::RelationRelationId, relation, pg_sys::GetUserId());
    }
}

/// Whether the current user owns the session's database.
pub fn owns_database() -> bool {
    // SAFETY: looks into the catalogs.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::pg_database_ownercheck(pg_sys::MyDatabaseId, pg_sys::GetUserId());
        #[cfg(not(feature = "pg15"))]
        return pg_sys::object_ownercheck(pg_sys::DatabaseRelationId, pg_sys::MyDatabaseId, pg_sys::GetUserId());
    }
}
