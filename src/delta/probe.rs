//! Looking at one key as writers do: what is there now, committed or in progress.

use super::cursor::{begin_key_scan, KeyCondition};
use super::relation::{column, RawRow};
use super::Delta;
use crate::pg::versions::scans;
use cass_storage::row::RowKind;
use pgrx::pg_sys;

/// What a writer finds in the delta for a key.
pub enum Probe {
    /// No row of the key is live or in the making.
    Nothing,
    /// A row whose writer has committed, or is this transaction.
    Found(Version),
    /// Only a row whose writer is still running.
    InProgress(Writer),
}

/// A running transaction that is writing the key.
pub struct Writer {
    pub xid: pg_sys::TransactionId,
    /// Nonzero while the row is a speculative one, which its writer may still take back.
    pub speculative_token: u32,
    pub row_id: u64,
    pub anchor: bool,
}

/// A delta row, copied out of its page.
#[derive(Clone, Debug)]
pub struct Version {
    pub tid: pg_sys::ItemPointerData,
    pub row_id: u64,
    pub kind: RowKind,
    pub row: Vec<u8>,
    /// The command that wrote the row, where this transaction did.
    pub own_command: Option<pg_sys::CommandId>,
}

impl Version {
    /// Copies a row of the delta.
    ///
    /// # Safety
    /// `tuple` is a tuple of `heap` in a pinned buffer.
    unsafe fn of_tuple(heap: pg_sys::Relation, tuple: pg_sys::HeapTuple) -> Version {
        // SAFETY: promised by the caller.
        unsafe {
            let raw = RawRow::of_tuple(heap, tuple);
            let header = (*tuple).t_data;
            let xmin = pg_sys::htup::HeapTupleHeaderGetXmin(header);
            let own = pg_sys::TransactionIdIsCurrentTransactionId(xmin);
            Version {
                tid: (*tuple).t_self,
                row_id: raw.row_id,
                kind: raw.kind,
                row: raw.row.to_vec(),
                own_command: own.then(|| pg_sys::HeapTupleHeaderGetCmin(header)),
            }
        }
    }
}

/// The snapshot that sees what is being written (`InitDirtySnapshot`).
pub fn dirty_snapshot() -> pg_sys::SnapshotData {
    pg_sys::SnapshotData { snapshot_type: pg_sys::SnapshotType::SNAPSHOT_DIRTY, ..Default::default() }
}

/// Probes `key` with a dirty snapshot. All its entries are read: a committed row is taken before one in progress is.
pub fn probe(delta: &Delta, key: &[u8]) -> Probe {
    let mut result = Probe::Nothing;
    for_each_entry(delta, key, |dirty, raw, slot| {
        if let Some(writer) = writer_in_progress(dirty, &raw) {
            result = Probe::InProgress(writer);
            return false;
        }
        let mut should_free = false;
        // SAFETY: the slot holds the row, whose page it pins.
        result = Probe::Found(unsafe {
            let tuple = pg_sys::ExecFetchSlotHeapTuple(slot, false, &mut should_free);
            Version::of_tuple(delta.heap, tuple)
        });
        true
    });
    result
}

/// What the delta has of one version.
pub enum Trace {
    /// It is there, committed or written by this transaction, and `replaced_by` may be replacing it.
    There { replaced_by: Option<pg_sys::TransactionId> },
    /// It is being written.
    InProgress(Writer),
    /// Another version of its key is there.
    Superseded,
    /// Nobody has written a later one than the segments have, but `replaced_by` may be doing so.
    Elsewhere { replaced_by: Option<pg_sys::TransactionId> },
}

/// Looks for the version `row_id` of `key` with a dirty snapshot. A version in progress and the committed one that it is to replace
/// are told apart: who looks for either is to wait for the writer.
pub fn trace(delta: &Delta, key: &[u8], row_id: u64) -> Trace {
    let mut result = Trace::Elsewhere { replaced_by: None };
    for_each_entry(delta, key, |dirty, raw, _| {
        let is_it = raw.row_id == row_id;
        match (writer_in_progress(dirty, &raw), &result) {
            (Some(writer), _) if is_it => result = Trace::InProgress(writer),
            (None, _) if is_it => result = Trace::There { replaced_by: replacer(dirty) },
            (Some(writer), Trace::Elsewhere { .. }) if !writer.anchor => {
                result = Trace::Elsewhere { replaced_by: Some(writer.xid) };
            }
            (None, Trace::Elsewhere { replaced_by: None }) if raw.kind == RowKind::Anchor => {
                result = Trace::Elsewhere { replaced_by: replacer(dirty) };
            }
            (None, _) if raw.kind != RowKind::Anchor => result = Trace::Superseded,
            _ => {}
        }
        is_it
    });
    result
}

