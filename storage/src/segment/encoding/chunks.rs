//! A section of a leaf as a row of chunks, each decoded when it is first asked for.

use super::CHUNK_ROWS;
use crate::bytes::{put_varint, ByteReader};
use crate::error::{Result, StorageError};
use std::cell::OnceCell;
use std::ops::Range;

/// Appends the chunks of `rows` rows: the lengths of all but the last, then the chunks that `encode` makes.
pub(crate) fn encode_chunks(out: &mut Vec<u8>, rows: usize, mut encode: impl FnMut(Range<usize>, &mut Vec<u8>)) {
    if rows <= CHUNK_ROWS {
        encode(0..rows, out);
        return;
    }
    let mut all = Vec::with_capacity(rows);
    for start in (0..rows).step_by(CHUNK_ROWS) {
        let before = all.len();
        encode(start..rows.min(start + CHUNK_ROWS), &mut all);
        if start + CHUNK_ROWS < rows {
            put_varint(out, (all.len() - before) as u64);
        }
    }
    out.extend_from_slice(&all);
}

/// Where the chunks of a section lie, and those decoded so far.
#[derive(Debug)]
pub(crate) struct Chunks<T> {
    rows: usize,
    chunks: Vec<(Range<usize>, OnceCell<T>)>,
}

impl<T> Chunks<T> {
    /// Finds the chunks of `rows` rows in `body[section]`.
    pub(crate) fn parse(body: &[u8], section: Range<usize>, rows: usize) -> Result<Self> {
        let bytes = body.get(section.clone()).ok_or_else(|| StorageError::damaged("section is out of its leaf"))?;
        let mut reader = ByteReader::new(bytes);
        let count = rows.div_ceil(CHUNK_ROWS);
        let mut chunks = Vec::with_capacity(count);
        let mut lengths = reader;
        for _ in 1..count {
            reader.varint()?;
        }
        let mut start = section.end - reader.rest().len();
        for index in 1..=count {
            let end = if index == count { section.end } else { start.saturating_add(lengths.size()?) };
            if end > section.end {
                return Err(StorageError::damaged("chunk is out of its section"));
            }
            chunks.push((start..end, OnceCell::new()));
            start = end;
        }
        Ok(Chunks { rows, chunks })
    }

    /// The chunk of `row`, decoded by `decode` from its bytes, its number of rows and its place in `body`; and the
    /// row's index in it.
    #[inline]
    pub(crate) fn of_row<'a>(
        &'a self,
        body: &[u8],
        row: usize,
        decode: impl FnOnce(&[u8], usize, usize) -> Result<T>,
    ) -> Result<(&'a T, usize)> {
        let index = row / CHUNK_ROWS;
        match self.chunks.get(index).and_then(|(_, cell)| cell.get()) {
            Some(chunk) => Ok((chunk, row % CHUNK_ROWS)),
            None => Ok((self.decode(body, index, decode)?, row % CHUNK_ROWS)),
        }
    }

    #[cold]
    fn decode<'a>(
        &'a self,
        body: &[u8],
        index: usize,
        decode: impl FnOnce(&[u8], usize, usize) -> Result<T>,
    ) -> Result<&'a T> {
        let (range, cell) = self.chunks.get(index).ok_or_else(|| StorageError::damaged("row is out of its leaf"))?;
        let bytes = body.get(range.clone()).ok_or_else(|| StorageError::damaged("chunk is out of its leaf"))?;
        let rows = (self.rows - index * CHUNK_ROWS).min(CHUNK_ROWS);
        let chunk = decode(bytes, rows, range.start)?;
        Ok(cell.get_or_init(|| chunk))
    }
}
