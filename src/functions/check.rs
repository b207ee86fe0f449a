//! `cass_check(regclass)`: the faults of a table, a row for each; none of a sound one.
//!
//! A function of the plain calling convention that returns its rows in a tuplestore, so that any number of them needs little memory.

use pgrx::pg_sys::{self, Datum, FunctionCallInfo};
use pgrx::{extension_sql, pg_guard};

use crate::catalog::is_cass_relation;
use crate::check::check_table;
use crate::check::fault::{Faults, COLUMNS};
use crate::error::Report;
use crate::segment::relation;

extension_sql!(
    r#"
CREATE FUNCTION cass_check("table" regclass,
    OUT kind text, OUT relation regclass, OUT segment bigint, OUT block bigint, OUT detail text)
  RETURNS SETOF record VOLATILE STRICT PARALLEL UNSAFE COST 1000000 ROWS 1 LANGUAGE C AS 'MODULE_PATHNAME', 'cass_check';
COMMENT ON FUNCTION cass_check(regclass) IS 'faults in what is stored of a cass table; no rows if it is sound';
"#,
    name = "cass_check"
);

/// Declares `cass_check` as a function of the version 1 calling convention.
#[no_mangle]
pub extern "C" fn pg_finfo_cass_check() -> &'static pg_sys::Pg_finfo_record {
    const VERSION_1: pg_sys::Pg_finfo_record = pg_sys::Pg_finfo_record { api_version: 1 };
    &VERSION_1
}

/// The function's entry point.
///
/// # Errors
/// 42809 where the relation is no cass table, 42501 for who neither owns it nor is a superuser, 0A000 for a temporary table of another
/// session. Damage of the table is returned as rows.
///
/// # Safety
/// Called by PostgreSQL's function manager, as declared in SQL.
#[no_mangle]
#[pg_guard]
pub unsafe extern "C-unwind" fn cass_check(fcinfo: FunctionCallInfo) -> Datum {
    // SAFETY: the function manager passes a valid call of one argument that is not null. The owner's rights hold from when the table is
    // open until it has been checked, or an error ends the transaction or subtransaction, which puts them back.
    unsafe {
        let table = pg_sys::Oid::from((*fcinfo).args.as_slice(1)[0].value.value() as u32);
        pg_sys::InitMaterializedSRF(fcinfo, 0);
        let result = (*fcinfo).resultinfo.cast::<pg_sys::ReturnSetInfo>();
        let descriptor = (*result).setDesc;
        if (*descriptor).natts as usize != COLUMNS {
            Report::new("XX000", "function cass_check is declared with other columns than it returns")
                .hint("Make the extension anew, from the files of the version that is installed.")
                .raise();
        }
        let rel = open(table);
        let mut faults = Faults::into_store((*result).setResult, descriptor);
        let (mut user, mut context) = (pg_sys::InvalidOid, 0);
        pg_sys::GetUserIdAndSecContext(&raw mut user, &raw mut context);
        let restricted = context | pg_sys::SECURITY_RESTRICTED_OPERATION as i32;
        pg_sys::SetUserIdAndSecContext((*(*rel).rd_rel).relowner, restricted);
        let settings = pg_sys::NewGUCNestLevel();
        check_table(rel, &mut faults);
        pg_sys::AtEOXact_GUC(false, settings);
        pg_sys::SetUserIdAndSecContext(user, context);
        pg_sys::relation_close(rel, pg_sys::AccessShareLock as pg_sys::LOCKMODE);
        (*fcinfo).isnull = true;
        Datum::from(0_usize)
    }
}

/// Opens a table that the user may have checked.
fn open(table: pg_sys::Oid) -> pg_sys::Relation {
    // SAFETY: opened by OID, which raises where there is no such relation; rights are looked up by OID.
    unsafe {
        let rel = pg_sys::relation_open(table, pg_sys::AccessShareLock as pg_sys::LOCKMODE);
        let name = relation::name(rel);
        if !is_cass_relation(rel) {
            Report::new("42809", format!("\"{name}\" is not a table of access method cass"))
                .hint("cass_check checks cass tables. Extension amcheck checks heap tables and B-tree indexes.")
                .raise();
        }
        if !pg_sys::superuser() && !crate::pg::versions::owner::owns_relation(table) {
            Report::new("42501", format!("must be owner of table {name}"))
                .detail("What is found may show values of rows.")
                .raise();
        }
        // Its pages may be in the other session's memory only.
        if relation::is_temporary(rel) && !(*rel).rd_islocaltemp {
            Report::new("0A000", format!("table \"{name}\" is a temporary table of another session"))
                .hint("Check it in the session that made it.")
                .raise();
        }
        rel
    }
}
