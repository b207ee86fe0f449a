//! Rows of a heap that a snapshot sees, page by page, each copied out of its page after its place was checked.

use pgrx::pg_sys;

use crate::segment::relation;

const PAGE_SIZE: usize = pg_sys::BLCKSZ as usize;
/// Bytes of PostgreSQL's page header, behind which the line pointers lie.
const LINE_POINTERS_AT: usize = 24;
const LINE_POINTER: usize = 4;
/// Bytes of the smallest tuple (`MAXALIGN(SizeofHeapTupleHeader)`).
const LEAST_TUPLE: usize = 24;

/// A row that the snapshot sees.
pub(super) struct Tuple {
    /// From 1.
    pub(super) offset: u16,
    pub(super) bytes: Vec<u8>,
}

/// What a page holds.
#[derive(Default)]
pub(super) struct PageRows {
    pub(super) rows: Vec<Tuple>,
    /// Offsets of line pointers that lead out of the page.
    pub(super) astray: Vec<u16>,
}

/// Reads the rows of a block of an open heap that `snapshot` sees; only the one at `only`, if that is given.
///
/// # Errors
/// Those that PostgreSQL raises for the block or for the state of a row's transactions.
pub(super) fn read(heap: pg_sys::Relation, block: u32, snapshot: pg_sys::Snapshot, only: Option<u16>) -> PageRows {
    let mut found = PageRows::default();
    // SAFETY: the heap is open, the snapshot registered; the page is looked at while its buffer is pinned and share-locked, and a
    // tuple is handed on only if it lies within the page.
    unsafe {
        let (main, mode) = (pg_sys::ForkNumber::MAIN_FORKNUM, pg_sys::ReadBufferMode::RBM_NORMAL);
        let buffer = pg_sys::ReadBufferExtended(heap, main, block, mode, std::ptr::null_mut());
        pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_SHARE as i32);
        let start = pg_sys::BufferGetPage(buffer).cast::<u8>();
        let page = std::slice::from_raw_parts(start, PAGE_SIZE);
        for (offset, place) in line_pointers(page) {
            if only.is_some_and(|only| only != offset) {
                continue;
            }
            let Some((at, length)) = place else {
                found.astray.push(offset);
                continue;
            };
            let mut tuple = pg_sys::HeapTupleData {
                t_len: length as u32,
                t_tableOid: relation::oid(heap),
                t_data: start.add(at).cast(),
                ..Default::default()
            };
            tuple.t_self = place_of(block, offset);
            if pg_sys::HeapTupleSatisfiesVisibility(&raw mut tuple, snapshot, buffer) {
                found.rows.push(Tuple { offset, bytes: page[at..at + length].to_vec() });
            }
        }
        pg_sys::UnlockReleaseBuffer(buffer);
    }
    found
}

/// The TID of a row.
pub(super) fn place_of(block: u32, offset: u16) -> pg_sys::ItemPointerData {
    pg_sys::ItemPointerData {
        ip_blkid: pg_sys::BlockIdData { bi_hi: (block >> 16) as u16, bi_lo: (block & 0xffff) as u16 },
        ip_posid: offset,
    }
}

/// Offsets of the rows of a page with where each lies and its length, `None` where that is not in the page.
fn line_pointers(page: &[u8]) -> impl Iterator<Item = (u16, Option<(usize, usize)>)> + '_ {
    let number = |at: usize| page.get(at..at + 2).map_or(0, |bytes| usize::from(bytes[0]) | usize::from(bytes[1]) << 8);
    let (lower, upper) = (number(12).min(PAGE_SIZE), number(14));
    let count = lower.saturating_sub(LINE_POINTERS_AT) / LINE_POINTER;
    (0..count).filter_map(move |index| {
        let pointer = page.get(LINE_POINTERS_AT + index * LINE_POINTER..)?.first_chunk::<4>()?;
        let pointer = u32::from_le_bytes(*pointer);
        let (at, flags, length) = ((pointer & 0x7fff) as usize, pointer >> 15 & 3, (pointer >> 17) as usize);
        if flags != pg_sys::LP_NORMAL {
            return None;
        }
        let inside = at >= upper.max(LINE_POINTERS_AT)
            && at % 8 == 0
            && length >= LEAST_TUPLE
            && at.checked_add(length).is_some_and(|end| end <= PAGE_SIZE);
        Some((index as u16 + 1, inside.then_some((at, length))))
    })
}
