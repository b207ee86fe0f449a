//! A Bloom filter over partitions, in blocks of 64 bytes so that one probe touches one page.
//!
//! A partition's prefix is hashed by MurmurHash3 (x64, 128 bits, seed 0). The first 64 bits choose the block, as
//! a fraction of 2^64; the lowest bits of the others choose [`PROBES`] bits of the block, 9 each. About
//! [`BITS_PER_PARTITION`] bits a partition give one false answer in about a hundred.

use super::pages::{content_of, PageWriter};
use super::{PageSink, PageSource};
use crate::error::{Result, StorageError};
use crate::page::{PageKind, CONTENT_CAPACITY};
use crate::sort::ExternalSorter;
use serde::{Deserialize, Serialize};
use std::path::Path;

const BLOCK_BYTES: usize = 64;
const BLOCKS_PER_PAGE: usize = CONTENT_CAPACITY / BLOCK_BYTES;
const PROBES: u32 = 7;
const BITS_PER_PARTITION: u64 = 10;

/// Where a filter lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FilterPlace {
    pub(super) first_page: u32,
    pub(super) blocks: u64,
}

/// Blocks of a filter of so many partitions.
pub(super) fn blocks_of(partitions: u64) -> u64 {
    partitions.saturating_mul(BITS_PER_PARTITION).div_ceil(8 * BLOCK_BYTES as u64)
}

impl FilterPlace {
    /// Length of the content of each of the filter's pages, first to last.
    pub(super) fn page_lengths(self) -> impl Iterator<Item = usize> {
        let per_page = BLOCKS_PER_PAGE as u64;
        (0..self.blocks.div_ceil(per_page))
            .map(move |page| (self.blocks - page * per_page).min(per_page) as usize * BLOCK_BYTES)
    }
}

fn hash(partition: &[u8]) -> Result<(u64, u64)> {
    let hash = murmur3::murmur3_x64_128(&mut &*partition, 0)?;
    Ok((hash as u64, (hash >> 64) as u64))
}

fn block_of(hash: u64, blocks: u64) -> u64 {
    ((u128::from(hash) * u128::from(blocks)) >> 64) as u64
}

/// Byte and bit of each probe within a block.
fn probes(hash: u64) -> impl Iterator<Item = (usize, u8)> {
    (0..PROBES).map(move |probe| {
        let bit = hash >> (9 * probe) & 511;
        ((bit / 8) as usize, 1 << (bit % 8))
    })
}

/// Gathers the partitions' hashes, sorted by block, so that pages can be filled one after the other.
pub(super) struct FilterBuilder {
    hashes: ExternalSorter,
}

impl FilterBuilder {
    pub(super) fn new(memory_bytes: usize, directory: &Path) -> Self {
        FilterBuilder { hashes: ExternalSorter::with_directory(memory_bytes, directory) }
    }

    pub(super) fn push(&mut self, partition: &[u8]) -> Result<()> {
        let (block, bits) = hash(partition)?;
        let mut key = [0; 16];
        key[..8].copy_from_slice(&block.to_be_bytes());
        key[8..].copy_from_slice(&bits.to_be_bytes());
        self.hashes.push(&key, &[])
    }

    /// Writes the filter of `partitions` partitions; none if there are none.
    pub(super) fn finish<S: PageSink>(self, pages: &mut PageWriter<S>, partitions: u64) -> Result<Option<FilterPlace>> {
        if partitions == 0 {
            return Ok(None);
        }
        let blocks = blocks_of(partitions);
        let place = FilterPlace { first_page: pages.next_page(), blocks };
        let per_page = BLOCKS_PER_PAGE as u64;
        let mut content = [0; BLOCKS_PER_PAGE * BLOCK_BYTES];
        let mut page = 0;
        let mut hashes = self.hashes.finish()?;
        while let Some((key, _)) = hashes.next()? {
            let (Some(block), Some(bits)) = (key.first_chunk(), key.last_chunk()) else {
                continue;
            };
            let block = block_of(u64::from_be_bytes(*block), blocks);
            while page < block / per_page {
                pages.put(PageKind::Filter, &content)?;
                content.fill(0);
                page += 1;
            }
            let start = (block % per_page) as usize * BLOCK_BYTES;
            probes(u64::from_be_bytes(*bits)).for_each(|(byte, bit)| content[start + byte] |= bit);
        }
        while page < blocks.div_ceil(per_page) {
            let left = (blocks - page * per_page).min(per_page) as usize;
            pages.put(PageKind::Filter, &content[..left * BLOCK_BYTES])?;
            content.fill(0);
            page += 1;
        }
        Ok(Some(place))
    }
}

/// Whether the filter says that `partition` may be there.
pub(super) fn may_contain<S: PageSource>(source: &S, place: FilterPlace, partition: &[u8]) -> Result<bool> {
    let (first, bits) = hash(partition)?;
    let block = block_of(first, place.blocks);
    let page_no = u32::try_from(block / BLOCKS_PER_PAGE as u64).ok().and_then(|n| place.first_page.checked_add(n));
    let page_no = page_no.ok_or_else(|| StorageError::damaged("filter goes beyond its run"))?;
    let page = source.page(page_no)?;
    let content = content_of(&page, PageKind::Filter, page_no)?;
    let start = (block % BLOCKS_PER_PAGE as u64) as usize * BLOCK_BYTES;
    let block = content
        .get(start..start + BLOCK_BYTES)
        .ok_or_else(|| StorageError::damaged_at(page_no, "filter page is too short"))?;
    Ok(probes(bits).all(|(byte, bit)| block[byte] & bit != 0))
}
