//! Sorting more pairs of key and payload than fit in memory.
//!
//! Pairs are gathered in one buffer; when it is full they are sorted and written as a *sorted run* to one
//! temporary file that has no name. Reading merges the runs. Of equal keys only the pair pushed last comes out.

mod run;

use crate::error::{Result, StorageError};
use crate::heap::{heapify, sift_down};
use run::{key_of, Entry, FileRun, Run, MIN_READ_BUFFER, PAIR_HEADER};
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::rc::Rc;

/// Gathers pairs in any order.
pub struct ExternalSorter {
    memory_bytes: usize,
    directory: PathBuf,
    buffer: Vec<u8>,
    entries: Vec<Entry>,
    spill: Option<Spill>,
}

/// The temporary file: its sorted runs lie one after the other.
struct Spill {
    file: File,
    len: u64,
    runs: Vec<(u64, u64)>,
}

impl ExternalSorter {
    /// Sorts with about `memory_bytes` of memory, spilling to the system's folder for temporary files.
    pub fn new(memory_bytes: usize) -> Self {
        Self::with_directory(memory_bytes, std::env::temp_dir())
    }

    /// Sorts with about `memory_bytes` of memory, spilling to a file in `directory`.
    pub fn with_directory(memory_bytes: usize, directory: impl Into<PathBuf>) -> Self {
        ExternalSorter {
            memory_bytes: memory_bytes.max(MIN_READ_BUFFER),
            directory: directory.into(),
            buffer: Vec::new(),
            entries: Vec::new(),
            spill: None,
        }
    }

    /// Adds a pair. It replaces earlier ones of the same key.
    ///
    /// # Errors
    /// `TooLarge` for a key or payload of 4 GB or more; `Io` if the temporary file cannot be written.
    pub fn push(&mut self, key: &[u8], payload: &[u8]) -> Result<()> {
        let (key_len, payload_len) = (length(key)?, length(payload)?);
        let added = key.len() + payload.len() + size_of::<Entry>();
        if !self.entries.is_empty() && self.memory_used() + added > self.memory_bytes {
            self.spill()?;
        }
        self.entries.push(Entry { prefix: prefix(key), start: self.buffer.len(), key_len, payload_len });
        self.buffer.extend_from_slice(key);
        self.buffer.extend_from_slice(payload);
        Ok(())
    }

    /// Bytes of pairs held in memory now.
    pub fn memory_used(&self) -> usize {
        self.buffer.len() + self.entries.len() * size_of::<Entry>()
    }

    /// Whether no pair was pushed.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.spill.is_none()
    }

    /// Sorts what was pushed.
    ///
    /// # Errors
    /// `Io` if the temporary file cannot be written or read.
    pub fn finish(mut self) -> Result<SortedRows> {
        let mut runs = Vec::new();
        match self.spill.take() {
            None => {
                self.sort();
                runs.push(Run::Memory { buffer: self.buffer, entries: self.entries, at: 0 });
            }
            Some(spill) => {
                self.spill = Some(spill);
                self.spill()?;
                let memory = self.memory_bytes;
                let Some(spill) = self.spill else {
                    return Ok(SortedRows::new(runs));
                };
                let room = (memory / spill.runs.len().max(1)).max(MIN_READ_BUFFER);
                let file = Rc::new(spill.file);
                for (start, end) in spill.runs {
                    let run = FileRun::open(Rc::clone(&file), start, end, room)?;
                    runs.push(Run::File(run));
                }
            }
        }
        Ok(SortedRows::new(runs))
    }

    /// Sorts the entries and keeps the last of each key.
    fn sort(&mut self) {
        let buffer = &self.buffer;
        self.entries.sort_unstable_by(|a, b| {
            let keys = a.prefix.cmp(&b.prefix).then_with(|| key_of(buffer, a).cmp(key_of(buffer, b)));
            // Of two pairs that start at the same place the first is wholly empty.
            keys.then((a.start, a.payload_len).cmp(&(b.start, b.payload_len)))
        });
        self.entries.dedup_by(|later, earlier| {
            let same = later.prefix == earlier.prefix && key_of(buffer, later) == key_of(buffer, earlier);
            if same {
                *earlier = *later;
            }
            same
        });
    }

    fn spill(&mut self) -> Result<()> {
        self.sort();
        if self.spill.is_none() {
            self.spill = Some(Spill { file: tempfile::tempfile_in(&self.directory)?, len: 0, runs: Vec::new() });
        }
        let Some(spill) = self.spill.as_mut() else {
            return Ok(());
        };
        let start = spill.len;
        let mut out = std::io::BufWriter::with_capacity(256 * 1024, &spill.file);
        for entry in &self.entries {
            out.write_all(&entry.key_len.to_le_bytes())?;
            out.write_all(&entry.payload_len.to_le_bytes())?;
            let len = entry.key_len as usize + entry.payload_len as usize;
            out.write_all(&self.buffer[entry.start..entry.start + len])?;
            spill.len += (PAIR_HEADER + len) as u64;
        }
        out.flush()?;
        drop(out);
        spill.runs.push((start, spill.len));
        self.entries.clear();
        self.buffer.clear();
        Ok(())
    }
}

