//! The row id map: which leaf a row id lies in.
//!
//! Consecutive ids in one leaf are one *run of ids*: first id, number of ids, leaf. Runs are sorted by first id
//! and written in groups of up to [`GROUP_RUNS`]. Content of a page: number of groups (u16), for each group its
//! first id (u64), its number of runs (u16) and its end (u16) after the directory, then the groups: first
//! ids, numbers of ids, and leaves, each as a chunk of integers. A tree of its own leads to the page.

use super::encoding::ints::{self, Ints};
use super::inner::TreeBuilder;
use super::pages::{content_of, PageWriter};
use super::walk::{Root, Start, Walk};
use super::{PageSink, PageSource};
use crate::bytes::ByteReader;
use crate::error::{Result, StorageError};
use crate::merge::Direction;
use crate::page::{PageKind, CONTENT_CAPACITY};
use crate::sort::ExternalSorter;
use std::path::Path;

/// Runs that are encoded together.
const GROUP_RUNS: usize = 256;
const DIRECTORY_ENTRY: usize = 12;

/// Gathers which ids lie in which leaf.
pub(super) struct RowIdBuilder {
    runs: ExternalSorter,
    ids: Vec<u64>,
}

impl RowIdBuilder {
    pub(super) fn new(memory_bytes: usize, directory: &Path) -> Self {
        RowIdBuilder { runs: ExternalSorter::with_directory(memory_bytes, directory), ids: Vec::new() }
    }

    /// Adds the ids of the rows of a leaf. Id 0 names no row.
    pub(super) fn push_leaf(&mut self, ids: &[u64], leaf: u32) -> Result<()> {
        self.ids.clear();
        self.ids.extend(ids.iter().filter(|id| **id != 0));
        self.ids.sort_unstable();
        for run in self.ids.chunk_by(|a, b| a.checked_add(1) == Some(*b)) {
            let mut payload = [0; 8];
            payload[..4].copy_from_slice(&(run.len() as u32).to_le_bytes());
            payload[4..].copy_from_slice(&leaf.to_le_bytes());
            self.runs.push(&run[0].to_be_bytes(), &payload)?;
        }
        Ok(())
    }

    /// Writes the map; none if there are no ids.
    pub(super) fn finish<S: PageSink>(self, pages: &mut PageWriter<S>) -> Result<Option<Root>> {
        let mut writer = MapWriter { tree: TreeBuilder::new(PageKind::RowIdInner), groups: Vec::new(), size: 2 };
        let mut group = Vec::with_capacity(GROUP_RUNS);
        let mut runs = self.runs.finish()?;
        while let Some((first, payload)) = runs.next()? {
            let mut payload = ByteReader::new(payload);
            let first = first.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
            group.push([first, u64::from(payload.u32()?), u64::from(payload.u32()?)]);
            if group.len() == GROUP_RUNS {
                writer.add(pages, &group)?;
                group.clear();
            }
        }
        writer.add(pages, &group)?;
        writer.write_page(pages)?;
        Ok(writer.tree.finish(pages)?.map(|(page_no, height)| Root { page_no, height }))
    }
}

struct MapWriter {
    tree: TreeBuilder,
    /// First id, number of runs, bytes.
    groups: Vec<(u64, u16, Vec<u8>)>,
    size: usize,
}

impl MapWriter {
    fn add<S: PageSink>(&mut self, pages: &mut PageWriter<S>, group: &[[u64; 3]]) -> Result<()> {
        let Some(first) = group.first() else {
            return Ok(());
        };
        let mut bytes = Vec::new();
        for part in 0..3 {
            let numbers: Vec<u64> = group.iter().map(|run| run[part]).collect();
            ints::encode(&mut bytes, &numbers);
        }
        let size = DIRECTORY_ENTRY + bytes.len();
        if self.size + size > CONTENT_CAPACITY {
            self.write_page(pages)?;
        }
        self.size += size;
        self.groups.push((first[0], group.len() as u16, bytes));
        Ok(())
    }

    fn write_page<S: PageSink>(&mut self, pages: &mut PageWriter<S>) -> Result<()> {
        let Some((first, ..)) = self.groups.first() else {
            return Ok(());
        };
        let separator = first.to_be_bytes();
        let mut content = Vec::with_capacity(CONTENT_CAPACITY);
        content.extend_from_slice(&(self.groups.len() as u16).to_le_bytes());
        let mut end = 0;
        for (first, runs, bytes) in &self.groups {
            end += bytes.len();
            content.extend_from_slice(&first.to_le_bytes());
            content.extend_from_slice(&runs.to_le_bytes());
            content.extend_from_slice(&(end as u16).to_le_bytes());
        }
        self.groups.iter().for_each(|(.., bytes)| content.extend_from_slice(bytes));
        let page_no = pages.put(PageKind::RowIds, &content)?;
        self.groups.clear();
        self.size = 2;
        self.tree.push(pages, &separator, page_no)
    }
}

