//! Publications: logical replication of a cass table sends nothing, so none may be named in one.

use pgrx::pg_sys::{self, PublicationObjSpecType};

use super::nodes;
use super::utility::{Call, Remainder};
use crate::catalog::{self, primary_key};
use crate::error::Report;

/// CREATE PUBLICATION.
pub(super) fn create(call: &Call) -> Remainder {
    // SAFETY: the hook dispatches by the node's tag.
    unsafe {
        let statement: *mut pg_sys::CreatePublicationStmt = (*call.statement).utilityStmt.cast();
        refuse_cass_tables((*statement).pubobjects);
    }
    Remainder::Run
}

/// ALTER PUBLICATION; dropping a table from one is no concern.
pub(super) fn alter(call: &Call) -> Remainder {
    // SAFETY: the hook dispatches by the node's tag.
    unsafe {
        let statement: *mut pg_sys::AlterPublicationStmt = (*call.statement).utilityStmt.cast();
        if (*statement).action != pg_sys::AlterPublicationAction::AP_DropObjects {
            refuse_cass_tables((*statement).pubobjects);
        }
    }
    Remainder::Run
}

/// # Safety
/// `objects` is a list of PublicationObjSpec.
unsafe fn refuse_cass_tables(objects: *mut pg_sys::List) {
    // SAFETY: the caller vouches for the list; a table's entry has its name.
    unsafe {
        for object in nodes::members::<pg_sys::PublicationObjSpec>(objects) {
            if (*object).pubobjtype != PublicationObjSpecType::PUBLICATIONOBJ_TABLE || (*object).pubtable.is_null() {
                continue;
            }
            let Some(table) = nodes::find_relation((*(*object).pubtable).relation) else {
                continue;
            };
            if catalog::is_cass_oid(table) {
                Report::new("0A000", format!("cannot publish table \"{}\"", primary_key::relation_name(table)))
                    .detail("Logical replication does not see the changes of cass tables.")
                    .hint("Use streaming replication.")
                    .raise();
            }
        }
    }
}
