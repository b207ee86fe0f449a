//! The keys of a leaf.
//!
//! A key is its partition's prefix and a *suffix*. Prefixes are stored once a partition, each as its difference
//! from the one before. Suffixes of one length are cut into words of 8 bytes, which are stored as integers, so
//! that times at even steps cost nearly nothing; others are stored as differences from the suffix before.
//! The encoder takes the shorter of the two.

use super::encoding::ints::{self, IntColumn};
use super::MAX_KEY_LEN;
use crate::bytes::{put_varint, shared_prefix, ByteReader};
use crate::error::{Result, StorageError};
use std::cell::Cell;
use std::cmp::Ordering;
use std::ops::Range;

/// Bytes of all prefixes, or of all suffixes, that a leaf may have once decoded.
pub(super) const MAX_LEAF_KEY_BYTES: usize = 512 * 1024;
/// Suffixes longer than this are not cut into words.
const MAX_WORDS_LEN: usize = 64;

const FRONT_CODED: u8 = 0;
const WORDS: u8 = 1;

/// Keys of a leaf under construction.
#[derive(Debug, Default)]
pub(super) struct KeyBuffer {
    data: Vec<u8>,
    /// End in `data`, and length of the partition prefix.
    keys: Vec<(usize, usize)>,
}

impl KeyBuffer {
    pub(super) fn push(&mut self, key: &[u8], partition_len: usize) {
        self.data.extend_from_slice(key);
        self.keys.push((self.data.len(), partition_len));
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(super) fn key(&self, row: usize) -> &[u8] {
        &self.data[self.start(row)..self.keys[row].0]
    }

    pub(super) fn last(&self) -> Option<&[u8]> {
        self.keys.len().checked_sub(1).map(|row| self.key(row))
    }

    /// Bytes of the first `rows` keys.
    pub(super) fn bytes(&self, rows: usize) -> usize {
        self.start(rows)
    }

    pub(super) fn remove_first(&mut self, rows: usize) {
        let cut = self.start(rows);
        self.data.drain(..cut);
        self.keys.drain(..rows);
        self.keys.iter_mut().for_each(|(end, _)| *end -= cut);
    }

    fn start(&self, row: usize) -> usize {
        row.checked_sub(1).map_or(0, |before| self.keys[before].0)
    }

    fn prefix(&self, row: usize) -> &[u8] {
        &self.key(row)[..self.keys[row].1]
    }

    fn suffix(&self, row: usize) -> &[u8] {
        &self.key(row)[self.keys[row].1..]
    }

    /// Appends the section of the first `rows` keys.
    pub(super) fn encode(&self, out: &mut Vec<u8>, rows: usize) {
        let mut starts = vec![0];
        starts.extend((1..rows).filter(|row| self.prefix(*row) != self.prefix(row - 1)));
        put_varint(out, starts.len() as u64);
        let mut before: &[u8] = &[];
        for (index, start) in starts.iter().enumerate() {
            let end = starts.get(index + 1).copied().unwrap_or(rows);
            put_varint(out, (end - start) as u64);
            before = put_difference(out, before, self.prefix(*start));
        }
        let mut front = vec![FRONT_CODED];
        let mut before: &[u8] = &[];
        for row in 0..rows {
            before = put_difference(&mut front, before, self.suffix(row));
        }
        match self.encode_words(rows) {
            Some(words) if words.len() <= front.len() => out.extend_from_slice(&words),
            _ => out.extend_from_slice(&front),
        }
    }

    fn encode_words(&self, rows: usize) -> Option<Vec<u8>> {
        let len = self.suffix(0).len();
        if len == 0 || len > MAX_WORDS_LEN || (1..rows).any(|row| self.suffix(row).len() != len) {
            return None;
        }
        let mut out = vec![WORDS, len as u8];
        let mut sections = Vec::new();
        for word in words(len) {
            let numbers: Vec<u64> = (0..rows).map(|row| to_word(&self.suffix(row)[word.clone()])).collect();
            let before = sections.len();
            ints::encode_column(&mut sections, &numbers);
            put_varint(&mut out, (sections.len() - before) as u64);
        }
        out.extend_from_slice(&sections);
        Some(out)
    }
}

/// The words of a suffix of `len` bytes; the last one may be shorter than 8.
fn words(len: usize) -> impl Iterator<Item = Range<usize>> {
    (0..len).step_by(8).map(move |start| start..len.min(start + 8))
}

/// The big-endian number in at most 8 bytes.
fn to_word(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

fn put_difference<'a>(out: &mut Vec<u8>, before: &[u8], bytes: &'a [u8]) -> &'a [u8] {
    let shared = shared_prefix(before, bytes);
    put_varint(out, shared as u64);
    put_varint(out, (bytes.len() - shared) as u64);
    out.extend_from_slice(&bytes[shared..]);
    bytes
}

/// Appends to `all` what [`put_difference`] wrote, `before` being the range of the bytes before.
fn take_difference(reader: &mut ByteReader<'_>, all: &mut Vec<u8>, before: Range<usize>) -> Result<Range<usize>> {
    let shared = reader.size()?;
    if shared > before.len() {
        return Err(StorageError::damaged("key shares more than there is"));
    }
    let start = all.len();
    all.extend_from_within(before.start..before.start + shared);
    all.extend_from_slice(reader.bytes()?);
    if all.len() - start > MAX_KEY_LEN || all.len() > MAX_LEAF_KEY_BYTES {
        return Err(StorageError::damaged("keys are too long"));
    }
    Ok(start..all.len())
}

#[derive(Debug)]
struct Partition {
    first_row: usize,
    prefix: Range<usize>,
}

