//! The tables that pg_upgrade carries, and whether their deltas hold rows.

use cass_storage::merge::Cursor;
use pgrx::pg_sys::{self, Oid};

use crate::catalog::cass_am_oid;
use crate::delta::{Delta, DeltaCursor};
use crate::segment::{metapage, relation, source};

/// `oideq` of pg_proc.dat.
const OIDEQ: u32 = 184;

/// The cass tables of this database, but for temporary ones, which end with their sessions.
pub fn permanent() -> Vec<Oid> {
    let Some(cass) = cass_am_oid() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut key = pg_sys::ScanKeyData::default();
    // SAFETY: pg_class is open while it is scanned, by one of its columns; each row is looked at before the scan moves on.
    unsafe {
        pg_sys::ScanKeyInit(
            &raw mut key,
            pg_sys::Anum_pg_class_relam as pg_sys::AttrNumber,
            pg_sys::BTEqualStrategyNumber as pg_sys::StrategyNumber,
            Oid::from(OIDEQ),
            pg_sys::Datum::from(cass),
        );
        let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
        let catalog = pg_sys::table_open(pg_sys::RelationRelationId, lock);
        let no_index = pg_sys::InvalidOid;
        let scan = pg_sys::systable_beginscan(catalog, no_index, false, std::ptr::null_mut(), 1, &raw mut key);
        loop {
            let tuple = pg_sys::systable_getnext(scan);
            if tuple.is_null() {
                break;
            }
            let form: &pg_sys::FormData_pg_class = &*pg_sys::GETSTRUCT(tuple).cast();
            if form.relpersistence as u8 == pg_sys::RELPERSISTENCE_PERMANENT {
                found.push(form.oid);
            }
        }
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(catalog, lock);
    }
    found
}

/// Whether `snapshot` sees a row, a tombstone or an anchor in the delta of an open table.
pub fn delta_holds_rows(rel: pg_sys::Relation, snapshot: pg_sys::Snapshot) -> bool {
    let Some(delta) = Delta::open(rel, metapage::identity(rel).storage_id, pg_sys::AccessShareLock) else {
        return false;
    };
    let cursor =
        DeltaCursor::open_all(&delta, snapshot).unwrap_or_else(|error| source::raise(&relation::name(rel), &error));
    let holds_rows = cursor.key().is_some();
    cursor.close();
    delta.close();
    holds_rows
}
