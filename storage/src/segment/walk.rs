//! Reading inner pages, and walking from leaf to leaf of a tree.

use super::inner::MAX_HEIGHT;
use super::pages::content_of;
use super::PageSource;
use crate::bytes::ByteReader;
use crate::error::{Result, StorageError};
use crate::merge::Direction;
use crate::page::PageKind;
use serde::{Deserialize, Serialize};

/// A tree's root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Root {
    pub(super) page_no: u32,
    /// Levels of inner pages; 0 if the root is a leaf.
    pub(super) height: u8,
}

/// An inner page's content, cut into its parts.
pub(super) struct InnerPage<'a> {
    pub(super) count: usize,
    common: &'a [u8],
    ends: &'a [u8],
    children: &'a [u8],
    rests: &'a [u8],
}

impl<'a> InnerPage<'a> {
    pub(super) fn parse(content: &'a [u8], level: u8) -> Result<Self> {
        let mut reader = ByteReader::new(content);
        let count = usize::from(reader.u16()?);
        if count == 0 || reader.u8()? != level || reader.u8()? != 0 {
            return Err(StorageError::damaged("inner page is not of the level expected"));
        }
        let common_len = usize::from(reader.u16()?);
        let common = reader.take(common_len)?;
        let ends = reader.take(2 * count)?;
        let children = reader.take(4 * count)?;
        Ok(InnerPage { count, common, ends, children, rests: reader.rest() })
    }

    pub(super) fn child(&self, index: usize) -> Result<u32> {
        let bytes = self.children.get(4 * index..).and_then(|bytes| bytes.first_chunk::<4>());
        bytes
            .map(|bytes| u32::from_le_bytes(*bytes))
            .ok_or_else(|| StorageError::damaged("inner page has no such child"))
    }

    fn end(&self, index: usize) -> usize {
        let bytes = self.ends.get(2 * index..).and_then(|bytes| bytes.first_chunk::<2>());
        bytes.map_or(0, |bytes| usize::from(u16::from_le_bytes(*bytes)))
    }

    fn rest(&self, index: usize) -> Result<&'a [u8]> {
        let range = self.end(index - 1)..self.end(index);
        self.rests.get(range).ok_or_else(|| StorageError::damaged("separator is out of its page"))
    }

    /// The separator of the child at `index`; the first child has none.
    pub(super) fn separator(&self, index: usize) -> Result<Vec<u8>> {
        match index {
            0 => Ok(Vec::new()),
            _ => Ok([self.common, self.rest(index)?].concat()),
        }
    }

    /// The last child whose separator is not greater than `key`.
    fn search(&self, key: &[u8]) -> Result<usize> {
        let head = &key[..key.len().min(self.common.len())];
        match head.cmp(self.common) {
            std::cmp::Ordering::Less => return Ok(0),
            std::cmp::Ordering::Greater => return Ok(self.count - 1),
            std::cmp::Ordering::Equal => {}
        }
        let key = &key[head.len()..];
        let (mut low, mut high) = (1, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.rest(middle)? <= key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low - 1)
    }
}

/// Where a walk starts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Start<'a> {
    First,
    Last,
    /// At the leaf that holds this key if any does.
    Key(&'a [u8]),
}

/// A place between a tree's root and one of its leaves.
#[derive(Clone, Debug, Default)]
pub(super) struct Walk {
    /// Inner pages from the root down, with their level and the child taken.
    steps: Vec<(u32, u8, usize)>,
    /// The leaf reached last.
    leaf: u32,
}

impl Walk {
    /// Goes down from `root` to a leaf and gives its page.
    pub(super) fn descend<S: PageSource>(
        source: &S,
        kind: PageKind,
        root: Root,
        start: Start<'_>,
    ) -> Result<(Self, u32)> {
        if root.height > MAX_HEIGHT {
            return Err(StorageError::damaged("tree is too high"));
        }
        let mut walk = Walk::default();
        let leaf = walk.go_down(source, kind, root, start)?;
        Ok((walk, leaf))
    }

    fn go_down<S: PageSource>(&mut self, source: &S, kind: PageKind, from: Root, start: Start<'_>) -> Result<u32> {
        let mut page_no = from.page_no;
        for level in (1..=from.height).rev() {
            let (index, child) = in_page(source, kind, page_no, level, |page| match start {
                Start::First => Ok(0),
                Start::Last => Ok(page.count - 1),
                Start::Key(key) => page.search(key),
            })?;
            self.steps.push((page_no, level, index));
            page_no = child;
        }
        self.leaf = page_no;
        Ok(page_no)
    }

    /// Page of the next leaf in `direction`.
    pub(super) fn next<S: PageSource>(
        &mut self,
        source: &S,
        kind: PageKind,
        direction: Direction,
    ) -> Result<Option<u32>> {
        let before = self.leaf;
        while let Some((page_no, level, index)) = self.steps.pop() {
            let (start, next) = match direction {
                Direction::Forward => (Start::First, index.checked_add(1)),
                Direction::Backward => (Start::Last, index.checked_sub(1)),
            };
            let Some(next) = next else { continue };
            let page = source.page(page_no)?;
            let inner = InnerPage::parse(content_of(&page, kind, page_no)?, level).map_err(|e| e.on_page(page_no))?;
            if next >= inner.count {
                continue;
            }
            let child = Root { page_no: inner.child(next)?, height: level - 1 };
            self.steps.push((page_no, level, next));
            let leaf = self.go_down(source, kind, child, start)?;
            // Leaves are written in order; a walk that does not move on would not end.
            let moved = if direction == Direction::Forward { leaf > before } else { leaf < before };
            return if moved {
                Ok(Some(leaf))
            } else {
                Err(StorageError::damaged_at(page_no, "leaves are out of order"))
            };
        }
        Ok(None)
    }
}

fn in_page<S: PageSource>(
    source: &S,
    kind: PageKind,
    page_no: u32,
    level: u8,
    choose: impl FnOnce(&InnerPage<'_>) -> Result<usize>,
) -> Result<(usize, u32)> {
    let page = source.page(page_no)?;
    let content = content_of(&page, kind, page_no)?;
    let found = InnerPage::parse(content, level).and_then(|inner| {
        let index = choose(&inner)?;
        Ok((index, inner.child(index)?))
    });
    found.map_err(|error| error.on_page(page_no))
}