#[derive(Debug)]
enum Suffixes {
    /// Decoded one after the other; each ends where the next starts.
    Front { data: Vec<u8>, ranges: Vec<Range<usize>> },
    /// Numbers of 8 bytes, the last one of `last_len`.
    Words { columns: Vec<IntColumn>, last_len: usize },
}

/// The keys of a leaf. Front-coded suffixes are decoded once, words when they are asked for.
#[derive(Debug)]
pub(super) struct Keys {
    rows: usize,
    prefixes: Vec<u8>,
    partitions: Vec<Partition>,
    /// Index of the partition that [`Keys::read`] read last.
    last_partition: Cell<usize>,
    suffixes: Suffixes,
}

impl Keys {
    pub(super) fn parse(body: &[u8], section: Range<usize>, rows: usize) -> Result<Self> {
        let bytes = body.get(section.clone()).ok_or_else(|| StorageError::damaged("section is out of its leaf"))?;
        let mut reader = ByteReader::new(bytes);
        let count = reader.size()?;
        if count == 0 || count > rows {
            return Err(StorageError::damaged("leaf has more partitions than rows"));
        }
        let (mut prefixes, mut partitions) = (Vec::new(), Vec::with_capacity(count));
        let (mut first_row, mut before) = (0usize, 0..0);
        for _ in 0..count {
            let len = reader.size()?;
            before = take_difference(&mut reader, &mut prefixes, before)?;
            partitions.push(Partition { first_row, prefix: before.clone() });
            first_row = first_row.saturating_add(len);
            if len == 0 || first_row > rows {
                return Err(StorageError::damaged("partition is out of its leaf"));
            }
        }
        if first_row != rows {
            return Err(StorageError::damaged("row without a partition"));
        }
        let suffixes = match reader.u8()? {
            FRONT_CODED => {
                let (mut data, mut ranges, mut before) = (Vec::new(), Vec::with_capacity(rows), 0..0);
                for _ in 0..rows {
                    before = take_difference(&mut reader, &mut data, before)?;
                    ranges.push(before.clone());
                }
                Suffixes::Front { data, ranges }
            }
            WORDS => {
                let len = usize::from(reader.u8()?);
                if len == 0 || len > MAX_WORDS_LEN {
                    return Err(StorageError::damaged("key suffixes have no such length"));
                }
                let lengths = words(len).map(|_| reader.size()).collect::<Result<Vec<_>>>()?;
                let mut columns = Vec::with_capacity(lengths.len());
                for length in lengths {
                    let start = section.end - reader.rest().len();
                    reader.take(length)?;
                    columns.push(IntColumn::parse(body, start..start + length, rows)?);
                }
                Suffixes::Words { columns, last_len: len - (len - 1) / 8 * 8 }
            }
            _ => return Err(StorageError::damaged("unknown encoding of keys")),
        };
        Ok(Keys { rows, prefixes, partitions, last_partition: Cell::new(0), suffixes })
    }

    /// Replaces `out` by the key of `row`.
    pub(super) fn read(&self, body: &[u8], row: usize, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        out.extend_from_slice(self.prefix_of(row));
        self.read_suffix(body, row, out)
    }

    /// The first row whose key is not less than `bound`, or greater than it if `after`.
    pub(super) fn search(&self, body: &[u8], bound: &[u8], after: bool) -> Result<usize> {
        let index = self.partitions.partition_point(|partition| {
            let prefix = self.prefix(partition);
            !bound.starts_with(prefix) && prefix < bound
        });
        let Some(partition) = self.partitions.get(index) else {
            return Ok(self.rows);
        };
        let prefix = self.prefix(partition);
        let Some(rest) = bound.strip_prefix(prefix) else {
            return Ok(partition.first_row);
        };
        let end = self.partitions.get(index + 1).map_or(self.rows, |next| next.first_row);
        let (mut low, mut high) = (partition.first_row, end);
        let mut suffix = Vec::new();
        while low < high {
            let middle = low + (high - low) / 2;
            suffix.clear();
            self.read_suffix(body, middle, &mut suffix)?;
            let before = match suffix.as_slice().cmp(rest) {
                Ordering::Less => true,
                Ordering::Equal => after,
                Ordering::Greater => false,
            };
            if before {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Prefix of the partition that holds `row`, which mostly is the one asked for last.
    pub(super) fn prefix_of(&self, row: usize) -> &[u8] {
        let holds = |index: usize| {
            let end = self.partitions.get(index + 1).map_or(self.rows, |next| next.first_row);
            self.partitions.get(index).filter(|partition| (partition.first_row..end).contains(&row))
        };
        let index = self.last_partition.get();
        let partition = holds(index).or_else(|| {
            let index = self.partitions.partition_point(|partition| partition.first_row <= row).checked_sub(1)?;
            self.last_partition.set(index);
            self.partitions.get(index)
        });
        partition.map_or(&[], |partition| self.prefix(partition))
    }

    fn prefix(&self, partition: &Partition) -> &[u8] {
        self.prefixes.get(partition.prefix.clone()).unwrap_or_default()
    }

    fn read_suffix(&self, body: &[u8], row: usize, out: &mut Vec<u8>) -> Result<()> {
        match &self.suffixes {
            Suffixes::Front { data, ranges } => {
                let suffix = ranges.get(row).and_then(|range| data.get(range.clone()));
                out.extend_from_slice(suffix.ok_or_else(|| StorageError::damaged("row is out of its leaf"))?);
            }
            Suffixes::Words { columns, last_len } => {
                for (index, column) in columns.iter().enumerate() {
                    let len = if index + 1 == columns.len() { *last_len } else { 8 };
                    out.extend_from_slice(&column.get(body, row)?.to_be_bytes()[8 - len..]);
                }
            }
        }
        Ok(())
    }
}
