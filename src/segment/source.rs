//! Pages of a run: from the memory map, validated once a backend, or through the buffer manager.
//!
//! On a standby, after a promotion and in a database made by CREATE DATABASE the right content of a page may be in shared
//! buffers only while its file still has an older one, zeros or nothing. So every page says which one it is and carries a
//! checksum; a page of the file that matches is right, as runs are written once, and one that does not is asked of the buffer
//! manager. Only if that copy does not match either is the table damaged.

use std::cell::Cell;
use std::ops::Deref;
use std::rc::Rc;

use cass_storage::page::{self, Page, PageIdentity};
use cass_storage::segment::{PageSource, SegmentReader};
use cass_storage::StorageError;
use pgrx::pg_sys;

use super::list::SegmentEntry;
use super::map::{self, RunMap};
use super::relation::{self, FileNode};
use crate::error::Report;

/// The pages of one run. Read only while the caller holds a lock on the table.
pub struct RunSource {
    table: pg_sys::Oid,
    node: FileNode,
    storage_id: u64,
    run_id: u64,
    first_block: u32,
    page_count: u32,
    map: RunMap,
    /// A bit for each page whose mapped copy was found right.
    validated: Vec<Cell<u64>>,
}

thread_local! {
    static PAGES_READ: Cell<u64> = const { Cell::new(0) };
}

/// Pages of segments this backend has looked at so far, for EXPLAIN and tests.
pub fn pages_read() -> u64 {
    PAGES_READ.get()
}

/// A page held for reading.
pub enum PageGuard<'a> {
    Mapped(&'a Page),
    Copied(Rc<Page>),
}

impl Deref for PageGuard<'_> {
    type Target = Page;

    fn deref(&self) -> &Page {
        match self {
            PageGuard::Mapped(page) => page,
            PageGuard::Copied(page) => page,
        }
    }
}

impl RunSource {
    /// The pages of a run that the list shows, of an open, locked table.
    pub fn open(rel: pg_sys::Relation, entry: &SegmentEntry) -> RunSource {
        RunSource {
            table: relation::oid(rel),
            node: relation::file_node(rel),
            storage_id: entry.storage_id,
            run_id: entry.run_id,
            first_block: entry.first_block,
            page_count: entry.page_count,
            map: RunMap::new(&map::files_of(rel), entry.first_block, entry.page_count),
            validated: vec![Cell::new(0); (entry.page_count as usize).div_ceil(64)],
        }
    }

    fn identity(&self, page_no: u32) -> PageIdentity {
        PageIdentity { storage_id: self.storage_id, run_id: self.run_id, page_no }
    }

    /// Whether this backend has found the mapped copy of a page to be right.
    fn was_validated(&self, page_no: u32) -> bool {
        self.validated.get(page_no as usize / 64).is_some_and(|word| word.get() & bit(page_no) != 0)
    }

    /// Whether the mapped copy of a page is right; remembered once it is.
    fn is_valid(&self, page_no: u32, page: &Page) -> bool {
        if self.was_validated(page_no) {
            return true;
        }
        // As a whole, not one page of the operating system after the other.
        self.map.will_need(page_no, 1);
        let valid = page::validate(page, &self.identity(page_no)).is_ok();
        if let Some(word) = self.validated.get(page_no as usize / 64).filter(|_| valid) {
            word.set(word.get() | bit(page_no));
        }
        valid
    }

    /// The mapped copy of a page, if it is right.
    pub fn mapped(&self, page_no: u32) -> Option<&Page> {
        self.map.page(page_no).filter(|page| self.is_valid(page_no, page))
    }

