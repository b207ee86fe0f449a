//! A leaf's body in its pages: compressed where that helps, and over several pages if it is one large row.
//!
//! The content of the first page starts with 12 bytes: flags (bit 0: LZ4), a zero, the number of pages (u16), the
//! number of bytes stored (u32) and the length of the body (u32). The bytes stored follow, through the contents
//! of the continuation pages.

use super::pages::{content_of, PageWriter};
use super::{PageSink, PageSource};
use crate::bytes::ByteReader;
use crate::error::{Result, StorageError};
use crate::page::{PageKind, CONTENT_CAPACITY};

const LEAF_HEADER: usize = 12;
const LZ4: u8 = 1;
/// Bytes that the first page holds; the pages after it hold [`CONTENT_CAPACITY`].
pub(super) const FIRST_PAGE_BYTES: usize = CONTENT_CAPACITY - LEAF_HEADER;
/// LZ4 makes of one byte at most so many.
const MAX_RATIO: usize = 255;

/// A body ready to be written.
pub(super) struct Stored {
    flags: u8,
    body_len: usize,
    pub(super) bytes: Vec<u8>,
}

/// Compresses `body` if that saves an eighth or more: less is not worth undoing at each read.
pub(super) fn store(body: &[u8]) -> Stored {
    let compressed = lz4_flex::block::compress(body);
    if compressed.len() <= body.len() / 8 * 7 {
        Stored { flags: LZ4, body_len: body.len(), bytes: compressed }
    } else {
        Stored { flags: 0, body_len: body.len(), bytes: body.to_vec() }
    }
}

/// Writes the pages of a leaf and gives the number of the first.
pub(super) fn write<S: PageSink>(pages: &mut PageWriter<S>, stored: &Stored) -> Result<u32> {
    let too_large = || StorageError::TooLarge {
        what: "row",
        size: stored.body_len as u64,
        limit: (usize::from(u16::MAX) * CONTENT_CAPACITY) as u64,
    };
    let (first, rest) = stored.bytes.split_at(stored.bytes.len().min(FIRST_PAGE_BYTES));
    let span = u16::try_from(1 + rest.len().div_ceil(CONTENT_CAPACITY)).map_err(|_| too_large())?;
    let mut content = Vec::with_capacity(CONTENT_CAPACITY);
    content.extend_from_slice(&[stored.flags, 0]);
    content.extend_from_slice(&span.to_le_bytes());
    content.extend_from_slice(&(stored.bytes.len() as u32).to_le_bytes());
    content.extend_from_slice(&u32::try_from(stored.body_len).map_err(|_| too_large())?.to_le_bytes());
    content.extend_from_slice(first);
    let page_no = pages.put(PageKind::Leaf, &content)?;
    for part in rest.chunks(CONTENT_CAPACITY) {
        pages.put(PageKind::LeafContinuation, part)?;
    }
    Ok(page_no)
}

/// Reads the body of the leaf that starts in page `page_no`, into the memory of `body`.
pub(super) fn read<S: PageSource>(source: &S, page_no: u32, mut body: Vec<u8>) -> Result<Vec<u8>> {
    let damaged = |what| StorageError::damaged_at(page_no, what);
    let page = source.page(page_no)?;
    let content = content_of(&page, PageKind::Leaf, page_no)?;
    let mut reader = ByteReader::new(content);
    let [flags, zero] = [reader.u8()?, reader.u8()?];
    let (span, stored_len, body_len) = (reader.u16()?, reader.u32()? as usize, reader.u32()? as usize);
    if flags & !LZ4 != 0 || zero != 0 {
        return Err(damaged("leaf is stored in an unknown way"));
    }
    let room = FIRST_PAGE_BYTES + CONTENT_CAPACITY * usize::from(span.saturating_sub(1));
    if stored_len > room || body_len > stored_len.saturating_mul(MAX_RATIO) {
        return Err(damaged("leaf is longer than its pages"));
    }
    body.clear();
    let first = reader.take(stored_len.min(reader.rest().len()))?;
    if first.len() == stored_len && flags & LZ4 != 0 {
        return decompress(first, body_len, body).ok_or_else(|| damaged("leaf cannot be decompressed"));
    }
    body.extend_from_slice(first);
    source.will_need(page_no.saturating_add(1), u32::from(span).saturating_sub(1));
    for next in 1..u32::from(span) {
        let next = page_no.checked_add(next).ok_or_else(|| damaged("leaf goes beyond its run"))?;
        let page = source.page(next)?;
        body.extend_from_slice(content_of(&page, PageKind::LeafContinuation, next)?);
    }
    if body.len() != stored_len {
        return Err(damaged("leaf is not as long as it says"));
    }
    if flags & LZ4 != 0 {
        return decompress(&body, body_len, Vec::new()).ok_or_else(|| damaged("leaf cannot be decompressed"));
    }
    if body.len() != body_len {
        return Err(damaged("leaf is not as long as it says"));
    }
    Ok(body)
}

/// Number of pages of a leaf, by the content of its first page.
pub(super) fn span(content: &[u8]) -> Result<u16> {
    let mut reader = ByteReader::new(content);
    reader.take(2)?;
    reader.u16()
}

fn decompress(stored: &[u8], body_len: usize, mut body: Vec<u8>) -> Option<Vec<u8>> {
    body.resize(body_len, 0);
    let len = lz4_flex::block::decompress_into(stored, &mut body).ok()?;
    (len == body_len).then_some(body)
}
