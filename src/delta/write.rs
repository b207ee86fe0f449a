//! The write protocol: core's ON CONFLICT loop on the delta's unique index.
//!
//! [`hold`] finds the newest row of a key and locks it; [`store`] puts a new version in its place. Both are repeated until
//! nobody was faster. See docs/architecture.md, "Writing a row".

use super::anchor;
use super::probe::{probe, Probe, Version, Writer};
use super::Delta;
use crate::error::Report;
use crate::pg;
use crate::pg::injection::point;
use cass_storage::row::RowKind;
use pgrx::pg_sys;
use std::ffi::c_int;

/// What the segments say about a key; asked after the delta was probed, and answered with a snapshot taken then.
pub trait Segments {
    /// The newest version of `key` in the segments: its row id and kind.
    fn newest(&self, key: &[u8]) -> Option<(u64, RowKind)>;
    /// Whether a bulk load that `snapshot` does not see covers `key`.
    fn loaded_after(&self, snapshot: pg_sys::Snapshot, key: &[u8]) -> bool;
}

/// How a row is to be locked.
#[derive(Clone, Copy)]
pub struct LockRequest {
    pub mode: pg_sys::LockTupleMode::Type,
    pub wait: pg_sys::LockWaitPolicy::Type,
    pub command: pg_sys::CommandId,
}

/// The newest version of a key.
#[derive(Clone, Debug, Default)]
pub struct Newest {
    /// Row id and kind; `None` where the key has never been written or its tombstone is gone.
    pub row: Option<(u64, RowKind)>,
    /// The delta row to replace, an anchor perhaps; `None` where the delta has none.
    pub version: Option<Version>,
    /// Whether the snapshot given to [`hold`] sees the version.
    pub visible: bool,
    /// Whether this transaction wrote it.
    pub own: bool,
}

impl Newest {
    /// The row id of the newest version, if that is a row and not a tombstone.
    pub fn live_row_id(&self) -> Option<u64> {
        self.row.filter(|(_, kind)| *kind == RowKind::Row).map(|(row_id, _)| row_id)
    }

    /// For who has found no row where it expected one.
    ///
    /// # Errors
    /// 40001 where another transaction has given the row another key: it lives on, and cannot be found from here. PostgreSQL says
    /// the same of rows that moved to another partition (`ExecUpdate`).
    pub fn raise_if_moved(&self) {
        if !self.own && self.row.is_some_and(|(_, kind)| kind == RowKind::Moved) {
            Report::new("40001", "could not serialize access due to concurrent update")
                .detail("The row was given another primary key by another transaction.")
                .hint("Run the transaction again.")
                .raise();
        }
    }
}

/// Why a key could not be held.
pub enum Refused {
    /// Somebody holds a lock that conflicts, and the request does not wait.
    WouldBlock,
    /// This command has written the key itself; the version it wrote.
    Invisible(Box<Version>),
}

/// Finds the newest version of `key` and locks its delta row. A key that has no row in the delta is not locked, unless
/// `with_anchor` asks for a lock on a row that lies in a segment.
pub fn hold(
    delta: &Delta,
    key: &[u8],
    request: LockRequest,
    snapshot: pg_sys::Snapshot,
    segments: &dyn Segments,
    with_anchor: bool,
) -> Result<Newest, Refused> {
    loop {
        pgrx::check_for_interrupts!();
        let found = pg::scratch::in_scratch(|| probe(delta, key));
        point("delta-probed");
        let version = match found {
            Probe::Nothing => {
                let row = segments.newest(key);
                if with_anchor && row.is_some_and(|(_, kind)| kind == RowKind::Row) {
                    anchor::win(delta, key, request.command);
                    continue;
                }
                let visible = !segments.loaded_after(snapshot, key);
                return Ok(Newest { row, version: None, visible, own: false });
            }
            Probe::InProgress(writer) => {
                wait_for(delta, &writer, request.wait)?;
                continue;
            }
            Probe::Found(version) => version,
        };
        match lock(delta, &version, request, snapshot) {
            Locked::Held { visible } => return Ok(newest_of(version, visible, snapshot, segments, key)),
            Locked::Again => {}
            Locked::WouldBlock => return Err(Refused::WouldBlock),
            Locked::Invisible => return Err(Refused::Invisible(Box::new(version))),
        }
    }
}