fn writer_in_progress(dirty: &pg_sys::SnapshotData, raw: &RawRow<'_>) -> Option<Writer> {
    (dirty.xmin != pg_sys::InvalidTransactionId).then_some(Writer {
        xid: dirty.xmin,
        speculative_token: dirty.speculativeToken,
        row_id: raw.row_id,
        anchor: raw.kind == RowKind::Anchor,
    })
}

fn replacer(dirty: &pg_sys::SnapshotData) -> Option<pg_sys::TransactionId> {
    (dirty.xmax != pg_sys::InvalidTransactionId).then_some(dirty.xmax)
}

/// Calls `visit` with each row of `key` that a dirty snapshot sees, until it returns true: with what the snapshot says of who is at
/// work on the row, with its columns, and with the slot that holds it.
fn for_each_entry(
    delta: &Delta,
    key: &[u8],
    mut visit: impl FnMut(&pg_sys::SnapshotData, RawRow<'_>, *mut pg_sys::TupleTableSlot) -> bool,
) {
    let mut dirty = dirty_snapshot();
    let scan = begin_key_scan(delta, &mut dirty, &KeyCondition::Equal(key));
    // SAFETY: slot and scan live to the end of the block; the row is used before the slot moves on.
    unsafe {
        let slot = pg_sys::table_slot_create(delta.heap, std::ptr::null_mut());
        while pg_sys::index_getnext_slot(scan, pg_sys::ScanDirection::ForwardScanDirection, slot) {
            pg_sys::slot_getallattrs(slot);
            let raw = RawRow::of_values(std::slice::from_raw_parts((*slot).tts_values, column::COUNT));
            if visit(&dirty, raw, slot) {
                break;
            }
        }
        pg_sys::ExecDropSingleTupleTableSlot(slot);
        pg_sys::index_endscan(scan);
    }
}

impl Delta {
    /// The key of the delta row with this row id, whatever its visibility.
    pub fn key_of_row_id(&self, row_id: u64) -> Option<Vec<u8>> {
        self.with_row_id(row_id, |raw, _| raw.key.to_vec())
    }

    /// The encoded row with this row id, whatever its visibility.
    pub fn row_of_row_id(&self, row_id: u64) -> Option<Vec<u8>> {
        self.with_row_id(row_id, |raw, _| raw.row.to_vec())
    }

    /// The transaction that wrote the delta row with this row id, whatever its visibility.
    pub fn writer_of_row_id(&self, row_id: u64) -> Option<pg_sys::TransactionId> {
        self.with_row_id(row_id, |_, xmin| xmin)
    }

    fn with_row_id<R>(&self, row_id: u64, work: impl Fn(RawRow<'_>, pg_sys::TransactionId) -> R) -> Option<R> {
        let mut key = pg_sys::ScanKeyData::default();
        let mut any = pg_sys::SnapshotData { snapshot_type: pg_sys::SnapshotType::SNAPSHOT_ANY, ..Default::default() };
        let mut found = None;
        // SAFETY: the relations are open; index_rescan copies the scan key; the row is used before the slot moves on.
        unsafe {
            pg_sys::ScanKeyInit(
                &mut key,
                1,
                pg_sys::BTEqualStrategyNumber as pg_sys::StrategyNumber,
                pg_sys::Oid::from(super::cursor::proc::INT8EQ),
                pg_sys::Datum::from(row_id as i64),
            );
            let scan = scans::begin(self.heap, self.row_id_index, &mut any, 1);
            pg_sys::index_rescan(scan, &mut key, 1, std::ptr::null_mut(), 0);
            let slot = pg_sys::table_slot_create(self.heap, std::ptr::null_mut());
            while pg_sys::index_getnext_slot(scan, pg_sys::ScanDirection::ForwardScanDirection, slot) {
                pg_sys::slot_getallattrs(slot);
                let values = std::slice::from_raw_parts((*slot).tts_values, column::COUNT);
                if values[0].value() as u64 == self.storage_id {
                    let mut should_free = false;
                    let tuple = pg_sys::ExecFetchSlotHeapTuple(slot, false, &mut should_free);
                    let xmin = pg_sys::htup::HeapTupleHeaderGetXmin((*tuple).t_data);
                    found = Some(work(RawRow::of_values(values), xmin));
                    break;
                }
            }
            pg_sys::ExecDropSingleTupleTableSlot(slot);
            pg_sys::index_endscan(scan);
        }
        found
    }
}
