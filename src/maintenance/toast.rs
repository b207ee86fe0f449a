//! Values that were moved out of a row: their chunks go with the last copy of the row version.
//!
//! Every version has chunks of its own, written with it. A snapshot that still reads an old segment finds its chunks, as
//! TOAST tables are read without regard to deletion until vacuum removes the rows for good.

use cass_storage::row::{Cell, RowView};
use cass_storage::segment::Column;
use cass_storage::Result;
use pgrx::pg_sys;

/// Place of a value in a TOAST table (`varatt_external` of PostgreSQL's postgres.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer {
    pub value: u32,
    pub table: u32,
}

/// First byte of a TOAST pointer, and the tag in the second byte of one whose value is on disk (`varattrib_1b_e`).
const POINTER: u8 = 1;
const ON_DISK: u8 = pg_sys::vartag_external::VARTAG_ONDISK as u8;

/// Adds the values that a row has in TOAST tables.
pub fn collect(row: &dyn RowView, columns: &[Column], found: &mut Vec<Pointer>) -> Result<()> {
    for column in columns {
        if let Cell::External(image) = row.cell(column.attnum)? {
            found.extend(pointer(image));
        }
    }
    Ok(())
}

/// Reads a TOAST pointer: header and tag, raw size, stored size, value OID, table OID. `None` for a value compressed in line.
fn pointer(image: &[u8]) -> Option<Pointer> {
    let number = |at: usize| Some(u32::from_ne_bytes(image.get(at..at + 4)?.try_into().ok()?));
    (image.first() == Some(&POINTER) && image.get(1) == Some(&ON_DISK))
        .then(|| Some(Pointer { value: number(10)?, table: number(14)? }))?
}

/// Deletes the chunks of values. Those that are gone already, or in another table's hands, are left.
pub fn delete(toast_table: pg_sys::Oid, values: &[Pointer]) {
    if values.is_empty() || toast_table == pg_sys::InvalidOid {
        return;
    }
    // SAFETY: the table is open and locked for writing while its rows are deleted; the snapshot, which has no owner, lives to
    // the end of the block.
    unsafe {
        let table = pg_sys::table_open(toast_table, pg_sys::RowExclusiveLock as pg_sys::LOCKMODE);
        let list = pg_sys::RelationGetIndexList(table);
        let indexes = pgrx::PgList::<pg_sys::Oid>::from_pg(list);
        // While the index is rebuilt concurrently there are two, one of which is not complete.
        let index = indexes.iter_oid().find(|index| pg_sys::get_index_isvalid(*index));
        let mut snapshot =
            pg_sys::SnapshotData { snapshot_type: pg_sys::SnapshotType::SNAPSHOT_TOAST, ..Default::default() };
        if let Some(index) = index {
            for value in values.iter().filter(|value| value.table == toast_table.to_u32()) {
                delete_value(table, index, &raw mut snapshot, value.value);
            }
        }
        pg_sys::table_close(table, pg_sys::NoLock as pg_sys::LOCKMODE);
    }
}

/// # Safety
/// `table` is an open TOAST table, `index` the OID of its index, `snapshot` a TOAST snapshot.
unsafe fn delete_value(table: pg_sys::Relation, index: pg_sys::Oid, snapshot: pg_sys::Snapshot, value: u32) {
    /// `oideq` of pg_proc.dat.
    const OIDEQ: u32 = 184;
    let mut key = pg_sys::ScanKeyData::default();
    // SAFETY: promised by the caller. heap_delete is told not to wait: a chunk that somebody deleted is none of ours.
    unsafe {
        pg_sys::ScanKeyInit(
            &raw mut key,
            1,
            pg_sys::BTEqualStrategyNumber as pg_sys::StrategyNumber,
            pg_sys::Oid::from(OIDEQ),
            pg_sys::Datum::from(pg_sys::Oid::from(value)),
        );
        let scan = pg_sys::systable_beginscan(table, index, true, snapshot, 1, &raw mut key);
        loop {
            let tuple = pg_sys::systable_getnext(scan);
            if tuple.is_null() {
                break;
            }
            let mut failure = pg_sys::TM_FailureData::default();
            pg_sys::heap_delete(
                table,
                &raw mut (*tuple).t_self,
                pg_sys::GetCurrentCommandId(true),
                std::ptr::null_mut(),
                false,
                &raw mut failure,
                false,
            );
        }
        pg_sys::systable_endscan(scan);
    }
}