/// An anchor says nothing about the newest version: the segments do.
fn newest_of(
    version: Version,
    visible: bool,
    snapshot: pg_sys::Snapshot,
    segments: &dyn Segments,
    key: &[u8],
) -> Newest {
    if version.kind == RowKind::Anchor {
        let row = segments.newest(key);
        let visible = !segments.loaded_after(snapshot, key);
        return Newest { row, version: Some(version), visible, own: false };
    }
    let own = version.own_command.is_some();
    Newest { row: Some((version.row_id, version.kind)), version: Some(version), visible, own }
}

/// Waits until the writer of a row in progress has ended, or has taken its speculative row back.
fn wait_for(delta: &Delta, writer: &Writer, policy: pg_sys::LockWaitPolicy::Type) -> Result<(), Refused> {
    // SAFETY: plain waits on an xid, with no lock or pin held that the other needs.
    unsafe {
        if writer.anchor {
            // It is frozen in a moment, or gone; its transaction is never waited for.
            pg_sys::pg_usleep(50);
        } else if policy != pg_sys::LockWaitPolicy::LockWaitBlock {
            return Err(Refused::WouldBlock);
        } else if writer.speculative_token != 0 {
            pg_sys::SpeculativeInsertionWait(writer.xid, writer.speculative_token);
        } else {
            let nowhere = std::ptr::null_mut();
            pg_sys::XactLockTableWait(writer.xid, delta.heap, nowhere, pg_sys::XLTW_Oper::XLTW_None);
        }
    }
    Ok(())
}

enum Locked {
    Held { visible: bool },
    Again,
    WouldBlock,
    Invisible,
}

/// Locks a delta row; `Again` where it was replaced, or moved to a segment, meanwhile.
fn lock(delta: &Delta, version: &Version, request: LockRequest, snapshot: pg_sys::Snapshot) -> Locked {
    // A conflict is answered with "would block" rather than an error of heapam, which would name the delta.
    let policy = match request.wait {
        pg_sys::LockWaitPolicy::LockWaitError => pg_sys::LockWaitPolicy::LockWaitSkip,
        other => other,
    };
    let mut tuple = pg_sys::HeapTupleData { t_self: version.tid, ..Default::default() };
    let mut buffer = pg_sys::InvalidBuffer as pg_sys::Buffer;
    let mut failure = pg_sys::TM_FailureData::default();
    // The weakest lock passes an update in progress. It must then be held on the versions after that one too: another
    // change of the same transaction may conflict with it, and it has to outlast the update's commit.
    let follow_updates = request.mode == pg_sys::LockTupleMode::LockTupleKeyShare;
    // SAFETY: the TID was read from the heap under a lock on the table; heap_lock_tuple returns a pinned buffer, which
    // is released here once.
    unsafe {
        let result = pg_sys::heap_lock_tuple(
            delta.heap,
            &mut tuple,
            request.command,
            request.mode,
            policy,
            follow_updates,
            &mut buffer,
            &mut failure,
        );
        let locked = match result {
            pg_sys::TM_Result::TM_Ok => Locked::Held { visible: sees(snapshot, &mut tuple, buffer) },
            pg_sys::TM_Result::TM_WouldBlock => Locked::WouldBlock,
            pg_sys::TM_Result::TM_Invisible => Locked::Invisible,
            _ => Locked::Again,
        };
        pg_sys::ReleaseBuffer(buffer);
        locked
    }
}

/// Whether `snapshot` sees the tuple; true where the caller has none to hold the row against.
unsafe fn sees(snapshot: pg_sys::Snapshot, tuple: pg_sys::HeapTuple, buffer: pg_sys::Buffer) -> bool {
    if snapshot.is_null() {
        return true;
    }
    // SAFETY: the caller pins the tuple's buffer; visibility is judged under its share lock.
    unsafe {
        pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_SHARE as c_int);
        let visible = pg_sys::HeapTupleSatisfiesVisibility(tuple, snapshot, buffer);
        pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_UNLOCK as c_int);
        visible
    }
}

/// A new version of a row, as the delta stores it.
pub struct NewVersion<'a> {
    pub key: &'a [u8],
    pub row_id: u64,
    pub kind: RowKind,
    pub row: &'a [u8],
}

