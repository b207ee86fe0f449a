//! Read-only memory maps of relation files.
//!
//! PostgreSQL keeps a fork in files of 1 GB. Each is mapped once a backend, for its greatest possible length, and a page is
//! touched only after the file was seen to reach behind it: touching what a file does not have is SIGBUS, which restarts the
//! server. Files shrink under AccessExclusiveLock only, so a length once seen holds while the caller has the relation locked.

use crate::pg::versions::files;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::rc::{Rc, Weak};

use cass_storage::page::{Page, PAGE_SIZE};
use cass_storage::segment::SegmentReader;
use memmap2::{Advice, Mmap, MmapOptions};
use pgrx::pg_sys;

use super::cache;
use super::relation::{self, FileNode};
use super::source::RunSource;

/// Pages in one file of a fork.
const FILE_PAGES: u32 = pg_sys::RELSEG_SIZE;
/// Bytes in one file of a fork.
const FILE_BYTES: usize = FILE_PAGES as usize * PAGE_SIZE;
/// Relations whose maps a backend keeps; beyond that the one used longest ago is forgotten.
const RELATIONS: usize = 256;
/// Open segments a backend keeps of one relation; beyond that all of them are forgotten.
const READERS: usize = 1024;

/// The map of one file.
pub(super) struct FileMap {
    map: Mmap,
    path: PathBuf,
    /// Bytes that the file was seen to have.
    length: Cell<u64>,
}

impl FileMap {
    /// Maps a file, or gives `None` where it cannot be mapped; the pages are then read through the buffer manager.
    fn open(path: PathBuf) -> Option<FileMap> {
        let file = File::open(&path).ok()?;
        let length = file.metadata().ok()?.len();
        // SAFETY: the map is read-only and of a relation file. Only pages that were validated are used, and those never
        // change while somebody can ask for them; no byte behind the length seen is touched.
        let map = unsafe { MmapOptions::new().len(FILE_BYTES).map(&file) }.ok()?;
        // A read of a partition needs a few pages; the kernel would read megabytes around each. Who needs more says so.
        // Where the advice is not taken, reads are slower and no less right.
        let _ = map.advise(Advice::Random);
        Some(FileMap { map, path, length: Cell::new(length) })
    }

    /// A page by its number in the file, or `None` where the file does not reach that far.
    fn page(&self, index: u32) -> Option<&Page> {
        let start = index as usize * PAGE_SIZE;
        let end = start + PAGE_SIZE;
        if end as u64 > self.length.get() {
            self.length.set(std::fs::metadata(&self.path).ok()?.len());
            if end as u64 > self.length.get() {
                return None;
            }
        }
        self.map.get(start..end)?.try_into().ok()
    }

    /// Lets the kernel begin to read pages of the file.
    fn will_need(&self, index: u32, count: u32) {
        let _ = self.map.advise_range(Advice::WillNeed, index as usize * PAGE_SIZE, count as usize * PAGE_SIZE);
    }
}

/// What a backend keeps of one relation while that keeps its files.
pub(super) struct RelationFiles {
    node: FileNode,
    files: RefCell<HashMap<u32, Rc<FileMap>>>,
    pub(super) readers: RefCell<HashMap<u64, SegmentReader<RunSource>>>,
    last_used: Cell<u64>,
}

impl RelationFiles {
    /// The map of the file that holds `block`, if it can be mapped.
    fn file_of(&self, block: u32) -> Option<Rc<FileMap>> {
        let number = block / FILE_PAGES;
        if let Some(known) = self.files.borrow().get(&number) {
            return Some(Rc::clone(known));
        }
        let file = Rc::new(FileMap::open(path_of(self.node, number))?);
        self.files.borrow_mut().insert(number, Rc::clone(&file));
        Some(file)
    }

    /// Keeps an open segment.
    pub(super) fn keep_reader(&self, run_id: u64, reader: SegmentReader<RunSource>) {
        let mut readers = self.readers.borrow_mut();
        if readers.len() >= READERS {
            readers.clear();
        }
        readers.insert(run_id, reader);
    }
}

/// Path, from the data directory that is every backend's working directory, of a file of a relation's main fork.
fn path_of(node: FileNode, number: u32) -> PathBuf {
    let locator = files::Parts { tablespace: node.tablespace, database: node.database, number: node.node };
    let mut path = files::main_fork_path(locator, node.backend);
    if number > 0 {
        path.push_str(&format!(".{number}"));
    }
    PathBuf::from(path)
}

