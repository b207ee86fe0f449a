//! Standard 8 kB pages that say which page they are and prove that they are whole.
//!
//! The first 24 bytes are PostgreSQL's page header, so that the buffer manager, checksums and page inspection
//! accept a page as one of theirs; the last 32 are ours. A page read through a memory map may be a stale or
//! an empty copy, so each one carries its identity and a CRC32C of everything but the two header fields
//! that PostgreSQL writes by itself (LSN and checksum).

use crate::error::{Result, StorageError};

/// Bytes of a page: PostgreSQL's BLCKSZ.
pub const PAGE_SIZE: usize = 8192;
/// One page.
pub type Page = [u8; PAGE_SIZE];

/// Bytes of PostgreSQL's page header.
pub const HEADER_SIZE: usize = 24;
/// Bytes of our trailer.
pub const TRAILER_SIZE: usize = 32;
/// Bytes of content that one page holds.
pub const CONTENT_CAPACITY: usize = PAGE_SIZE - HEADER_SIZE - TRAILER_SIZE;

/// Start of the bytes under the CRC: after pd_lsn and pd_checksum.
const CRC_FROM: usize = 10;
const CRC_AT: usize = PAGE_SIZE - 4;
const TRAILER_AT: usize = PAGE_SIZE - TRAILER_SIZE;
const KIND_AT: usize = TRAILER_AT + 20;
const CONTENT_LEN_AT: usize = TRAILER_AT + 22;
/// pd_pagesize_version: page size and layout version 4, as in PostgreSQL 8.3 and later.
const PAGESIZE_VERSION: u16 = PAGE_SIZE as u16 | 4;

/// Which page of which life of which table a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageIdentity {
    /// Names one life of the table.
    pub storage_id: u64,
    /// Names the run within that life.
    pub run_id: u64,
    /// Number of the page within the run, from 0.
    pub page_no: u32,
}

/// What a page holds.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PageKind {
    /// The first, mostly only, page of a leaf.
    Leaf = 1,
    /// A further page of a leaf that holds one large row.
    LeafContinuation = 2,
    /// Separators and children of the key tree.
    Inner = 3,
    /// Blocks of the filter over partitions.
    Filter = 4,
    /// Row ids and the leaves they lie in.
    RowIds = 5,
    /// Separators and children of the row id tree.
    RowIdInner = 6,
    /// The footer or a part of it.
    Footer = 7,
}

impl PageKind {
    fn from_byte(byte: u8) -> Result<Self> {
        Ok(match byte {
            1 => PageKind::Leaf,
            2 => PageKind::LeafContinuation,
            3 => PageKind::Inner,
            4 => PageKind::Filter,
            5 => PageKind::RowIds,
            6 => PageKind::RowIdInner,
            7 => PageKind::Footer,
            _ => return Err(StorageError::damaged("unknown kind of page")),
        })
    }
}

/// A page of zeros.
pub fn empty() -> Box<Page> {
    Box::new([0; PAGE_SIZE])
}

/// Fills `page` with `content` and everything around it.
///
/// # Errors
/// `TooLarge` if `content` exceeds [`CONTENT_CAPACITY`].
pub fn write(page: &mut Page, identity: &PageIdentity, kind: PageKind, content: &[u8]) -> Result<()> {
    if content.len() > CONTENT_CAPACITY {
        return Err(too_large(content.len()));
    }
    page.fill(0);
    page[HEADER_SIZE..HEADER_SIZE + content.len()].copy_from_slice(content);
    seal(page, identity, kind, content.len())
}

/// Writes header and trailer around content that lies at [`HEADER_SIZE`] already. What follows the content
/// must be zero.
///
/// # Errors
/// `TooLarge` if `content_len` exceeds [`CONTENT_CAPACITY`].
pub fn seal(page: &mut Page, identity: &PageIdentity, kind: PageKind, content_len: usize) -> Result<()> {
    if content_len > CONTENT_CAPACITY {
        return Err(too_large(content_len));
    }
    let lower = (HEADER_SIZE + content_len) as u16;
    page[..HEADER_SIZE].fill(0);
    put(page, 12, &lower.to_le_bytes());
    put(page, 14, &(TRAILER_AT as u16).to_le_bytes());
    put(page, 16, &(TRAILER_AT as u16).to_le_bytes());
    put(page, 18, &PAGESIZE_VERSION.to_le_bytes());
    page[TRAILER_AT..].fill(0);
    put(page, TRAILER_AT, &identity.storage_id.to_le_bytes());
    put(page, TRAILER_AT + 8, &identity.run_id.to_le_bytes());
    put(page, TRAILER_AT + 16, &identity.page_no.to_le_bytes());
    page[KIND_AT] = kind as u8;
    put(page, CONTENT_LEN_AT, &(content_len as u16).to_le_bytes());
    let crc = crc32c::crc32c(&page[CRC_FROM..CRC_AT]);
    put(page, CRC_AT, &crc.to_le_bytes());
    Ok(())
}

