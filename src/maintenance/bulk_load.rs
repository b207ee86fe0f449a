//! Bulk load: rows that go straight into a segment of their own.
//!
//! The caller makes sure that nobody competes: it holds ExclusiveLock on the table or the table is new. The last row of a
//! key wins. Row ids are given in key order, so that the row id map stays small.

use cass_storage::merge::Cursor;
use cass_storage::row::{EncodedRow, RowHeader, RowView};
use cass_storage::segment::Column;
use cass_storage::sort::{ExternalSorter, SortedRows};
use cass_storage::StorageError;
use pgrx::pg_sys;

use super::{flush, stored};
use crate::delta::{Delta, DeltaCursor};
use crate::pg::injection::point;
use crate::read::segments::with_latest_snapshot;
use crate::read::TableState;
use crate::segment::buffer::temp_directory;
use crate::segment::run::{write_segment, NewSegment};
use crate::segment::{metapage, relation, source};

/// Bytes of memory for sorting, at the least.
const LEAST_MEMORY: usize = 16 << 20;
/// Bytes in front of a payload: the length of the partition's part of the key.
const PAYLOAD_HEADER: usize = 4;

/// Rows gathered for one segment.
pub struct BulkLoad {
    sorter: ExternalSorter,
    columns: Vec<Column>,
    placed: bool,
    pushed: u64,
    bytes: u64,
    table: String,
}

impl BulkLoad {
    /// An empty load into a table whose rows are placed as `state` says.
    pub fn new(state: &TableState) -> BulkLoad {
        let table = relation::name(state.rel);
        let directory = temp_directory().unwrap_or_else(|error| source::raise(&table, &error.into()));
        // SAFETY: a setting in kilobytes, read in the backend's only thread.
        let memory = unsafe { pg_sys::maintenance_work_mem }.unsigned_abs() as usize * 1024;
        BulkLoad {
            sorter: ExternalSorter::with_directory(memory.max(LEAST_MEMORY), directory),
            columns: stored::columns(state),
            placed: state.key.is_some(),
            pushed: 0,
            bytes: 0,
            table,
        }
    }

    /// Place of the next row in the order of pushing. In a table without a key it stands for the row id, which is given at the end.
    pub fn next_position(&self) -> u64 {
        self.pushed
    }

    /// Bytes of keys and rows gathered.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds a row, which replaces an earlier one of the same key. Its row id does not count.
    pub fn push(&mut self, key: &[u8], partition_len: usize, row: &[u8]) {
        let mut payload = Vec::with_capacity(PAYLOAD_HEADER + row.len());
        payload.extend_from_slice(&(partition_len as u32).to_le_bytes());
        payload.extend_from_slice(row);
        self.pushed += 1;
        self.bytes += (key.len() + row.len()) as u64;
        if let Err(error) = self.sorter.push(key, &payload) {
            source::raise(&self.table, &error);
        }
    }

    /// Gives the rows back, in key order and the last one of each key: key, row id and encoded row.
    pub fn into_rows(self, mut take: impl FnMut(&[u8], u64, &[u8])) {
        let table = self.table;
        let fail = |error: StorageError| -> ! { source::raise(&table, &error) };
        let mut sorted = self.sorter.finish().unwrap_or_else(|error| fail(error));
        loop {
            let Some((key, payload)) = sorted.next().unwrap_or_else(|error| fail(error)) else {
                return;
            };
            let row = payload.get(PAYLOAD_HEADER..).unwrap_or_default();
            let row_id = match EncodedRow::parse(row) {
                Ok(parsed) => parsed.header().row_id,
                Err(error) => fail(error),
            };
            if self.placed {
                take(key, row_id, row);
            } else {
                take(&row_id.to_be_bytes(), row_id, row);
            }
        }
    }

    /// Publishes the rows as one segment and takes the delta rows of their keys away. Returns the number of rows that have
    /// different keys. `rel` may have got new files since the load began.
    ///
    /// # Errors
    /// 40001 where a delta row of one of the keys is in use, against what the caller's lock promises.
    pub fn finish(self, rel: pg_sys::Relation) -> u64 {
        if self.pushed == 0 {
            return 0;
        }
        let table = self.table;
        let first_row_id = metapage::reserve_row_ids(rel, self.pushed);
        let sorted = self.sorter.finish().unwrap_or_else(|error| source::raise(&table, &error));
        let placed = self.placed;
        let storage_id = metapage::identity(rel).storage_id;
        // Rows that this command wrote are to be found, and deleted, too.
        // SAFETY: the load is finished at the end of a statement's work, where a new command may begin.
        unsafe { pg_sys::CommandCounterIncrement() };
        let delta = Delta::open(rel, storage_id, pg_sys::RowExclusiveLock);
        let mut replaced = Vec::new();
        let new = NewSegment { sequence: None, bulk: true, columns: self.columns };
        let segment = with_latest_snapshot(|snapshot| {
            let mut old = delta.as_ref().map(|delta| {
                DeltaCursor::open_all(delta, snapshot).unwrap_or_else(|error| source::raise(&table, &error))
            });
            let segment = write_segment(rel, new, |writer| {
                let mut rows = Rows { sorted, placed, next_row_id: first_row_id };
                rows.each(|key, partition_len, row| {
                    if let Some(old) = &mut old {
                        take_replaced(old, key, &mut replaced)?;
                    }
                    writer.push(key, partition_len, row)
                })
            });
            if let Some(old) = old {
                old.close();
            }
            segment
        });
        if let Some(delta) = delta {
            let left = flush::delete_rows(&delta, replaced);
            if left > 0 {
                crate::delta::write::raise_serialization_failure();
            }
            delta.close();
        }
        point("load-finished");
        segment.map_or(0, |segment| segment.row_count)
    }
}

/// Moves a delta cursor behind `key` and notes the delta rows of that key.
fn take_replaced(
    delta: &mut DeltaCursor,
    key: &[u8],
    replaced: &mut Vec<pg_sys::ItemPointerData>,
) -> Result<(), StorageError> {
    while let Some(old) = delta.key() {
        match old.cmp(key) {
            std::cmp::Ordering::Greater => break,
            std::cmp::Ordering::Equal => replaced.extend(delta.tid()),
            std::cmp::Ordering::Less => {}
        }
        delta.advance()?;
    }
    Ok(())
}

/// The sorted rows with their row ids.
struct Rows {
    sorted: SortedRows,
    placed: bool,
    next_row_id: u64,
}

impl Rows {
    /// Calls `take` with key, length of the partition's part of the key, and row.
    fn each(
        &mut self,
        mut take: impl FnMut(&[u8], usize, &dyn RowView) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        while let Some((key, payload)) = self.sorted.next()? {
            pgrx::check_for_interrupts!();
            let (length, row) = payload
                .split_first_chunk::<PAYLOAD_HEADER>()
                .ok_or_else(|| StorageError::Source("a sorted row has been cut off".into()))?;
            let row = EncodedRow::parse(row)?;
            let header = RowHeader { row_id: self.next_row_id, ..*row.header() };
            let row = stored::WithHeader { row: &row, header };
            self.next_row_id += 1;
            if self.placed {
                take(key, u32::from_le_bytes(*length) as usize, &row)?;
            } else {
                // The key of a row without one is its row id, which rises with its position.
                take(&header.row_id.to_be_bytes(), 0, &row)?;
            }
        }
        Ok(())
    }
}
