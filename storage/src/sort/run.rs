//! Reading a sorted run, from memory or from the temporary file.

use crate::error::{Result, StorageError};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

/// Bytes a reader of a sorted run holds at least.
pub(super) const MIN_READ_BUFFER: usize = 16 * 1024;
/// Bytes of the two lengths before each pair in the file.
pub(super) const PAIR_HEADER: usize = 8;

/// Where a pair lies in the buffer. Ordered by key, then by time of pushing.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    /// The key's first 8 bytes as a big-endian number, zero-filled: most comparisons need nothing else.
    pub(super) prefix: u64,
    pub(super) start: usize,
    pub(super) key_len: u32,
    pub(super) payload_len: u32,
}

/// The key of an entry of `buffer`.
pub(super) fn key_of<'a>(buffer: &'a [u8], entry: &Entry) -> &'a [u8] {
    &buffer[entry.start..entry.start + entry.key_len as usize]
}

/// A sorted run and the pair it stands at.
pub(super) enum Run {
    Memory { buffer: Vec<u8>, entries: Vec<Entry>, at: usize },
    File(FileRun),
}

impl Run {
    pub(super) fn pair(&self) -> Option<(&[u8], &[u8])> {
        match self {
            Run::Memory { buffer, entries, at } => {
                let entry = entries.get(*at)?;
                let len = entry.key_len as usize + entry.payload_len as usize;
                Some(buffer[entry.start..entry.start + len].split_at(entry.key_len as usize))
            }
            Run::File(run) => run.pair(),
        }
    }

    pub(super) fn key(&self) -> Option<&[u8]> {
        self.pair().map(|(key, _)| key)
    }

    pub(super) fn advance(&mut self) -> Result<()> {
        match self {
            Run::Memory { at, .. } => {
                *at += 1;
                Ok(())
            }
            Run::File(run) => run.advance(),
        }
    }
}

/// Reads a run from the file in pieces of about `room` bytes.
pub(super) struct FileRun {
    file: Rc<File>,
    /// Place in the file from which to read on.
    at: u64,
    end: u64,
    room: usize,
    buffer: Vec<u8>,
    /// The current pair in `buffer`: its start, the length of its key, and its whole length, 0 past the end.
    pair: usize,
    key: usize,
    len: usize,
}

impl FileRun {
    /// At the first pair of the run that lies between `at` and `end` of `file`.
    pub(super) fn open(file: Rc<File>, at: u64, end: u64, room: usize) -> Result<Self> {
        let mut run = FileRun { file, at, end, room, buffer: Vec::new(), pair: 0, key: 0, len: 0 };
        run.advance()?;
        Ok(run)
    }

    fn pair(&self) -> Option<(&[u8], &[u8])> {
        let pair = self.buffer.get(self.pair..self.pair + self.len).filter(|_| self.len > 0)?;
        pair.get(PAIR_HEADER..)?.split_at_checked(self.key)
    }

    fn advance(&mut self) -> Result<()> {
        self.pair += std::mem::take(&mut self.len);
        if self.pair == self.buffer.len() && self.at == self.end {
            return Ok(());
        }
        self.need(PAIR_HEADER)?;
        let header = &self.buffer[self.pair..self.pair + PAIR_HEADER];
        let number = |at: usize| header[at..at + 4].iter().rev().fold(0usize, |n, byte| n << 8 | usize::from(*byte));
        self.key = number(0);
        let len = PAIR_HEADER + self.key + number(4);
        self.need(len)?;
        self.len = len;
        Ok(())
    }

    /// Reads on until `len` bytes from the current pair's start are in memory.
    fn need(&mut self, len: usize) -> Result<()> {
        let have = self.buffer.len() - self.pair;
        if have >= len {
            return Ok(());
        }
        self.buffer.drain(..self.pair);
        self.pair = 0;
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let more = (len - have).max(self.room).min(left);
        if have + more < len {
            return Err(StorageError::damaged("temporary file is too short"));
        }
        self.buffer.resize(have + more, 0);
        self.file.read_exact_at(&mut self.buffer[have..], self.at)?;
        self.at += more as u64;
        Ok(())
    }
}
