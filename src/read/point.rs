//! Reading one key, or the version a row id names.

use super::segments::{with_latest_snapshot, with_newest, LatestSegments};
use super::{row, ColumnSet, TableState};
use crate::delta::probe::{probe, trace, Probe, Trace};
use crate::delta::write::Segments;
use crate::delta::DeltaCursor;
use crate::pg::injection;
use crate::pg::scratch::in_scratch;
use crate::pg::tid;
use crate::segment::list;
use cass_storage::merge::Cursor;
use cass_storage::row::{RowKind, RowView};
use pgrx::pg_sys;
use std::cell::RefCell;

/// Calls `work` with the row `snapshot` sees for `key`; not called where there is none, or a tombstone.
pub fn with_row<R>(
    state: &TableState,
    snapshot: pg_sys::Snapshot,
    key: &[u8],
    work: impl FnOnce(&dyn RowView) -> R,
) -> Option<R> {
    let mut work = Some(work);
    let mut call = |view: &dyn RowView| match work.take() {
        Some(work) if view.header().kind == RowKind::Row => Some(work(view)),
        _ => None,
    };
    if let Some(delta) = state.open_delta_for(snapshot) {
        let cursor = match DeltaCursor::open_key(&delta, snapshot, key) {
            Ok(cursor) => cursor,
            Err(error) => state.raise(&error),
        };
        let found = cursor.key().is_some();
        let result = if found { call(&cursor) } else { None };
        cursor.close();
        delta.close();
        if found {
            return result;
        }
    }
    injection::point("delta-searched");
    let entries = list::visible(state.rel, snapshot);
    with_newest(state, &entries, key, call).flatten()
}

/// The row id `snapshot` sees for a whole primary key.
pub fn row_id_of_key(state: &TableState, snapshot: pg_sys::Snapshot, key: &[u8]) -> Option<u64> {
    in_scratch(|| with_row(state, snapshot, key, |view| view.header().row_id))
}

/// The TID of the row with a whole primary key: the one an MVCC snapshot sees, else the newest there is.
///
/// # Safety
/// `rel` is an open, locked cass table; `snapshot` is valid.
pub unsafe fn fetch_key(
    rel: pg_sys::Relation,
    snapshot: pg_sys::Snapshot,
    key: &[u8],
) -> Option<pg_sys::ItemPointerData> {
    let state = TableState::of(rel);
    // SAFETY: promised by the caller.
    let kind = unsafe { (*snapshot).snapshot_type };
    let row_id = if kind == pg_sys::SnapshotType::SNAPSHOT_MVCC {
        row_id_of_key(&state, snapshot, key)
    } else {
        newest_row_id(&state, key)
    };
    row_id.map(tid::from_row_id)
}

/// What the delta has for a key now.
fn probe_now(state: &TableState, key: &[u8]) -> Probe {
    state.open_delta().map_or(Probe::Nothing, |delta| {
        let found = in_scratch(|| probe(&delta, key));
        delta.close();
        found
    })
}

/// The row id of a key's newest version, in progress or not.
fn newest_row_id(state: &TableState, key: &[u8]) -> Option<u64> {
    match probe_now(state, key) {
        Probe::Found(version) if version.kind != RowKind::Anchor => {
            (version.kind == RowKind::Row).then_some(version.row_id)
        }
        Probe::InProgress(writer) if !writer.anchor => Some(writer.row_id),
        _ => {
            let newest = LatestSegments::of(state).newest(key)?;
            (newest.1 == RowKind::Row).then_some(newest.0)
        }
    }
}

/// Where the version a row id names is, for readers that are not bound to a snapshot.
enum Whereabouts {
    /// The newest version of its key, which `replaced_by` may be replacing.
    Newest { replaced_by: Option<pg_sys::TransactionId> },
    /// Being written by somebody else.
    InProgress { xid: pg_sys::TransactionId, speculative_token: u32 },
    /// Replaced or deleted.
    Dead,
}

/// Keys of row ids this backend has met lately. A row id names one version for ever, so an entry is never wrong.
const REMEMBERED: usize = 1024;

thread_local! {
    static KEYS: RefCell<Vec<(u64, u64, Vec<u8>)>> = const { RefCell::new(Vec::new()) };
}

/// Notes the key of a row that was just read, so that an UPDATE of it need not look it up.
pub fn remember(storage_id: u64, row_id: u64, key: &[u8]) {
    KEYS.with_borrow_mut(|keys| {
        if keys.is_empty() {
            keys.resize(REMEMBERED, (0, 0, Vec::new()));
        }
        let entry = &mut keys[(row_id as usize) % REMEMBERED];
        (entry.0, entry.1) = (storage_id, row_id);
        entry.2.clear();
        entry.2.extend_from_slice(key);
    });
}

fn remembered(storage_id: u64, row_id: u64) -> Option<Vec<u8>> {
    KEYS.with_borrow(|keys| {
        let (storage, row, key) = keys.get((row_id as usize) % REMEMBERED)?;
        (*storage == storage_id && *row == row_id).then(|| key.clone())
    })
}

