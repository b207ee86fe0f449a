//! Writing and publishing a run.
//!
//! The order is what keeps a crash, an abort or a standby from ever seeing half a run: the list row that keeps the blocks
//! comes first, then the file is extended, then pages are written through the buffer manager, logged and flushed, and only
//! when the file is safe on disk does the list show the segment, to those who see this transaction.

use cass_storage::page::{Page, PAGE_SIZE};
use cass_storage::segment::{Column, SegmentSummary, SegmentWriter, WriterOptions};
use cass_storage::StorageError;
use pgrx::pg_sys;

use super::buffer::{temp_directory, Pages, RunBuffer};
use super::list::{List, SegmentEntry};
use super::{metapage, relation, source, space};
use crate::error::Report;
use crate::pg::injection::point;

/// Pages flushed at a time: each flush may wait for the WAL.
const BATCH: usize = 64;
/// Bytes of memory a segment writer uses for sorting row ids and partitions.
const WRITER_MEMORY: usize = 16 << 20;

/// What a new segment is, apart from its rows.
pub struct NewSegment {
    /// Places in the order of segments that it stands for, both inclusive; `None` takes the next one.
    pub sequence: Option<(u64, u64)>,
    /// Its rows come from a bulk load: some snapshots may not see them yet.
    pub bulk: bool,
    /// The columns to store.
    pub columns: Vec<Column>,
}

/// Writes a segment and publishes it in this transaction; `fill` pushes its rows in key order. Gives `None` and leaves
/// nothing where there was no row.
///
/// The caller holds a lock on the table that no two holders can have at once (ShareUpdateExclusiveLock or stronger), to the
/// transaction's end.
///
/// # Errors
/// Those of [`source::raise`]; 53100 where the disk is full.
pub fn write_segment(
    rel: pg_sys::Relation,
    new: NewSegment,
    fill: impl FnOnce(&mut SegmentWriter<RunBuffer>) -> Result<(), StorageError>,
) -> Option<SegmentEntry> {
    require_lock(rel);
    let storage_id = metapage::identity(rel).storage_id;
    let (run_id, next_sequence) = metapage::next_run(rel);
    let result = write_buffer(storage_id, run_id, new.columns, fill);
    let (buffer, summary) = result.unwrap_or_else(|error| source::raise(&relation::name(rel), &error));
    if summary.row_count == 0 {
        return None;
    }
    let (sequence_low, sequence_high) = new.sequence.unwrap_or((next_sequence, next_sequence));
    let mut segment = SegmentEntry {
        storage_id,
        run_id,
        first_block: 0,
        page_count: buffer.page_count(),
        sequence_low,
        sequence_high,
        bulk: new.bulk,
        row_count: summary.row_count,
        tombstone_count: summary.tombstone_count,
        min_key: summary.min_key,
        max_key: summary.max_key,
    };
    publish(rel, &mut segment, buffer);
    point("segment-published");
    Some(segment)
}

/// Writes the pages of a segment to a buffer.
fn write_buffer(
    storage_id: u64,
    run_id: u64,
    columns: Vec<Column>,
    fill: impl FnOnce(&mut SegmentWriter<RunBuffer>) -> Result<(), StorageError>,
) -> Result<(RunBuffer, SegmentSummary), StorageError> {
    let options =
        WriterOptions { storage_id, run_id, columns, temp_directory: temp_directory()?, memory_bytes: WRITER_MEMORY };
    let mut writer = SegmentWriter::new(RunBuffer::new()?, options);
    fill(&mut writer)?;
    writer.finish()
}

/// Two writers of runs at once could be given the same blocks.
fn require_lock(rel: pg_sys::Relation) {
    // SAFETY: `rel` is an open relation; the function only looks at this backend's locks.
    let held =
        unsafe { pg_sys::CheckRelationLockedByMe(rel, pg_sys::ShareUpdateExclusiveLock as pg_sys::LOCKMODE, true) };
    if !held {
        Report::new("XX000", format!("table \"{}\" is not locked for writing a segment", relation::name(rel))).raise();
    }
}

