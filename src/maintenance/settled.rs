//! Whether all snapshots see the same of a table.

use pgrx::pg_sys;

use crate::delta::relation::column;
use crate::delta::Delta;
use crate::pg::visibility::is_same_to_all;
use crate::read::TableState;
use crate::segment::list::List;

/// `int8eq` of pg_proc.dat.
const INT8EQ: u32 = 467;

/// Whether every snapshot sees the same rows of a table, those before `horizon` having ended for all. The caller keeps writers out.
pub fn is_settled(state: &TableState, horizon: pg_sys::TransactionId) -> bool {
    list_is_settled(state, horizon) && delta_is_settled(state, horizon)
}

fn list_is_settled(state: &TableState, horizon: pg_sys::TransactionId) -> bool {
    let mut settled = true;
    let list = List::open(pg_sys::AccessShareLock);
    list.scan_physical(state.storage_id, |row| settled &= row.is_same_to_all(horizon));
    list.close(pg_sys::AccessShareLock);
    settled
}

fn delta_is_settled(state: &TableState, horizon: pg_sys::TransactionId) -> bool {
    let Some(delta) = Delta::open(state.rel, state.storage_id, pg_sys::AccessShareLock) else { return true };
    let mut key = pg_sys::ScanKeyData::default();
    let mut any = pg_sys::SnapshotData { snapshot_type: pg_sys::SnapshotType::SNAPSHOT_ANY, ..Default::default() };
    let mut settled = true;
    // SAFETY: the delta is open; key and snapshot live until the scan ends; each tuple is looked at before the scan moves on.
    unsafe {
        pg_sys::ScanKeyInit(
            &raw mut key,
            column::STORAGE_ID,
            pg_sys::BTEqualStrategyNumber as pg_sys::StrategyNumber,
            pg_sys::Oid::from(INT8EQ),
            pg_sys::Datum::from(delta.storage_id as i64),
        );
        let scan = pg_sys::systable_beginscan(delta.heap, pg_sys::InvalidOid, false, &raw mut any, 1, &raw mut key);
        while settled {
            let tuple = pg_sys::systable_getnext(scan);
            if tuple.is_null() {
                break;
            }
            settled = is_same_to_all((*tuple).t_data, horizon);
        }
        pg_sys::systable_endscan(scan);
    }
    delta.close();
    settled
}
