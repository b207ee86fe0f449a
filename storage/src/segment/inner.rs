//! Inner pages: the levels of a B+tree above its leaves.
//!
//! Content of an inner page: number of children (u16), level (u8; 1 is next to the leaves), a zero, length of the
//! common prefix (u16), the prefix, for each child the end of its separator's rest (u16), for each child its page
//! (u32), then the rests of the separators. All keys under a child are at least its separator and less
//! than the next one's. The first child needs no separator; its rest is empty.

use super::pages::PageWriter;
use super::PageSink;
use crate::bytes::shared_prefix;
use crate::error::Result;
use crate::page::{PageKind, CONTENT_CAPACITY};

/// Levels a tree has at most; a damaged height must not lead into a long walk.
pub(super) const MAX_HEIGHT: u8 = 24;

const FIXED: usize = 6;
const PER_CHILD: usize = 6;

/// The shortest bytes that are greater than `before` and not greater than `key`.
pub(super) fn separator<'a>(before: &[u8], key: &'a [u8]) -> &'a [u8] {
    &key[..key.len().min(shared_prefix(before, key) + 1)]
}

#[derive(Default)]
struct Level {
    children: Vec<(Vec<u8>, u32)>,
    /// Bytes of the separators but the first.
    bytes: usize,
}

impl Level {
    /// Length of the prefix that `separator` and those here but the first share.
    fn common(&self, separator: &[u8]) -> usize {
        self.children.get(1).map_or(separator.len(), |(first, _)| shared_prefix(first, separator))
    }

    fn has_room(&self, separator: &[u8]) -> bool {
        let count = self.children.len();
        let common = self.common(separator);
        let rests = self.bytes + separator.len() - common * count;
        FIXED + common + PER_CHILD * (count + 1) + rests <= CONTENT_CAPACITY
    }

    fn encode(&self, level: u8) -> Vec<u8> {
        let last = self.children.last().map_or(&[][..], |(separator, _)| separator);
        let common = if self.children.len() > 1 { self.common(last) } else { 0 };
        let mut out = Vec::with_capacity(CONTENT_CAPACITY);
        out.extend_from_slice(&(self.children.len() as u16).to_le_bytes());
        out.extend_from_slice(&[level, 0]);
        out.extend_from_slice(&(common as u16).to_le_bytes());
        out.extend_from_slice(&last[..common]);
        let mut end = 0;
        for (index, (separator, _)) in self.children.iter().enumerate() {
            end += if index == 0 { 0 } else { separator.len() - common };
            out.extend_from_slice(&(end as u16).to_le_bytes());
        }
        self.children.iter().for_each(|(_, page_no)| out.extend_from_slice(&page_no.to_le_bytes()));
        self.children.iter().skip(1).for_each(|(separator, _)| out.extend_from_slice(&separator[common..]));
        out
    }
}

/// Builds the levels as leaves are finished, in memory in proportion to the tree's height.
pub(super) struct TreeBuilder {
    kind: PageKind,
    levels: Vec<Level>,
}

impl TreeBuilder {
    pub(super) fn new(kind: PageKind) -> Self {
        TreeBuilder { kind, levels: Vec::new() }
    }

    /// Adds the next leaf.
    pub(super) fn push<S: PageSink>(&mut self, pages: &mut PageWriter<S>, separator: &[u8], leaf: u32) -> Result<()> {
        self.push_at(pages, 0, separator.to_vec(), leaf)
    }

    /// Writes what is left, and gives the root and its level; level 0 is a leaf.
    pub(super) fn finish<S: PageSink>(mut self, pages: &mut PageWriter<S>) -> Result<Option<(u32, u8)>> {
        let mut index = 0;
        while index < self.levels.len() {
            let level = std::mem::take(&mut self.levels[index]);
            if index + 1 == self.levels.len() && level.children.len() == 1 {
                return Ok(level.children.first().map(|(_, page_no)| (*page_no, index as u8)));
            }
            let page_no = pages.put(self.kind, &level.encode(index as u8 + 1))?;
            let separator = level.children.into_iter().next().map(|(separator, _)| separator).unwrap_or_default();
            self.push_at(pages, index + 1, separator, page_no)?;
            index += 1;
        }
        Ok(None)
    }

    /// Adds a child to the level at `index`. A level that is full becomes a page and a child of the next.
    fn push_at<S: PageSink>(
        &mut self,
        pages: &mut PageWriter<S>,
        from: usize,
        mut separator: Vec<u8>,
        mut child: u32,
    ) -> Result<()> {
        for index in from..usize::from(MAX_HEIGHT) {
            if self.levels.len() == index {
                self.levels.push(Level::default());
            }
            let level = &mut self.levels[index];
            if level.children.is_empty() || level.has_room(&separator) {
                level.bytes += if level.children.is_empty() { 0 } else { separator.len() };
                level.children.push((separator, child));
                return Ok(());
            }
            let full = std::mem::take(level);
            level.children.push((separator, child));
            child = pages.put(self.kind, &full.encode(index as u8 + 1))?;
            separator = full.children.into_iter().next().map(|(separator, _)| separator).unwrap_or_default();
        }
        Ok(())
    }
}