/// First page of the leaf that holds the row with this id.
pub(super) fn find<S: PageSource>(source: &S, root: Root, row_id: u64) -> Result<Option<u32>> {
    let key = row_id.to_be_bytes();
    let (_, page_no) = Walk::descend(source, PageKind::RowIdInner, root, Start::Key(&key))?;
    let page = source.page(page_no)?;
    let content = content_of(&page, PageKind::RowIds, page_no)?;
    find_in_page(content, row_id).map_err(|error| error.on_page(page_no))
}

/// Calls `take` with first id and number of ids of every run of ids, ascending.
pub(super) fn each_run<S: PageSource>(source: &S, root: Root, mut take: impl FnMut(u64, u64)) -> Result<()> {
    let (mut walk, mut page_no) = Walk::descend(source, PageKind::RowIdInner, root, Start::First)?;
    loop {
        let page = source.page(page_no)?;
        let content = content_of(&page, PageKind::RowIds, page_no)?;
        runs_in_page(content, &mut take).map_err(|error| error.on_page(page_no))?;
        match walk.next(source, PageKind::RowIdInner, Direction::Forward)? {
            Some(next) => page_no = next,
            None => return Ok(()),
        }
    }
}

fn runs_in_page(content: &[u8], take: &mut impl FnMut(u64, u64)) -> Result<()> {
    let mut groups = Groups::of(content)?;
    while let Some((_, group)) = groups.next()? {
        let group = groups.decode(group)?;
        for run in 0..group.runs {
            take(group.firsts.get(run), group.counts.get(run));
        }
    }
    Ok(())
}

/// A run of ids as a page has it.
pub(super) struct MapEntry {
    pub(super) first: u64,
    pub(super) count: u64,
    pub(super) leaf: u64,
    /// The first id of its group by the page's directory, if it is the group's first run.
    pub(super) directory: Option<u64>,
}

/// Calls `take` with every run of ids of a page.
pub(super) fn entries_in_page(content: &[u8], take: &mut dyn FnMut(&MapEntry)) -> Result<()> {
    let mut groups = Groups::of(content)?;
    while let Some((directory, group)) = groups.next()? {
        let group = groups.decode(group)?;
        for run in 0..group.runs {
            take(&MapEntry {
                first: group.firsts.get(run),
                count: group.counts.get(run),
                leaf: group.leaves.get(run),
                directory: (run == 0).then_some(directory),
            });
        }
    }
    Ok(())
}

fn find_in_page(content: &[u8], row_id: u64) -> Result<Option<u32>> {
    let mut groups = Groups::of(content)?;
    let mut found = None;
    while let Some((first, group)) = groups.next()? {
        if first > row_id {
            break;
        }
        found = Some(group);
    }
    let Some(group) = found else {
        return Ok(None);
    };
    let group = groups.decode(group)?;
    let after = (0..group.runs).position(|run| group.firsts.get(run) > row_id).unwrap_or(group.runs);
    let Some(run) = after.checked_sub(1) else {
        return Ok(None);
    };
    if row_id - group.firsts.get(run) >= group.counts.get(run) {
        return Ok(None);
    }
    u32::try_from(group.leaves.get(run)).map(Some).map_err(|_| StorageError::damaged("leaf is out of its run"))
}

/// The groups of a page, read one after the other.
struct Groups<'a> {
    directory: ByteReader<'a>,
    left: u16,
    /// End of the group read last.
    end: usize,
    bodies: &'a [u8],
}

/// Where a group lies among the bodies, and its number of runs.
type GroupPlace = (std::ops::Range<usize>, usize);

struct Group {
    runs: usize,
    firsts: Ints,
    counts: Ints,
    leaves: Ints,
}

impl<'a> Groups<'a> {
    fn of(content: &'a [u8]) -> Result<Self> {
        let mut reader = ByteReader::new(content);
        let left = reader.u16()?;
        let directory = reader.take(usize::from(left) * DIRECTORY_ENTRY)?;
        Ok(Groups { directory: ByteReader::new(directory), left, end: 0, bodies: reader.rest() })
    }

    /// First id and place of the next group.
    fn next(&mut self) -> Result<Option<(u64, GroupPlace)>> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(None);
        };
        self.left = left;
        let first = self.directory.u64()?;
        let runs = usize::from(self.directory.u16()?);
        let start = std::mem::replace(&mut self.end, usize::from(self.directory.u16()?));
        Ok(Some((first, (start..self.end, runs))))
    }

    fn decode(&self, (place, runs): GroupPlace) -> Result<Group> {
        if runs > GROUP_RUNS {
            return Err(StorageError::damaged("group of row ids is too large"));
        }
        let bytes = self.bodies.get(place).ok_or_else(|| StorageError::damaged("group is out of its page"))?;
        let mut bytes = ByteReader::new(bytes);
        Ok(Group {
            runs,
            firsts: ints::decode(&mut bytes, runs)?,
            counts: ints::decode(&mut bytes, runs)?,
            leaves: ints::decode(&mut bytes, runs)?,
        })
    }
}