/// Gives a run blocks (its first one is filled in here), writes its pages there and makes it a segment of the list.
pub fn publish(rel: pg_sys::Relation, segment: &mut SegmentEntry, buffer: RunBuffer) {
    let table = relation::table_oid(rel);
    List::change(rel, |list| {
        let mut occupied = Vec::new();
        list.scan_physical(segment.storage_id, |row| occupied.push(row.blocks()));
        segment.first_block = space::find(&mut occupied, segment.page_count).unwrap_or_else(|| {
            Report::new("54000", format!("table \"{}\" cannot get any larger", relation::name(rel)))
                .hint("Use table partitioning.")
                .raise()
        });
        list.insert_reservation(table, segment);
        point("segment-reserved");
        space::provide(rel, segment.first_block, segment.page_count);
        point("segment-extended");
        let written = buffer
            .into_pages()
            .map_err(StorageError::from)
            .and_then(|pages| write_pages(rel, segment.first_block, segment.page_count, pages));
        if let Err(error) = written {
            source::raise(&relation::name(rel), &error);
        }
        point("segment-written");
        if relation::replaces_committed(rel) {
            list.publish_to_all(table, segment);
        } else {
            list.publish(table, segment);
        }
    });
}

/// Writes pages to consecutive blocks, through the buffer manager, and waits until the file is safe.
fn write_pages(rel: pg_sys::Relation, first_block: u32, count: u32, mut pages: Pages) -> Result<(), StorageError> {
    let temporary = relation::is_temporary(rel);
    let logged = relation::needs_wal(rel);
    // SAFETY: NBuffers is fixed at server start.
    let batch = BATCH.min(unsafe { pg_sys::NBuffers } as usize / 16).max(1);
    let mut page = Box::new([0_u8; PAGE_SIZE]);
    let mut pinned = Vec::with_capacity(batch);
    // SAFETY: a strategy object of the current memory context, freed below; it is forgotten with the context on an error.
    let strategy = unsafe { pg_sys::GetAccessStrategy(pg_sys::BufferAccessStrategyType::BAS_BULKWRITE) };
    for block in first_block..first_block + count {
        pages.next(&mut page)?;
        // SAFETY: the block belongs to this run only, and the fork reaches behind it.
        unsafe { pinned.push(write_page(rel, block, &page, strategy, logged)) };
        if pinned.len() == batch {
            flush(&mut pinned, temporary);
            pgrx::check_for_interrupts!();
        }
    }
    flush(&mut pinned, temporary);
    // SAFETY: `rel` is an open relation with storage.
    unsafe {
        pg_sys::FreeAccessStrategy(strategy);
        if temporary {
            // Readers map the file of a temporary table too; its buffers cannot be flushed one by one.
            pg_sys::FlushRelationBuffers(rel);
        } else {
            pg_sys::smgrimmedsync(pg_sys::RelationGetSmgr(rel), pg_sys::ForkNumber::MAIN_FORKNUM);
        }
    }
    Ok(())
}

/// Puts a page into its buffer, logged if need be, and gives the pinned buffer.
///
/// # Safety
/// `block` is inside the main fork of the open relation `rel`, and nobody else writes or reads it. The caller unpins the buffer.
unsafe fn write_page(
    rel: pg_sys::Relation,
    block: u32,
    page: &Page,
    strategy: pg_sys::BufferAccessStrategy,
    logged: bool,
) -> pg_sys::Buffer {
    /// Bytes of pd_lsn, which stays: if the block held an older run, that one's record must reach the disk first.
    const LSN: usize = 8;
    // SAFETY: promised by the caller; the buffer is exclusively locked while it is written, and marking it dirty and logging
    // it is one critical section, so that no other process can see one without the other.
    unsafe {
        let buffer = pg_sys::ReadBufferExtended(
            rel,
            pg_sys::ForkNumber::MAIN_FORKNUM,
            block,
            pg_sys::ReadBufferMode::RBM_ZERO_AND_LOCK,
            strategy,
        );
        pg_sys::CritSectionCount += 1;
        let target = pg_sys::BufferGetPage(buffer).cast::<u8>();
        std::ptr::copy_nonoverlapping(page.as_ptr().add(LSN), target.add(LSN), PAGE_SIZE - LSN);
        pg_sys::MarkBufferDirty(buffer);
        if logged {
            pg_sys::log_newpage_buffer(buffer, true);
        }
        pg_sys::CritSectionCount -= 1;
        pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_UNLOCK as i32);
        buffer
    }
}

/// Writes pinned buffers to the file, so that readers find the pages in their maps, and unpins them.
fn flush(pinned: &mut Vec<pg_sys::Buffer>, temporary: bool) {
    for buffer in pinned.drain(..) {
        // SAFETY: pinned by `write_page` and unpinned once; share-locked while it is written.
        unsafe {
            if !temporary {
                pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_SHARE as i32);
                pg_sys::FlushOneBuffer(buffer);
                pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_UNLOCK as i32);
            }
            pg_sys::ReleaseBuffer(buffer);
        }
    }
}
