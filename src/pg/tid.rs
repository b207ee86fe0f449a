//! Row ids as TIDs.
//!
//! A row id is a 48-bit number; its TID has offsets 1..=291 only (`MaxHeapTuplesPerPage`), because tid bitmaps refuse
//! greater ones (PostgreSQL's tidbitmap.c).

use pgrx::pg_sys;

/// Offsets used in a virtual block: `MaxHeapTuplesPerPage` of 8 kB pages.
pub const OFFSETS: u64 = 291;

/// The greatest row id: the last offset of the last block that is not `InvalidBlockNumber`.
pub const MAX_ROW_ID: u64 = (u32::MAX as u64) * OFFSETS - 1;

/// The TID of a row id.
pub fn from_row_id(row_id: u64) -> pg_sys::ItemPointerData {
    at((row_id / OFFSETS) as u32, (row_id % OFFSETS) as u16 + 1)
}

/// The TID of a virtual block and an offset in it.
pub fn at(block: pg_sys::BlockNumber, offset: pg_sys::OffsetNumber) -> pg_sys::ItemPointerData {
    pg_sys::ItemPointerData {
        ip_blkid: pg_sys::BlockIdData { bi_hi: (block >> 16) as u16, bi_lo: (block & 0xffff) as u16 },
        ip_posid: offset,
    }
}

/// The row id of a TID, or `None` where the TID cannot name a row of a cass table.
pub fn to_row_id(tid: pg_sys::ItemPointerData) -> Option<u64> {
    let block = (u64::from(tid.ip_blkid.bi_hi) << 16) | u64::from(tid.ip_blkid.bi_lo);
    let offset = u64::from(tid.ip_posid);
    (1..=OFFSETS).contains(&offset).then(|| block * OFFSETS + offset - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_ids_and_tids_are_one_to_one() {
        for row_id in [0, 1, 290, 291, 292, 123_456_789, MAX_ROW_ID] {
            assert_eq!(to_row_id(from_row_id(row_id)), Some(row_id));
        }
        let mut invalid = from_row_id(5);
        invalid.ip_posid = 292;
        assert_eq!(to_row_id(invalid), None);
    }
}