/// The parts of files that `pages` blocks from `first_block` are: path, offset and length in bytes.
pub(super) fn byte_ranges(node: FileNode, first_block: u32, pages: u32) -> Vec<(PathBuf, u64, u64)> {
    let end = u64::from(first_block) + u64::from(pages);
    let mut ranges = Vec::new();
    let mut block = u64::from(first_block);
    while block < end {
        let number = block / u64::from(FILE_PAGES);
        let file_end = end.min((number + 1) * u64::from(FILE_PAGES));
        let offset = (block % u64::from(FILE_PAGES)) * PAGE_SIZE as u64;
        ranges.push((path_of(node, number as u32), offset, (file_end - block) * PAGE_SIZE as u64));
        block = file_end;
    }
    ranges
}

/// The maps of the files that one run lies in.
pub(super) struct RunMap {
    first_block: u32,
    node: FileNode,
    /// Weak, since what is kept of a relation holds its open segments and they hold this.
    relation: Weak<RelationFiles>,
    /// Of each file from the run's first on, once it was needed.
    files: Vec<OnceCell<Rc<FileMap>>>,
}

impl RunMap {
    /// Maps of a run of `page_count` pages from `first_block`, made as they are needed.
    pub(super) fn new(relation: &Rc<RelationFiles>, first_block: u32, page_count: u32) -> RunMap {
        let last_block = first_block.saturating_add(page_count.saturating_sub(1));
        let count = last_block / FILE_PAGES - first_block / FILE_PAGES + 1;
        RunMap {
            first_block,
            node: relation.node,
            relation: Rc::downgrade(relation),
            files: (0..count).map(|_| OnceCell::new()).collect(),
        }
    }

    /// Page `page_no` of the run as its file has it now, or `None` where the file does not have it or cannot be mapped.
    pub(super) fn page(&self, page_no: u32) -> Option<&Page> {
        let block = self.first_block.checked_add(page_no)?;
        self.file(block)?.page(block % FILE_PAGES)
    }

    /// Lets the kernel begin to read pages of the run, as far as they lie in the file of the first one.
    pub(super) fn will_need(&self, first: u32, count: u32) {
        let Some(block) = self.first_block.checked_add(first) else { return };
        let index = block % FILE_PAGES;
        if let Some(file) = self.file(block) {
            file.will_need(index, count.min(FILE_PAGES - index));
        }
    }

    /// The map of the file that holds a block of the run, made if it is the first time.
    fn file(&self, block: u32) -> Option<&Rc<FileMap>> {
        let cell = self.files.get((block / FILE_PAGES - self.first_block / FILE_PAGES) as usize)?;
        let file = match cell.get() {
            Some(file) => file,
            None => {
                let file = match self.relation.upgrade() {
                    Some(relation) => relation.file_of(block)?,
                    None => Rc::new(FileMap::open(path_of(self.node, block / FILE_PAGES))?),
                };
                cell.get_or_init(|| file)
            }
        };
        Some(file)
    }
}

thread_local! {
    static FILES: RefCell<HashMap<pg_sys::Oid, Rc<RelationFiles>>> = RefCell::new(HashMap::new());
    static CLOCK: Cell<u64> = const { Cell::new(0) };
}

/// Forgets the maps of a relation, or of all, whose files may have been replaced. Maps in use live on until their readers
/// are gone; those read under a lock of the relation that keeps its files.
pub(super) fn forget(relation: Option<pg_sys::Oid>) {
    // Dropped after the borrow has ended.
    let _forgotten: Vec<Rc<RelationFiles>> = FILES.with_borrow_mut(|files| match relation {
        Some(oid) => files.remove(&oid).into_iter().collect(),
        None => files.drain().map(|(_, files)| files).collect(),
    });
}

/// What is kept of an open, locked relation's files.
pub(super) fn files_of(rel: pg_sys::Relation) -> Rc<RelationFiles> {
    let (oid, node) = (relation::oid(rel), relation::file_node(rel));
    let now = CLOCK.get() + 1;
    CLOCK.set(now);
    let known = FILES.with_borrow(|files| files.get(&oid).filter(|known| known.node == node).cloned());
    if let Some(known) = known {
        known.last_used.set(now);
        return known;
    }
    cache::watch_relations();
    let new = Rc::new(RelationFiles {
        node,
        files: RefCell::default(),
        readers: RefCell::default(),
        last_used: Cell::new(now),
    });
    let _replaced = FILES.with_borrow_mut(|files| {
        let oldest = (files.len() >= RELATIONS)
            .then(|| files.iter().min_by_key(|(_, files)| files.last_used.get()).map(|(oid, _)| *oid))
            .flatten();
        let evicted = oldest.and_then(|oldest| files.remove(&oldest));
        (evicted, files.insert(oid, Rc::clone(&new)))
    });
    new
}