/// Checks identity and CRC of `page` and gives its kind and content.
///
/// # Errors
/// `Damaged` if it is another page than `identity` says, or not whole.
pub fn validate<'a>(page: &'a Page, identity: &PageIdentity) -> Result<(PageKind, &'a [u8])> {
    let damaged = |what| StorageError::damaged_at(identity.page_no, what);
    let trailer = &page[TRAILER_AT..];
    let expected = [
        &identity.storage_id.to_le_bytes()[..],
        &identity.run_id.to_le_bytes()[..],
        &identity.page_no.to_le_bytes()[..],
    ];
    let same = trailer[..8] == *expected[0] && trailer[8..16] == *expected[1] && trailer[16..20] == *expected[2];
    if !same {
        return Err(damaged("the page is another one than expected, or was never written"));
    }
    if crc32c::crc32c(&page[CRC_FROM..CRC_AT]).to_le_bytes() != page[CRC_AT..] {
        return Err(damaged("checksum does not match"));
    }
    parse(page).map_err(|error| error.on_page(identity.page_no))
}

/// Kind and content of a page that has been validated before.
///
/// # Errors
/// `Damaged` if kind or length make no sense.
pub fn parse(page: &Page) -> Result<(PageKind, &[u8])> {
    let kind = PageKind::from_byte(page[KIND_AT])?;
    let len = usize::from(u16::from_le_bytes([page[CONTENT_LEN_AT], page[CONTENT_LEN_AT + 1]]));
    if len > CONTENT_CAPACITY {
        return Err(StorageError::damaged("page content is too long"));
    }
    Ok((kind, &page[HEADER_SIZE..HEADER_SIZE + len]))
}

fn put(page: &mut Page, at: usize, bytes: &[u8]) {
    page[at..at + bytes.len()].copy_from_slice(bytes);
}

fn too_large(size: usize) -> StorageError {
    StorageError::TooLarge { what: "page content", size: size as u64, limit: CONTENT_CAPACITY as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: PageIdentity = PageIdentity { storage_id: 0x1122_3344_5566_7788, run_id: 7, page_no: 3 };

    fn sample() -> Box<Page> {
        let mut page = empty();
        write(&mut page, &IDENTITY, PageKind::Leaf, b"some content").unwrap();
        page
    }

    #[test]
    fn a_page_gives_back_kind_and_content() {
        let page = sample();
        assert_eq!(validate(&page, &IDENTITY).unwrap(), (PageKind::Leaf, &b"some content"[..]));
    }

    #[test]
    fn a_page_looks_like_a_page_of_postgresql() {
        let page = sample();
        let field = |at: usize| u16::from_le_bytes([page[at], page[at + 1]]);
        assert_eq!([field(12), field(14), field(16), field(18)], [24 + 12, 8160, 8160, 8192 | 4]);
        assert!(page[..12].iter().chain(&page[20..24]).all(|byte| *byte == 0));
    }

    #[test]
    fn every_flipped_bit_is_found_except_in_what_postgresql_writes() {
        let mut page = sample();
        for bit in 0..PAGE_SIZE * 8 {
            page[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(validate(&page, &IDENTITY).is_ok(), bit / 8 < 10, "bit {bit}");
            page[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn a_page_in_another_place_or_of_another_life_is_refused() {
        let page = sample();
        for other in [
            PageIdentity { storage_id: 1, ..IDENTITY },
            PageIdentity { run_id: 8, ..IDENTITY },
            PageIdentity { page_no: 4, ..IDENTITY },
        ] {
            assert!(matches!(validate(&page, &other), Err(StorageError::Damaged { page_no: Some(_), .. })));
        }
        assert!(validate(&empty(), &IDENTITY).is_err());
    }

    #[test]
    fn content_fills_a_page_to_the_last_byte_and_no_further() {
        let mut page = empty();
        let full = vec![0xab; CONTENT_CAPACITY];
        write(&mut page, &IDENTITY, PageKind::Inner, &full).unwrap();
        assert_eq!(validate(&page, &IDENTITY).unwrap().1, &full[..]);
        let over = vec![0; CONTENT_CAPACITY + 1];
        assert!(matches!(write(&mut page, &IDENTITY, PageKind::Inner, &over), Err(StorageError::TooLarge { .. })));
    }
}