/// The key of the version a row id names, whether or not anybody sees it.
pub fn key_of_row_id(state: &TableState, row_id: u64) -> Option<Vec<u8>> {
    if let Some(key) = remembered(state.storage_id, row_id) {
        return Some(key);
    }
    let in_delta = state.open_delta().and_then(|delta| {
        let key = in_scratch(|| delta.key_of_row_id(row_id));
        delta.close();
        key
    });
    let key = in_delta.or_else(|| with_segment_row(state, row_id, |key, _| key.to_vec()))?;
    remember(state.storage_id, row_id, &key);
    Some(key)
}

/// Calls `work` with the version `row_id` in the segments that are listed now.
fn with_segment_row<R>(state: &TableState, row_id: u64, work: impl FnOnce(&[u8], &dyn RowView) -> R) -> Option<R> {
    let entries = with_latest_snapshot(|snapshot| list::visible(state.rel, snapshot));
    for entry in entries.iter() {
        match crate::segment::open_segment(state.rel, entry).find_row_id(row_id) {
            Ok(Some(cursor)) => return cursor.key().map(|key| work(key, &cursor)),
            Ok(None) => {}
            Err(error) => state.raise(&error),
        }
    }
    None
}

/// Judges the version `row_id` of `key` by what is there now (delta first, then the segments).
fn whereabouts(state: &TableState, row_id: u64, key: &[u8]) -> Whereabouts {
    let traced = state.open_delta().map(|delta| {
        let traced = in_scratch(|| trace(&delta, key, row_id));
        delta.close();
        traced
    });
    injection::point("delta-traced");
    match traced.unwrap_or(Trace::Elsewhere { replaced_by: None }) {
        Trace::There { replaced_by } => Whereabouts::Newest { replaced_by },
        Trace::InProgress(writer) => {
            Whereabouts::InProgress { xid: writer.xid, speculative_token: writer.speculative_token }
        }
        Trace::Superseded => Whereabouts::Dead,
        Trace::Elsewhere { replaced_by } => match LatestSegments::of(state).newest(key) {
            Some((newest, _)) if newest == row_id => Whereabouts::Newest { replaced_by },
            _ => Whereabouts::Dead,
        },
    }
}

/// Whether `snapshot`, of whatever type, sees the version `row_id`. A dirty snapshot is told who is at work on it.
///
/// # Safety
/// `snapshot` is valid and not shared.
pub unsafe fn sees_row_id(state: &TableState, snapshot: pg_sys::Snapshot, row_id: u64, key: &[u8]) -> bool {
    // SAFETY: promised by the caller.
    let kind = unsafe { (*snapshot).snapshot_type };
    match kind {
        pg_sys::SnapshotType::SNAPSHOT_MVCC | pg_sys::SnapshotType::SNAPSHOT_HISTORIC_MVCC => {
            row_id_of_key(state, snapshot, key) == Some(row_id)
        }
        pg_sys::SnapshotType::SNAPSHOT_ANY => true,
        pg_sys::SnapshotType::SNAPSHOT_DIRTY => {
            // SAFETY: promised by the caller; these fields are a dirty snapshot's way of answering.
            let (xmin, xmax, token) =
                unsafe { (&mut (*snapshot).xmin, &mut (*snapshot).xmax, &mut (*snapshot).speculativeToken) };
            (*xmin, *xmax, *token) = (pg_sys::InvalidTransactionId, pg_sys::InvalidTransactionId, 0);
            match whereabouts(state, row_id, key) {
                Whereabouts::Dead => false,
                Whereabouts::Newest { replaced_by } => {
                    *xmax = replaced_by.unwrap_or(pg_sys::InvalidTransactionId);
                    true
                }
                Whereabouts::InProgress { xid, speculative_token } => {
                    (*xmin, *token) = (xid, speculative_token);
                    true
                }
            }
        }
        _ => matches!(whereabouts(state, row_id, key), Whereabouts::Newest { .. }),
    }
}

/// Stores the version `row_id` in `slot` if `snapshot` sees it.
///
/// # Safety
/// `slot` is a virtual slot with the table's descriptor; `snapshot` is valid and not shared.
pub unsafe fn fetch_row_id(
    state: &TableState,
    snapshot: pg_sys::Snapshot,
    row_id: u64,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    let Some(key) = key_of_row_id(state, row_id) else {
        return false;
    };
    // SAFETY: promised by the caller.
    unsafe { sees_row_id(state, snapshot, row_id, &key) && store_version(state, row_id, &key, slot) }
}

/// Stores the version `row_id` of `key` in `slot`, whoever sees it. False where it is nowhere any more.
///
/// # Safety
/// `slot` is a virtual slot with the table's descriptor.
pub unsafe fn store_version(state: &TableState, row_id: u64, key: &[u8], slot: *mut pg_sys::TupleTableSlot) -> bool {
    in_scratch(|| {
        let store = |view: &dyn RowView| {
            // SAFETY: promised by the caller. Materializing moves the values out of the scratch memory into the slot.
            unsafe {
                row::store(state, key, view, &ColumnSet::All, slot);
                pg_sys::ExecMaterializeSlot(slot);
            }
        };
        let in_delta = state.open_delta().is_some_and(|delta| {
            let row = delta.row_of_row_id(row_id);
            delta.close();
            match row.as_deref().map(cass_storage::row::EncodedRow::parse) {
                Some(Ok(view)) => {
                    store(&view);
                    true
                }
                Some(Err(error)) => state.raise(&error),
                None => false,
            }
        });
        in_delta || with_segment_row(state, row_id, |_, view| store(view)).is_some()
    })
}
