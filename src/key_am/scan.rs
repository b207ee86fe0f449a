//! Look-ups of one row by its whole key, for ON CONFLICT and the appliers of logical replication.

use pgrx::pg_sys::{self, Datum, IndexScanDesc, Relation, ScanKey};
use pgrx::{pg_guard, PgBox, PgRelation};

use crate::catalog;
use crate::error::Report;

/// State of a scan, which gives at most one row.
#[repr(C)]
struct Position {
    answered: bool,
    marked: bool,
}

/// Whether the index can give the values of a column: it holds none.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn can_return(_index: Relation, _column: i32) -> bool {
    false
}

/// Begins a scan.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn begin(index: Relation, keys: i32, order_bys: i32) -> IndexScanDesc {
    // SAFETY: the descriptor and the state live in the caller's memory context, for as long as the scan.
    unsafe {
        let scan = pg_sys::RelationGetIndexScan(index, keys, order_bys);
        (*scan).opaque = PgBox::<Position>::alloc0().into_pg().cast();
        scan
    }
}

/// Begins again, with new scan keys if there are any.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn restart(
    scan: IndexScanDesc,
    keys: ScanKey,
    count: i32,
    _order_bys: ScanKey,
    _order_by_count: i32,
) {
    // SAFETY: the scan has room for the number of keys it was begun with, and PostgreSQL passes no more.
    unsafe {
        if !keys.is_null() && count > 0 {
            std::ptr::copy(keys, (*scan).keyData, count as usize);
        }
        position(scan).answered = false;
    }
}

/// Gives the row of the key, once.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn next(scan: IndexScanDesc, _direction: pg_sys::ScanDirection::Type) -> bool {
    // SAFETY: PostgreSQL passes a scan that was begun here and has its table and snapshot set.
    unsafe {
        if std::mem::replace(&mut position(scan).answered, true) {
            return false;
        }
        match look_up(scan, (*scan).heapRelation) {
            Some(row) => {
                (*scan).xs_heaptid = row;
                (*scan).xs_recheck = false;
                true
            }
            None => false,
        }
    }
}

/// Adds the row of the key to a bitmap.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn bitmap(scan: IndexScanDesc, bitmap: *mut pg_sys::TIDBitmap) -> i64 {
    // SAFETY: a bitmap scan has no table set; the index and its table are locked by the query.
    unsafe {
        let table = pg_sys::IndexGetRelation((*(*scan).indexRelation).rd_id, false);
        let table = PgRelation::with_lock(table, pg_sys::AccessShareLock as i32);
        match look_up(scan, table.as_ptr()) {
            Some(mut row) => {
                pg_sys::tbm_add_tuples(bitmap, &mut row, 1, false);
                1
            }
            None => 0,
        }
    }
}

/// Ends a scan; its memory goes with its context.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn end(_scan: IndexScanDesc) {}

/// Remembers the position.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn mark(scan: IndexScanDesc) {
    // SAFETY: the scan was begun here.
    let position = unsafe { position(scan) };
    position.marked = position.answered;
}

/// Goes back to the position remembered last.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn restore(scan: IndexScanDesc) {
    // SAFETY: the scan was begun here.
    let position = unsafe { position(scan) };
    position.answered = position.marked;
}

/// The scan's state.
///
/// # Safety
/// `scan` was begun by [`begin`] and has not ended.
unsafe fn position<'a>(scan: IndexScanDesc) -> &'a mut Position {
    // SAFETY: `begin` put it there; a scan is used by one caller at a time.
    unsafe { &mut *(*scan).opaque.cast() }
}

/// The row that the scan keys name; they must give every key column by `=`.
///
/// # Safety
/// `scan` was begun by [`begin`], `table` is its index's table, open.
unsafe fn look_up(scan: IndexScanDesc, table: Relation) -> Option<pg_sys::ItemPointerData> {
    // SAFETY: the caller vouches for both; the scan has `numberOfKeys` keys.
    unsafe {
        let description = catalog::table_of(table);
        let key = description.key.as_deref()?;
        let scan_keys: &[pg_sys::ScanKeyData] = match (*scan).numberOfKeys {
            count if count > 0 => std::slice::from_raw_parts((*scan).keyData, count as usize),
            _ => &[],
        };
        if scan_keys.iter().any(|scan_key| scan_key.sk_flags & pg_sys::SK_ISNULL as i32 != 0) {
            return None;
        }
        let mut values: Vec<Datum> = Vec::with_capacity(key.columns.len());
        for number in 1..=key.columns.len() {
            let equal = scan_keys.iter().find(|scan_key| {
                usize::from(scan_key.sk_attno.unsigned_abs()) == number
                    && u32::from(scan_key.sk_strategy) == pg_sys::BTEqualStrategyNumber
            });
            match equal {
                Some(scan_key) => values.push(scan_key.sk_argument),
                None => Report::new("0A000", "an index of access method cass_key is searched by the whole key only")
                    .detail("A key column is not given by \"=\".")
                    .raise(),
            }
        }
        crate::read::fetch_key(table, (*scan).xs_snapshot, &key.encode_values(&values).bytes)
    }
}
