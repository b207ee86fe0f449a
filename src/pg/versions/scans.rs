//! Scans of indexes, and bitmaps of TIDs.

use pgrx::pg_sys;

/// `index_beginscan`, uncounted by EXPLAIN.
///
/// # Safety
/// As for `index_beginscan` of PostgreSQL's indexam.c: both relations are open and the snapshot outlives the scan.
pub unsafe fn begin(
    table: pg_sys::Relation,
    index: pg_sys::Relation,
    snapshot: pg_sys::Snapshot,
    keys: usize,
) -> pg_sys::IndexScanDesc {
    let keys = keys as i32;
    // SAFETY: promised by the caller.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        return pg_sys::index_beginscan(table, index, snapshot, keys, 0);
        #[cfg(feature = "pg18")]
        return pg_sys::index_beginscan(table, index, snapshot, std::ptr::null_mut(), keys, 0);
    }
}

/// All entries of an index as a bitmap of so many bytes, which the caller frees.
///
/// # Safety
/// The index is open, its access method gives bitmaps without a condition, and the snapshot is live.
pub unsafe fn bitmap_of(index: pg_sys::Relation, snapshot: pg_sys::Snapshot, bytes: usize) -> *mut pg_sys::TIDBitmap {
    let none = std::ptr::null_mut();
    // SAFETY: promised by the caller; the scan ends here.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        let (bitmap, scan) =
            (pg_sys::tbm_create(bytes as i64, none), pg_sys::index_beginscan_bitmap(index, snapshot, 0));
        #[cfg(feature = "pg18")]
        let (bitmap, scan) =
            (pg_sys::tbm_create(bytes, none), pg_sys::index_beginscan_bitmap(index, snapshot, std::ptr::null_mut(), 0));
        pg_sys::index_rescan(scan, std::ptr::null_mut(), 0, std::ptr::null_mut(), 0);
        pg_sys::index_getbitmap(scan, bitmap);
        pg_sys::index_endscan(scan);
        bitmap
    }
}

/// Offsets that a block of a bitmap can name: `MaxHeapTuplesPerPage` of PostgreSQL's htup_details.h for pages of 8 kB.
const OFFSETS: usize = 291;

/// The TIDs that a bitmap names in one block.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Block {
    pub number: pg_sys::BlockNumber,
    /// The bitmap has forgotten the offsets: any TID of the block may be meant.
    pub lossy: bool,
    /// Rows must be looked at again for the condition that the bitmap stands for.
    pub recheck: bool,
    count: usize,
    offsets: [pg_sys::OffsetNumber; OFFSETS],
}

impl Block {
    /// The offsets, in order; none for a lossy block.
    pub fn offsets(&self) -> &[pg_sys::OffsetNumber] {
        self.offsets.get(..self.count).unwrap_or_default()
    }

    /// A block as an iterator gave it.
    ///
    /// # Safety
    /// `result` is followed by the offsets it counts; a count below 0 marks a lossy block.
    #[cfg(not(feature = "pg18"))]
    pub unsafe fn of(result: &pg_sys::TBMIterateResult) -> Block {
        let (lossy, recheck) = (result.ntuples < 0, result.recheck);
        let mut block = Block { number: result.blockno, lossy, recheck, count: 0, offsets: [0; OFFSETS] };
        block.count = usize::try_from(result.ntuples).unwrap_or(0).min(OFFSETS);
        // SAFETY: promised by the caller.
        block.offsets[..block.count].copy_from_slice(unsafe { result.offsets.as_slice(block.count) });
        block
    }

    /// The next block of a walk.
    ///
    /// # Safety
    /// `iterator` walks a live bitmap.
    #[cfg(feature = "pg18")]
    pub unsafe fn next(iterator: *mut pg_sys::TBMIterator) -> Option<Block> {
        let mut result = pg_sys::TBMIterateResult::default();
        // SAFETY: promised by the caller; as many offsets are asked for as there is room for.
        unsafe {
            if !pg_sys::tbm_iterate(iterator, &mut result) {
                return None;
            }
            let (lossy, recheck) = (result.lossy, result.recheck);
            let mut block = Block { number: result.blockno, lossy, recheck, count: 0, offsets: [0; OFFSETS] };
            if !block.lossy {
                let room = block.offsets.as_mut_ptr();
                let count = pg_sys::tbm_extract_page_tuple(&mut result, room, OFFSETS as u32);
                block.count = usize::try_from(count).unwrap_or(0).min(OFFSETS);
            }
            Some(block)
        }
    }
}

/// Calls `visit` with each block of a bitmap, in order.
///
/// # Safety
/// `bitmap` is one that nobody else walks or changes meanwhile.
pub unsafe fn each_block(bitmap: *mut pg_sys::TIDBitmap, mut visit: impl FnMut(&Block)) {
    // SAFETY: promised by the caller; a result is copied before the iterator moves on.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        {
            let iterator = pg_sys::tbm_begin_iterate(bitmap);
            while let Some(result) = pg_sys::tbm_iterate(iterator).as_ref() {
                visit(&Block::of(result));
            }
            pg_sys::tbm_end_iterate(iterator);
        }
        #[cfg(feature = "pg18")]
        {
            let mut iterator = pg_sys::tbm_begin_iterate(bitmap, std::ptr::null_mut(), 0);
            while let Some(block) = Block::next(&mut iterator) {
                visit(&block);
            }
            pg_sys::tbm_end_iterate(&mut iterator);
        }
    }
}
