//! Where pages go to and come from.

use crate::error::{Result, StorageError};
use crate::page::{self, Page, PageIdentity};
use std::ops::Deref;

/// Takes the pages of a run as they are finished: page 0 first, then 1, 2 and so on.
pub trait PageSink {
    /// Takes the next page, sealed.
    ///
    /// # Errors
    /// Whatever storing a page can fail with; the writer then gives up.
    fn put(&mut self, page: &Page) -> Result<()>;
}

/// Gives the pages of a run. The source validates a page ([`page::validate`]) before it hands it out, so that
/// one that keeps pages can do so once a page.
pub trait PageSource {
    /// A page held for reading.
    type Guard<'a>: Deref<Target = Page>
    where
        Self: 'a;

    /// Page `page_no` of the run.
    ///
    /// # Errors
    /// `Damaged` if there is no such page or it is not valid.
    fn page(&self, page_no: u32) -> Result<Self::Guard<'_>>;

    /// Says that `count` pages from `first` are going to be asked for; there may be fewer. A source that reads pages from
    /// a device can then begin to do so.
    fn will_need(&self, first: u32, count: u32) {
        let _ = (first, count);
    }
}

impl<S: PageSink + ?Sized> PageSink for &mut S {
    fn put(&mut self, page: &Page) -> Result<()> {
        (**self).put(page)
    }
}

impl<S: PageSource + ?Sized> PageSource for std::rc::Rc<S> {
    type Guard<'a>
        = S::Guard<'a>
    where
        Self: 'a;

    fn page(&self, page_no: u32) -> Result<Self::Guard<'_>> {
        (**self).page(page_no)
    }

    fn will_need(&self, first: u32, count: u32) {
        (**self).will_need(first, count);
    }
}

/// A run in memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryRun {
    storage_id: u64,
    run_id: u64,
    pages: Vec<Box<Page>>,
}

impl MemoryRun {
    /// An empty run that reads only pages of this identity.
    pub fn new(storage_id: u64, run_id: u64) -> Self {
        MemoryRun { storage_id, run_id, pages: Vec::new() }
    }

    /// Its pages.
    pub fn pages(&self) -> &[Box<Page>] {
        &self.pages
    }

    /// Its pages, to be changed.
    pub fn pages_mut(&mut self) -> &mut Vec<Box<Page>> {
        &mut self.pages
    }
}

impl PageSink for MemoryRun {
    fn put(&mut self, page: &Page) -> Result<()> {
        self.pages.push(Box::new(*page));
        Ok(())
    }
}

impl PageSource for MemoryRun {
    type Guard<'a> = &'a Page;

    fn page(&self, page_no: u32) -> Result<&Page> {
        let page = self
            .pages
            .get(page_no as usize)
            .ok_or_else(|| StorageError::damaged_at(page_no, "there is no such page"))?;
        let identity = PageIdentity { storage_id: self.storage_id, run_id: self.run_id, page_no };
        page::validate(page, &identity)?;
        Ok(page)
    }
}
