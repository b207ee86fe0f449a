//! Numbering pages on their way to the sink, and reading them as what they should be.

use super::PageSink;
use crate::error::{Result, StorageError};
use crate::page::{self, Page, PageIdentity, PageKind};

/// Seals pages and hands them to the sink.
pub(super) struct PageWriter<S> {
    sink: S,
    identity: PageIdentity,
    page: Box<Page>,
}

impl<S: PageSink> PageWriter<S> {
    pub(super) fn new(sink: S, storage_id: u64, run_id: u64) -> Self {
        PageWriter { sink, identity: PageIdentity { storage_id, run_id, page_no: 0 }, page: page::empty() }
    }

    /// Number of the page that comes next.
    pub(super) fn next_page(&self) -> u32 {
        self.identity.page_no
    }

    /// Writes a page and gives its number.
    pub(super) fn put(&mut self, kind: PageKind, content: &[u8]) -> Result<u32> {
        let page_no = self.identity.page_no;
        page::write(&mut self.page, &self.identity, kind, content)?;
        self.sink.put(&self.page)?;
        self.identity.page_no = page_no.checked_add(1).ok_or(StorageError::TooLarge {
            what: "run (pages)",
            size: u64::from(u32::MAX) + 1,
            limit: u64::from(u32::MAX),
        })?;
        Ok(page_no)
    }

    pub(super) fn into_sink(self) -> S {
        self.sink
    }
}

/// Content of a page that must be of this kind.
pub(super) fn content_of(page: &Page, kind: PageKind, page_no: u32) -> Result<&[u8]> {
    let (found, content) = page::parse(page).map_err(|error| error.on_page(page_no))?;
    if found != kind {
        return Err(StorageError::damaged_at(page_no, "page is of another kind than expected"));
    }
    Ok(content)
}