/// Puts a version in the place of what [`hold`] found. False where somebody else was faster: hold again.
pub fn store(delta: &Delta, held: &Newest, new: &NewVersion<'_>, command: pg_sys::CommandId) -> bool {
    pg::scratch::in_scratch(|| {
        let tuple = delta.form_tuple(new.key, new.row_id, new.kind, new.row);
        match &held.version {
            None => {
                if !insert_unique(delta, tuple, new.key, command) {
                    return false;
                }
            }
            Some(old) => {
                if !replace(delta, old, tuple, command) {
                    return false;
                }
                point("delta-replaced");
                insert_index_entry(
                    delta,
                    delta.key_index,
                    &mut [pg_sys::Datum::from(delta.storage_id as i64), pg::bytea::from_bytes(new.key)],
                    tuple,
                    pg_sys::IndexUniqueCheck::UNIQUE_CHECK_NO,
                );
            }
        }
        insert_index_entry(
            delta,
            delta.row_id_index,
            &mut [pg_sys::Datum::from(new.row_id as i64)],
            tuple,
            pg_sys::IndexUniqueCheck::UNIQUE_CHECK_NO,
        );
        true
    })
}

/// Updates the delta row that is held. The key stays, so the key index needs no uniqueness check.
fn replace(delta: &Delta, old: &Version, tuple: pg_sys::HeapTuple, command: pg_sys::CommandId) -> bool {
    let mut tid = old.tid;
    let mut failure = pg_sys::TM_FailureData::default();
    let mut mode = pg_sys::LockTupleMode::LockTupleNoKeyExclusive;
    // SAFETY: the row at `tid` is locked by this transaction; the tuple was formed for this heap.
    let result =
        unsafe { pg::versions::tables::heap_update(delta.heap, &mut tid, tuple, command, &mut failure, &mut mode) };
    result == pg_sys::TM_Result::TM_Ok
}

/// Inserts a tuple speculatively and confirms it if its key is free. False, with nothing left behind, if it is not.
pub(super) fn insert_unique(delta: &Delta, tuple: pg_sys::HeapTuple, key: &[u8], command: pg_sys::CommandId) -> bool {
    // SAFETY: the tuple was formed for this heap; the speculative token is set as heapam_tuple_insert_speculative does,
    // and the token's lock is released on the way out (by abort, on an error).
    unsafe {
        let xid = pg_sys::GetCurrentTransactionId();
        let token = pg_sys::SpeculativeInsertionLockAcquire(xid);
        let header = (*tuple).t_data;
        (*header).t_ctid = pg_sys::ItemPointerData {
            ip_blkid: pg_sys::BlockIdData { bi_hi: (token >> 16) as u16, bi_lo: (token & 0xffff) as u16 },
            ip_posid: pg_sys::SpecTokenOffsetNumber as u16,
        };
        pg_sys::heap_insert(delta.heap, tuple, command, pg_sys::HEAP_INSERT_SPECULATIVE as c_int, std::ptr::null_mut());
        point("delta-inserted");
        let won = insert_index_entry(
            delta,
            delta.key_index,
            &mut [pg_sys::Datum::from(delta.storage_id as i64), pg::bytea::from_bytes(key)],
            tuple,
            pg_sys::IndexUniqueCheck::UNIQUE_CHECK_PARTIAL,
        );
        point("delta-indexed");
        if won {
            pg_sys::heap_finish_speculative(delta.heap, &mut (*tuple).t_self);
        } else {
            pg_sys::heap_abort_speculative(delta.heap, &mut (*tuple).t_self);
        }
        pg_sys::SpeculativeInsertionLockRelease(xid);
        won
    }
}

fn insert_index_entry(
    delta: &Delta,
    index: pg_sys::Relation,
    values: &mut [pg_sys::Datum],
    tuple: pg_sys::HeapTuple,
    check: pg_sys::IndexUniqueCheck::Type,
) -> bool {
    let mut nulls = [false; 2];
    // SAFETY: values and nulls have an element for each column of the index; the tuple is in the heap.
    unsafe {
        pg_sys::index_insert(
            index,
            values.as_mut_ptr(),
            nulls.as_mut_ptr(),
            &mut (*tuple).t_self,
            delta.heap,
            check,
            false,
            pg_sys::BuildIndexInfo(index),
        )
    }
}

/// The error of a transaction whose snapshot is older than the newest version of a row it writes.
pub fn raise_serialization_failure() -> ! {
    Report::new("40001", "could not serialize access due to concurrent update").raise()
}
