//! The delta: its rows, and its two indexes against them.

mod heap;
mod tuple;

use cass_storage::row::{EncodedRow, RowKind, RowView};
use pgrx::pg_sys;

use super::fault::Kind;
use super::row_ids::{RowIds, IN_DELTA};
use super::{version, Check};
use crate::delta::entries::Sought;
use crate::delta::{lost, Delta};
use crate::pg::scratch::in_scratch;
use crate::pg::subtransaction::caught;
use crate::segment::{relation, visibility_map};

impl Check<'_> {
    /// Checks the delta. Its row ids are added to `row_ids`. False if it has a row whose lengths are wrong: queries, which trust them,
    /// might read beyond its page.
    pub(super) fn delta(&mut self, row_ids: &mut RowIds) -> bool {
        let (rel, storage_id) = (self.state.rel, self.state.storage_id);
        // What is opened in a subtransaction ends with it, so this only shows whether the delta can be opened.
        let opened = caught(|| match Delta::open(rel, storage_id, pg_sys::AccessShareLock) {
            Some(delta) => delta.close(),
            None => lost::refuse_if_lost(rel),
        });
        if let Err(error) = opened {
            self.faults.add(Kind::Delta, relation::oid(rel), None, error.text);
            return false;
        }
        // Somebody may make it only now; what it holds then is newer than the snapshot.
        let Some(delta) = Delta::open(rel, storage_id, pg_sys::AccessShareLock) else { return true };
        let (rows, readable) = self.delta_rows(&delta, row_ids);
        let snapshot = self.snapshot;
        if rows > 0 && caught(|| visibility_map::delta_is_empty(rel, snapshot)) == Ok(true) {
            let detail = format!("the visibility map says that the delta is empty, and it holds {rows} rows");
            self.faults.add(Kind::VisibilityMap, relation::oid(rel), Some(0), detail);
        }
        self.key_entries(&delta);
        self.row_id_entries(&delta);
        delta.close();
        readable
    }

    /// Checks every row that the snapshot sees; how many of them a read would find, and whether all of them can be read.
    fn delta_rows(&mut self, delta: &Delta, row_ids: &mut RowIds) -> (u64, bool) {
        let (heap, snapshot) = (delta.heap, self.snapshot);
        let (mut count, mut readable) = (0, true);
        // Blocks that are added meanwhile hold nothing that the snapshot sees, and none can be cut off while the delta is locked.
        for block in 0..relation::main_fork_blocks(heap) {
            pgrx::check_for_interrupts!();
            let page = match caught(|| heap::read(heap, block, snapshot, None)) {
                Ok(page) => page,
                Err(error) => {
                    self.faults.add(Kind::Delta, relation::oid(heap), Some(block), error.text);
                    readable = false;
                    continue;
                }
            };
            for offset in page.astray {
                readable = false;
                let detail = format!("line pointer {offset} leads out of the page");
                self.faults.add(Kind::Delta, relation::oid(heap), Some(block), detail);
            }
            for found in page.rows {
                let Some(raw) = tuple::parse(&found.bytes) else {
                    let detail = format!("row {} of the block does not have the columns of a delta", found.offset);
                    self.faults.add(Kind::Delta, relation::oid(heap), Some(block), detail);
                    readable = false;
                    continue;
                };
                if raw.storage_id == delta.storage_id {
                    self.delta_row(delta, block, found.offset, &raw, row_ids);
                    count += u64::from(!is_anchor(&raw));
                }
            }
        }
        (count, readable)
    }

    /// Checks one row of this life of the table.
    fn delta_row(&mut self, delta: &Delta, block: u32, offset: u16, raw: &tuple::Row<'_>, row_ids: &mut RowIds) {
        let fault = match EncodedRow::parse(raw.row) {
            Ok(encoded) if encoded.header().kind as i16 != raw.kind => {
                Some(format!("column kind is {}, and the row says {:?}", raw.kind, encoded.header().kind))
            }
            Ok(encoded) if encoded.header().row_id != raw.row_id => {
                Some(format!("column row_id is {}, and the row says {}", raw.row_id, encoded.header().row_id))
            }
            Ok(encoded) => version::check(self.state, version::Place::Delta, raw.key, &encoded).err(),
            Err(error) => Some(error.to_string()),
        };
        if let Some(fault) = fault {
            let key = version::describe_key(self.state, raw.key);
            let detail = format!("row {offset} of the block ({key}): {fault}");
            self.faults.add(Kind::Row, relation::oid(delta.heap), Some(block), detail);
        }
        if let Err(error) = row_ids.push(raw.row_id, raw.key, IN_DELTA) {
            self.state.raise(&error);
        }
        self.is_indexed(delta, block, offset, raw);
    }

    /// Whether both indexes lead to a row.
    fn is_indexed(&mut self, delta: &Delta, block: u32, offset: u16, raw: &tuple::Row<'_>) {
        let (tid, snapshot) = (heap::place_of(block, offset), self.snapshot);
        // An anchor has no row id to be found by.
        let has_id = !is_anchor(raw);
        let leads = caught(|| {
            in_scratch(|| {
                let by_key = delta.leads_to(Sought::Key(raw.key), tid, snapshot);
                (by_key, !has_id || delta.leads_to(Sought::RowId(raw.row_id), tid, snapshot))
            })
        });
        let indexes = [delta.key_index, delta.row_id_index].map(relation::oid);
        let missing = match leads {
            Ok((by_key, by_row_id)) => [!by_key, !by_row_id],
            Err(error) => return self.faults.add(Kind::DeltaIndex, indexes[0], None, error.text),
        };
        for (index, _) in indexes.into_iter().zip(missing).filter(|(_, missing)| *missing) {
            let key = version::describe_key(self.state, raw.key);
            let detail = format!("there is no entry that leads to row ({block},{offset}) of the delta ({key})");
            self.faults.add(Kind::DeltaIndex, index, None, detail);
        }
    }

    /// Whether the entries of the key index lead to rows of their keys, and no two to rows of one key.
    fn key_entries(&mut self, delta: &Delta) {
        let snapshot = self.snapshot;
        let index = relation::oid(delta.key_index);
        let mut last: Option<Vec<u8>> = None;
        let result = caught(|| {
            delta.each_key_entry(snapshot, |entry| {
                let Some(row) = self.row_of_entry(delta, index, entry.tid) else { return };
                let Some(raw) = tuple::parse(&row) else { return };
                if raw.storage_id != delta.storage_id && entry.storage_id != delta.storage_id {
                    return;
                }
                let (block, offset) = numbers(entry.tid);
                if (raw.storage_id, raw.key) != (entry.storage_id, entry.key) {
                    let (key, other) = (super::hex(entry.key), super::hex(raw.key));
                    let detail =
                        format!("the entry of key {key} leads to row ({block},{offset}), which has key {other}");
                    return self.faults.add(Kind::DeltaIndex, index, None, detail);
                }
                // An anchor is seen by all snapshots, by those too that see a row that a flush has moved before it was made.
                if is_anchor(&raw) {
                    return;
                }
                if last.as_deref() == Some(raw.key) {
                    let key = version::describe_key(self.state, raw.key);
                    let detail = format!("there are two rows of one key ({key}); one is row {offset} of the block");
                    self.faults.add(Kind::Delta, relation::oid(delta.heap), Some(block), detail);
                }
                last = Some(raw.key.to_vec());
            });
        });
        if let Err(error) = result {
            self.faults.add(Kind::DeltaIndex, index, None, error.text);
        }
    }

    /// Whether the entries of the row id index lead to rows of their ids.
    fn row_id_entries(&mut self, delta: &Delta) {
        let snapshot = self.snapshot;
        let index = relation::oid(delta.row_id_index);
        let result = caught(|| {
            delta.each_row_id_entry(snapshot, |row_id, tid| {
                let Some(row) = self.row_of_entry(delta, index, tid) else { return };
                let Some(raw) = tuple::parse(&row) else { return };
                if raw.row_id != row_id {
                    let (block, offset) = numbers(tid);
                    let detail = format!(
                        "the entry of row id {row_id} leads to row ({block},{offset}), which has {}",
                        raw.row_id
                    );
                    self.faults.add(Kind::DeltaIndex, index, None, detail);
                }
            });
        });
        if let Err(error) = result {
            self.faults.add(Kind::DeltaIndex, index, None, error.text);
        }
    }

    /// The row that an entry leads to, if the snapshot sees it.
    fn row_of_entry(&mut self, delta: &Delta, index: pg_sys::Oid, tid: pg_sys::ItemPointerData) -> Option<Vec<u8>> {
        let (block, offset) = numbers(tid);
        if block >= relation::main_fork_blocks(delta.heap) {
            let detail = format!("an entry leads to row ({block},{offset}), and the delta has no such block");
            self.faults.add(Kind::DeltaIndex, index, None, detail);
            return None;
        }
        let (heap, snapshot) = (delta.heap, self.snapshot);
        // A page that cannot be read was told when the rows were read.
        let page = caught(|| heap::read(heap, block, snapshot, Some(offset))).ok()?;
        page.rows.into_iter().next().map(|tuple| tuple.bytes)
    }
}

fn is_anchor(row: &tuple::Row<'_>) -> bool {
    row.kind == RowKind::Anchor as i16
}

/// Block and offset of a TID.
fn numbers(tid: pg_sys::ItemPointerData) -> (u32, u16) {
    ((u32::from(tid.ip_blkid.bi_hi) << 16) | u32::from(tid.ip_blkid.bi_lo), tid.ip_posid)
}
