//! The footer: what a segment is and where its parts lie. It is the end of the run, so that a reader who
//! knows the number of pages finds it.
//!
//! The last page's content starts with the format version (u16), the number of footer pages (u16) and the number
//! of bytes in all (u32). The bytes are [`Footer`] as bincode 2 (standard configuration) writes it. They begin in
//! the first footer page; each but the last is full; what is left follows the last page's 8 bytes.

use super::filter::FilterPlace;
use super::pages::{content_of, PageWriter};
use super::walk::Root;
use super::{Column, PageSink, PageSource, SegmentSummary};
use crate::bytes::ByteReader;
use crate::error::{Result, StorageError};
use crate::page::{PageKind, CONTENT_CAPACITY};
use serde::{Deserialize, Serialize};

/// Version of the format of all pages of a run.
pub const FORMAT_VERSION: u16 = 1;
const LAST_PAGE_HEADER: usize = 8;
const LAST_PAGE_BYTES: usize = CONTENT_CAPACITY - LAST_PAGE_HEADER;
/// Largest footer: three keys, columns, and numbers.
const MAX_BYTES: usize = 128 * 1024;

/// What a segment is and where its parts lie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Footer {
    /// Ascending by attnum.
    pub(super) columns: Vec<Column>,
    pub(super) summary: SegmentSummary,
    /// Tree of the keys; none if there are no rows.
    pub(super) root: Option<Root>,
    /// Tree of the row ids; none if there are none.
    pub(super) row_ids: Option<Root>,
    /// None if keys have no partitions.
    pub(super) filter: Option<FilterPlace>,
}

impl Footer {
    /// Writes the footer as the run's last pages, after it has filled in how many pages there are.
    pub(super) fn write<S: PageSink>(&mut self, pages: &mut PageWriter<S>) -> Result<()> {
        // The page numbers are varints: the footer may grow by them, so they are set until its length holds.
        let mut count = 1;
        let mut bytes = loop {
            self.summary.page_count = pages.next_page().saturating_add(count);
            self.summary.footer_page = self.summary.page_count - 1;
            let bytes = bincode::serde::encode_to_vec(&*self, bincode::config::standard())
                .map_err(|error| StorageError::Source(error.to_string()))?;
            let needed = 1 + bytes.len().saturating_sub(LAST_PAGE_BYTES).div_ceil(CONTENT_CAPACITY) as u32;
            if needed <= count {
                break bytes;
            }
            count = needed;
        };
        if bytes.len() > MAX_BYTES {
            let (size, limit) = (bytes.len() as u64, MAX_BYTES as u64);
            return Err(StorageError::TooLarge { what: "footer", size, limit });
        }
        let total = bytes.len() as u32;
        for _ in 1..count {
            let rest = bytes.split_off(bytes.len().min(CONTENT_CAPACITY));
            pages.put(PageKind::Footer, &bytes)?;
            bytes = rest;
        }
        let mut content = Vec::with_capacity(CONTENT_CAPACITY);
        content.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        content.extend_from_slice(&(count as u16).to_le_bytes());
        content.extend_from_slice(&total.to_le_bytes());
        content.extend_from_slice(&bytes);
        pages.put(PageKind::Footer, &content)?;
        Ok(())
    }

    /// Reads the footer of a run of `page_count` pages.
    pub(super) fn read<S: PageSource>(source: &S, page_count: u32) -> Result<Self> {
        let last = page_count.checked_sub(1).ok_or_else(|| StorageError::damaged("run has no pages"))?;
        Self::read_from(source, page_count, last).map_err(|error| error.on_page(last))
    }

    fn read_from<S: PageSource>(source: &S, page_count: u32, last: u32) -> Result<Self> {
        let page = source.page(last)?;
        let mut reader = ByteReader::new(content_of(&page, PageKind::Footer, last)?);
        let version = reader.u16()?;
        if version != FORMAT_VERSION {
            return Err(StorageError::Unsupported { version });
        }
        let (count, total) = (u32::from(reader.u16()?), reader.u32()? as usize);
        if count == 0 || count > page_count || total > MAX_BYTES {
            return Err(StorageError::damaged("footer has no such size"));
        }
        let mut bytes = Vec::with_capacity(total);
        for page_no in page_count - count..last {
            let page = source.page(page_no)?;
            bytes.extend_from_slice(content_of(&page, PageKind::Footer, page_no)?);
            if bytes.len() > total {
                break;
            }
        }
        bytes.extend_from_slice(reader.rest());
        if bytes.len() != total {
            return Err(StorageError::damaged("footer is not as long as it says"));
        }
        let config = bincode::config::standard().with_limit::<MAX_BYTES>();
        let (footer, used): (Footer, usize) = bincode::serde::decode_from_slice(&bytes, config)
            .map_err(|_| StorageError::damaged("footer cannot be read"))?;
        if used != total || footer.summary.page_count != page_count {
            return Err(StorageError::damaged("footer is of another run"));
        }
        let ascending = footer.columns.windows(2).all(|pair| pair[0].attnum < pair[1].attnum);
        if !ascending || footer.columns.first().is_some_and(|column| column.attnum == 0) {
            return Err(StorageError::damaged("columns are out of order"));
        }
        Ok(footer)
    }
}
