//! Publications: logical replication of a cass table sends nothing. So none may be named in one, and one that covers all tables
//! or a schema's says which of them it leaves out.

use pgrx::pg_sys::{self, Oid, PublicationObjSpecType};
use pgrx::Spi;

use super::frame::{self, Statement};
use super::nodes;
use super::utility::{Call, Remainder};
use crate::catalog::identifier::{owned, quote};
use crate::catalog::{self, primary_key};
use crate::error::{keeping_sqlstate, Report};

/// Tables that a warning names.
const NAMED: usize = 10;

/// CREATE PUBLICATION.
pub(super) fn create(call: &Call) -> Remainder {
    // SAFETY: the hook dispatches by the node's tag; a publication has a name.
    unsafe {
        let statement: *mut pg_sys::CreatePublicationStmt = (*call.statement).utilityStmt.cast();
        refuse_cass_tables((*statement).pubobjects);
        warn_when_run(owned((*statement).pubname))
    }
}

/// ALTER PUBLICATION; dropping a table from one is no concern.
pub(super) fn alter(call: &Call) -> Remainder {
    // SAFETY: the hook dispatches by the node's tag; a publication has a name.
    unsafe {
        let statement: *mut pg_sys::AlterPublicationStmt = (*call.statement).utilityStmt.cast();
        if (*statement).action == pg_sys::AlterPublicationAction::AP_DropObjects || (*statement).pubobjects.is_null() {
            return Remainder::Run;
        }
        refuse_cass_tables((*statement).pubobjects);
        warn_when_run(owned((*statement).pubname))
    }
}

/// ALTER TABLE ... SET SCHEMA, which can bring a cass table into a schema that is published.
pub(super) fn move_to_schema(call: &Call) -> Remainder {
    // SAFETY: the hook dispatches by the node's tag; what is no relation has none.
    let moved = unsafe {
        let statement: *mut pg_sys::AlterObjectSchemaStmt = (*call.statement).utilityStmt.cast();
        nodes::find_relation((*statement).relation)
    };
    let Some(table) = moved.filter(|table| catalog::is_cass_oid(*table)) else {
        return Remainder::Run;
    };
    let before = covering(table);
    frame::begin(Statement::Other, Vec::new(), move |_| {
        let publications = covering(table);
        if publications.iter().any(|publication| !before.contains(publication)) {
            warn_of(table, &publications);
        }
    });
    Remainder::RunFrame
}

/// Lets the statement be run, and then warns of the cass tables that its publication covers.
fn warn_when_run(publication: String) -> Remainder {
    frame::begin(Statement::Other, Vec::new(), move |_| warn_of_tables(&publication));
    Remainder::RunFrame
}

fn warn_of_tables(publication: &str) {
    let Some(access_method) = catalog::cass_am_oid() else { return };
    let tables = names(
        "SELECT c.oid::pg_catalog.regclass::text FROM pg_catalog.pg_class c \
         JOIN pg_catalog.pg_get_publication_tables($1) AS p ON p.relid = c.oid WHERE c.relam = $2 ORDER BY 1",
        &[publication.into(), access_method.into()],
    );
    if tables.is_empty() {
        return;
    }
    let others = tables.len().saturating_sub(NAMED);
    let mut listed = tables.into_iter().take(NAMED).collect::<Vec<_>>().join(", ");
    if others > 0 {
        listed.push_str(&format!(" and {others} more"));
    }
    Report::new("01000", format!("publication {} does not send changes of cass tables", quote(publication)))
        .detail(format!("Logical replication does not see the changes of: {listed}."))
        .hint(INSTEAD)
        .warn();
}

/// Warns that changes of a table that has become cass are not sent by the publications that cover it.
pub(super) fn warn_of_publications(table: Oid) {
    let publications = covering(table);
    if !publications.is_empty() {
        warn_of(table, &publications);
    }
}

/// The publications that cover a table without naming it, as SQL writes their names.
fn covering(table: Oid) -> Vec<String> {
    names(
        "SELECT pg_catalog.quote_ident(p.pubname) FROM pg_catalog.pg_publication p, pg_catalog.pg_class c \
         WHERE c.oid = $1 AND c.relpersistence = 'p' AND (p.puballtables OR EXISTS (SELECT FROM \
         pg_catalog.pg_publication_namespace n WHERE n.pnpubid = p.oid AND n.pnnspid = c.relnamespace)) ORDER BY 1",
        &[table.into()],
    )
}

fn warn_of(table: Oid, publications: &[String]) {
    let name = quote(&primary_key::relation_name(table));
    Report::new("01000", format!("changes of cass table {name} are not sent to subscribers"))
        .detail(format!(
            "Logical replication does not see the changes of cass tables. Publications that cover it: {}.",
            publications.join(", ")
        ))
        .hint(INSTEAD)
        .warn();
}

const INSTEAD: &str = "Use streaming replication, which sends everything.";

/// The names that a query of the catalogs gives.
fn names(query: &str, arguments: &[pgrx::datum::DatumWithOid]) -> Vec<String> {
    let rows = keeping_sqlstate(|| {
        Spi::connect(|client| {
            client.select(query, None, arguments)?.map(|row| row.get::<String>(1)).collect::<Result<Vec<_>, _>>()
        })
    });
    match rows {
        Ok(names) => names.into_iter().flatten().collect(),
        Err(error) => Report::new("XX000", format!("could not read the publications: {error}")).raise(),
    }
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
