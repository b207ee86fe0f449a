//! A row of the delta's heap out of its bytes, with every length checked: what has been damaged may say anything.

use crate::delta::relation::column;

/// Bytes of a heap tuple's header without a bitmap of nulls, rounded to 8 (`t_hoff`).
const HEADER: usize = 24;
const INFOMASK2_AT: usize = 18;
const INFOMASK_AT: usize = 20;
const HOFF_AT: usize = 22;
/// Number of attributes in `t_infomask2` (`HEAP_NATTS_MASK`).
const NATTS: u16 = 0x07ff;
/// Flag of `t_infomask`: there are nulls (`HEAP_HASNULL`).
const HAS_NULLS: u16 = 1;

/// The columns of a row of the delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row<'a> {
    pub(super) storage_id: u64,
    pub(super) key: &'a [u8],
    pub(super) row_id: u64,
    pub(super) kind: i16,
    pub(super) row: &'a [u8],
}

/// Reads a tuple: header and columns, as they lie on a page.
pub(super) fn parse(tuple: &[u8]) -> Option<Row<'_>> {
    let natts = u16::from_ne_bytes(take(tuple, INFOMASK2_AT)?) & NATTS;
    let has_nulls = u16::from_ne_bytes(take(tuple, INFOMASK_AT)?) & HAS_NULLS != 0;
    if usize::from(natts) != column::COUNT || has_nulls || usize::from(*tuple.get(HOFF_AT)?) != HEADER {
        return None;
    }
    let storage_id = u64::from_ne_bytes(take(tuple, HEADER)?);
    let (key, end) = varlena(tuple, HEADER + 8)?;
    let row_id_at = end.next_multiple_of(8);
    let row_id = u64::from_ne_bytes(take(tuple, row_id_at)?);
    let kind = i16::from_ne_bytes(take(tuple, row_id_at + 8)?);
    let (row, _) = varlena(tuple, row_id_at + 10)?;
    Some(Row { storage_id, key, row_id, kind, row })
}

fn take<const N: usize>(tuple: &[u8], at: usize) -> Option<[u8; N]> {
    tuple.get(at..)?.first_chunk().copied()
}

/// The bytes of a plain varlena behind what ends at `at`, and where they end. Its header has four bytes, at a multiple of four
/// behind zeros, or only one.
fn varlena(tuple: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let first = *tuple.get(at)?;
    if first & 1 == 1 {
        let end = at + usize::from(first >> 1);
        return Some((tuple.get(at + 1..end)?, end));
    }
    let at = at.next_multiple_of(4);
    let header = u32::from_le_bytes(take(tuple, at)?);
    let end = at.checked_add((header >> 2) as usize)?;
    let bytes = tuple.get(at + 4..end)?;
    (header & 3 == 0).then_some((bytes, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let mut tuple = vec![0; HEADER];
        tuple[INFOMASK2_AT] = 5;
        tuple[HOFF_AT] = 24;
        tuple.extend_from_slice(&77_u64.to_ne_bytes());
        tuple.extend_from_slice(&((4_u32 + 3) << 2).to_le_bytes());
        tuple.extend_from_slice(b"key\0");
        tuple.extend_from_slice(&9_u64.to_ne_bytes());
        tuple.extend_from_slice(&1_i16.to_ne_bytes());
        tuple.extend_from_slice(&[0, 0]);
        tuple.extend_from_slice(&((4_u32 + 2) << 2).to_le_bytes());
        tuple.extend_from_slice(b"rw");
        tuple
    }

    #[test]
    fn a_row_is_read_from_its_bytes() {
        let row = Row { storage_id: 77, key: b"key", row_id: 9, kind: 1, row: b"rw" };
        assert_eq!(parse(&sample()), Some(row));
    }

    #[test]
    fn headers_of_one_byte_are_read_too() {
        let mut tuple = sample()[..HEADER + 8].to_vec();
        tuple.extend_from_slice(&[(1 + 3) << 1 | 1, b'k', b'e', b'y', 0, 0, 0, 0]);
        tuple.extend_from_slice(&9_u64.to_ne_bytes());
        tuple.extend_from_slice(&1_i16.to_ne_bytes());
        tuple.extend_from_slice(&[(1 + 2) << 1 | 1, b'r', b'w']);
        assert_eq!(parse(&tuple), parse(&sample()));
    }

    #[test]
    fn a_tuple_that_is_cut_off_is_no_row() {
        let tuple = sample();
        assert!((0..tuple.len()).all(|length| parse(&tuple[..length]).is_none()));
    }

    #[test]
    fn no_damaged_byte_makes_the_reader_leave_the_tuple() {
        let tuple = sample();
        for at in 0..tuple.len() {
            for value in 0..=255 {
                let mut damaged = tuple.clone();
                damaged[at] = value;
                let _ = parse(&damaged);
            }
        }
    }
}