    /// Reads a page through the buffer manager.
    ///
    /// # Errors
    /// `Damaged` if that copy is not right either; what PostgreSQL has against the block is raised.
    pub fn read_buffer(&self, page_no: u32) -> Result<Rc<Page>, StorageError> {
        let block = self.first_block.saturating_add(page_no);
        let mut copy = Rc::new([0_u8; page::PAGE_SIZE]);
        // SAFETY: the caller holds a lock on the table, so its relcache entry can be built and its files stay; the page is
        // copied while its buffer is pinned and share-locked.
        unsafe {
            let rel = pg_sys::RelationIdGetRelation(self.table);
            if rel.is_null() || relation::file_node(rel) != self.node {
                return Err(StorageError::Source("the table's files were replaced while it was read".into()));
            }
            let buffer = pg_sys::ReadBufferExtended(
                rel,
                pg_sys::ForkNumber::MAIN_FORKNUM,
                block,
                pg_sys::ReadBufferMode::RBM_NORMAL,
                std::ptr::null_mut(),
            );
            pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_SHARE as i32);
            if let Some(copy) = Rc::get_mut(&mut copy) {
                std::ptr::copy_nonoverlapping(
                    pg_sys::BufferGetPage(buffer).cast::<u8>(),
                    copy.as_mut_ptr(),
                    page::PAGE_SIZE,
                );
            }
            pg_sys::UnlockReleaseBuffer(buffer);
            pg_sys::RelationClose(rel);
        }
        page::validate(&copy, &self.identity(page_no))?;
        Ok(copy)
    }

    fn raise_damaged(&self, page_no: u32, what: &str) -> ! {
        let block = self.first_block.saturating_add(page_no);
        Report::new("XX001", format!("block {block} of table \"{}\" is damaged", name_of(self.table)))
            .detail(format!("It is page {page_no} of segment {}: {what}.", self.run_id))
            .hint("Restore the table from a backup.")
            .raise()
    }
}

/// A page's bit in its word of `RunSource::validated`.
fn bit(page_no: u32) -> u64 {
    1 << (page_no % 64)
}

fn name_of(table: pg_sys::Oid) -> String {
    // SAFETY: the function gives null or a NUL-terminated string, which is copied.
    unsafe {
        let name = pg_sys::get_rel_name(table);
        if name.is_null() {
            return table.to_u32().to_string();
        }
        std::ffi::CStr::from_ptr(name).to_string_lossy().into_owned()
    }
}

impl PageSource for RunSource {
    type Guard<'a> = PageGuard<'a>;

    fn page(&self, page_no: u32) -> Result<PageGuard<'_>, StorageError> {
        if page_no >= self.page_count {
            return Err(StorageError::Damaged { page_no: Some(page_no), what: "the run has no such page" });
        }
        PAGES_READ.set(PAGES_READ.get() + 1);
        if let Some(page) = self.mapped(page_no) {
            return Ok(PageGuard::Mapped(page));
        }
        match self.read_buffer(page_no) {
            Ok(page) => Ok(PageGuard::Copied(page)),
            Err(StorageError::Damaged { what, .. }) => self.raise_damaged(page_no, what),
            Err(error) => Err(error),
        }
    }

    fn will_need(&self, first: u32, count: u32) {
        let count = count.min(self.page_count.saturating_sub(first));
        if count > 0 && !self.was_validated(first) {
            self.map.will_need(first, count);
        }
    }
}

/// Opens a segment that the list shows, or gives the one this backend has open. The caller keeps `rel` locked while it reads.
///
/// # Errors
/// XX001 where the segment is damaged, 0A000 where a later version of the extension wrote it.
pub fn open_segment(rel: pg_sys::Relation, entry: &SegmentEntry) -> SegmentReader<RunSource> {
    let files = map::files_of(rel);
    let known = files.readers.borrow().get(&entry.run_id).cloned();
    if let Some(reader) = known.filter(|reader| reader.source().storage_id == entry.storage_id) {
        return reader;
    }
    let source = RunSource::open(rel, entry);
    match SegmentReader::open(source, entry.page_count) {
        Ok(reader) => {
            files.keep_reader(entry.run_id, reader.clone());
            reader
        }
        Err(error) => raise(&relation::name(rel), &error),
    }
}

/// Raises an error of the storage crate about a table as a PostgreSQL error: XX001 for damage, 0A000 for an unknown format,
/// 54000 for what is too large, 58030 for the operating system's.
pub fn raise(table: &str, error: &StorageError) -> ! {
    let (sqlstate, message) = match error {
        StorageError::Damaged { .. } => ("XX001", format!("a segment of table \"{table}\" is damaged")),
        StorageError::Unsupported { .. } => {
            ("0A000", format!("a segment of table \"{table}\" cannot be read by this version of cass"))
        }
        StorageError::TooLarge { .. } => ("54000", format!("a row of table \"{table}\" is too large")),
        StorageError::Io(_) => ("58030", format!("could not read or write temporary data of table \"{table}\"")),
        StorageError::Refused { .. } | StorageError::Source(_) => {
            ("XX000", format!("could not process table \"{table}\""))
        }
    };
    Report::new(sqlstate, message).detail(format!("{error}.")).raise()
}