fn length(bytes: &[u8]) -> Result<u32> {
    u32::try_from(bytes.len()).map_err(|_| StorageError::TooLarge {
        what: "sorted value",
        size: bytes.len() as u64,
        limit: u64::from(u32::MAX),
    })
}

fn prefix(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let len = key.len().min(8);
    bytes[..len].copy_from_slice(&key[..len]);
    u64::from_be_bytes(bytes)
}

/// Sorted pairs, to be read once.
pub struct SortedRows {
    /// In order of their making: of equal keys the later run has the newer pair.
    runs: Vec<Run>,
    /// A binary heap of indexes into `runs` that are not at their end.
    heap: Vec<usize>,
    shown: bool,
}

impl SortedRows {
    fn new(runs: Vec<Run>) -> Self {
        let mut heap = (0..runs.len()).filter(|index| runs[*index].pair().is_some()).collect::<Vec<_>>();
        heapify(&mut heap, |a, b| before(&runs, a, b));
        SortedRows { runs, heap, shown: false }
    }

    /// The next pair in ascending order of keys; each key comes once.
    ///
    /// # Errors
    /// `Io` if the temporary file cannot be read.
    #[allow(clippy::should_implement_trait)] // lends its buffer, which an Iterator cannot
    pub fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        if std::mem::take(&mut self.shown) {
            self.advance(0)?;
        }
        let Some(&top) = self.heap.first() else {
            return Ok(None);
        };
        while let Some(older) = (1..self.heap.len().min(3)).find(|at| self.key(*at) == self.key(0)) {
            self.advance(older)?;
        }
        self.shown = true;
        Ok(self.runs[top].pair())
    }

    fn key(&self, at: usize) -> Option<&[u8]> {
        self.runs[self.heap[at]].key()
    }

    fn advance(&mut self, at: usize) -> Result<()> {
        let run = &mut self.runs[self.heap[at]];
        run.advance()?;
        if run.pair().is_none() {
            self.heap.swap_remove(at);
        }
        sift_down(&mut self.heap, at, |a, b| before(&self.runs, a, b));
        Ok(())
    }
}

/// Whether run `a` comes before `b`: by key, of equal keys the newer pair.
fn before(runs: &[Run], a: usize, b: usize) -> bool {
    runs[a].key().cmp(&runs[b].key()).then(b.cmp(&a)).is_lt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn pairs_come_out_sorted_and_the_last_of_a_key_wins(
            pairs in prop::collection::vec((prop::collection::vec(0u8..3, 0..12), 0usize..3000), 0..200),
        ) {
            let mut model = BTreeMap::new();
            let mut sorter = ExternalSorter::new(0);
            for (n, (key, len)) in pairs.iter().enumerate() {
                let payload = vec![n as u8; *len];
                sorter.push(key, &payload).unwrap();
                model.insert(key.clone(), payload);
            }
            let mut rows = sorter.finish().unwrap();
            let mut found = Vec::new();
            while let Some((key, payload)) = rows.next().unwrap() {
                found.push((key.to_vec(), payload.to_vec()));
            }
            prop_assert_eq!(found, model.into_iter().collect::<Vec<_>>());
            prop_assert!(rows.next().unwrap().is_none());
        }
    }

    #[test]
    fn memory_stays_within_its_bound_and_a_pair_larger_than_it_still_passes() {
        let mut sorter = ExternalSorter::new(64 * 1024);
        for n in 0..20_000u32 {
            sorter.push(&n.wrapping_mul(2_654_435_761).to_be_bytes(), &[7; 20]).unwrap();
            assert!(sorter.memory_used() <= 64 * 1024);
        }
        sorter.push(b"large", &vec![1; 1 << 20]).unwrap();
        let mut rows = sorter.finish().unwrap();
        let (mut count, mut large) = (0, 0);
        while let Some((_, payload)) = rows.next().unwrap() {
            count += 1;
            large = large.max(payload.len());
        }
        assert_eq!((count, large), (20_001, 1 << 20));
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        let mut sorter = ExternalSorter::with_directory(0, "/nonexistent/folder");
        let big = vec![0; MIN_READ_BUFFER];
        sorter.push(b"a", &big).unwrap();
        assert!(matches!(sorter.push(b"b", &big), Err(StorageError::Io(_))));
    }
}
