//! Byte strings: one after the other, or as numbers into a dictionary of the leaf when few differ.

use super::chunks::{encode_chunks, Chunks};
use super::column::{put_states, take_states, ColumnChunk, Values};
use super::{bits::packed_len, ints};
use crate::bytes::{put_varint, ByteReader};
use crate::error::{Result, StorageError};
use std::collections::HashMap;
use std::ops::Range;

const PLAIN: u8 = 0;
const DICTIONARY: u8 = 1;

/// Byte strings of a leaf under construction, one a row; empty where the cell has none.
#[derive(Debug, Default)]
pub(crate) struct Strings {
    data: Vec<u8>,
    ends: Vec<usize>,
}

impl Strings {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.data.extend_from_slice(bytes);
        self.ends.push(self.data.len());
    }

    pub(crate) fn get(&self, row: usize) -> &[u8] {
        &self.data[self.start(row)..self.ends[row]]
    }

    pub(crate) fn remove_first(&mut self, rows: usize) {
        let cut = self.start(rows);
        self.data.drain(..cut);
        self.ends.drain(..rows);
        self.ends.iter_mut().for_each(|end| *end -= cut);
    }

    fn start(&self, row: usize) -> usize {
        row.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    /// The different strings of the first `states.len()` rows and each row's number among them, if that is
    /// clearly shorter than the strings themselves.
    fn dictionary(&self, states: &[u8]) -> Option<(Vec<&[u8]>, Vec<u64>)> {
        let rows = states.len();
        let plain = self.start(rows);
        let mut numbers: HashMap<&[u8], u64> = HashMap::new();
        let (mut entries, mut codes) = (Vec::new(), Vec::with_capacity(rows));
        let (mut last, mut bytes) = (0, 0);
        for (row, state) in states.iter().enumerate() {
            if *state >= super::column::STATE_VALUE {
                let value = self.get(row);
                if entries.get(last as usize) != Some(&value) {
                    last = *numbers.entry(value).or_insert_with(|| {
                        entries.push(value);
                        bytes += value.len() + 1;
                        entries.len() as u64 - 1
                    });
                    if entries.len() > 16 + row / 4 {
                        return None;
                    }
                }
            }
            codes.push(last);
        }
        let width = 64 - (entries.len() as u64).saturating_sub(1).leading_zeros();
        (bytes + packed_len(rows, width) < plain * 3 / 4).then_some((entries, codes))
    }
}

/// Appends the section of the first `states.len()` strings.
pub(crate) fn encode_column(out: &mut Vec<u8>, states: &[u8], strings: &Strings) {
    match strings.dictionary(states) {
        Some((entries, codes)) => {
            out.push(DICTIONARY);
            put_varint(out, entries.len() as u64);
            entries.iter().for_each(|entry| put_varint(out, entry.len() as u64));
            entries.iter().for_each(|entry| out.extend_from_slice(entry));
            encode_chunks(out, states.len(), |rows, out| {
                if put_states(out, &states[rows.clone()]) {
                    ints::encode(out, &codes[rows]);
                }
            });
        }
        None => {
            out.push(PLAIN);
            encode_chunks(out, states.len(), |rows, out| {
                if put_states(out, &states[rows.clone()]) {
                    let lengths: Vec<u64> = rows.clone().map(|row| strings.get(row).len() as u64).collect();
                    ints::encode(out, &lengths);
                    out.extend_from_slice(&strings.data[strings.start(rows.start)..strings.start(rows.end)]);
                }
            });
        }
    }
}

/// A section of byte strings.
#[derive(Debug)]
pub(crate) struct BytesColumn {
    /// Where the dictionary's entries lie in the leaf.
    dictionary: Option<Vec<Range<usize>>>,
    chunks: Chunks<ColumnChunk>,
}

impl BytesColumn {
    pub(crate) fn parse(body: &[u8], section: Range<usize>, rows: usize) -> Result<Self> {
        let bytes = body.get(section.clone()).ok_or_else(|| StorageError::damaged("section is out of its leaf"))?;
        let mut reader = ByteReader::new(bytes);
        let dictionary = match reader.u8()? {
            PLAIN => None,
            DICTIONARY => {
                let count = reader.size()?;
                if count > rows {
                    return Err(StorageError::damaged("dictionary is larger than its leaf"));
                }
                let lengths = (0..count).map(|_| reader.size()).collect::<Result<Vec<_>>>()?;
                let mut entries = Vec::with_capacity(count);
                for len in lengths {
                    let start = section.end - reader.rest().len();
                    reader.take(len)?;
                    entries.push(start..start + len);
                }
                Some(entries)
            }
            _ => return Err(StorageError::damaged("unknown encoding of bytes")),
        };
        let start = section.end - reader.rest().len();
        Ok(BytesColumn { dictionary, chunks: Chunks::parse(body, start..section.end, rows)? })
    }

    /// State and bytes of the cell in `row`; the bytes are empty where the cell has none.
    pub(crate) fn get<'a>(&self, body: &'a [u8], row: usize) -> Result<(u8, &'a [u8])> {
        let has_dictionary = self.dictionary.is_some();
        let (chunk, index) =
            self.chunks.of_row(body, row, |bytes, rows, at| decode(bytes, rows, at, has_dictionary))?;
        let state = chunk.state(index);
        if state < super::column::STATE_VALUE {
            return Ok((state, &[]));
        }
        let damaged = || StorageError::damaged("value is out of its leaf");
        let range = match (&chunk.values, &self.dictionary) {
            (Values::Spans(starts), _) => match starts.get(index..index + 2) {
                Some([start, end]) => *start..*end,
                _ => return Err(damaged()),
            },
            (Values::Strided { start, len }, _) => start + index * len..start + (index + 1) * len,
            (Values::Codes(codes), Some(entries)) => {
                let entry = usize::try_from(codes.get(index)).ok().and_then(|code| entries.get(code));
                entry.cloned().ok_or_else(|| StorageError::damaged("value is not in the dictionary"))?
            }
            _ => return Err(damaged()),
        };
        Ok((state, body.get(range).ok_or_else(damaged)?))
    }
}

/// Decodes the chunk in `bytes`, which lie at `at` in the leaf.
fn decode(bytes: &[u8], rows: usize, at: usize, has_dictionary: bool) -> Result<ColumnChunk> {
    let mut reader = ByteReader::new(bytes);
    let (states, any) = take_states(&mut reader, rows)?;
    if !any {
        return Ok(ColumnChunk { states, values: Values::None });
    }
    let numbers = ints::decode(&mut reader, rows)?;
    if has_dictionary {
        return Ok(ColumnChunk { states, values: Values::Codes(numbers) });
    }
    let damaged = || StorageError::damaged("values are out of their chunk");
    let mut end = at + (bytes.len() - reader.rest().len());
    let limit = at + bytes.len();
    let values = match numbers.constant() {
        Some(len) => {
            let len = usize::try_from(len).ok().filter(|len| *len <= bytes.len()).ok_or_else(damaged)?;
            if end + len * rows > limit {
                return Err(damaged());
            }
            Values::Strided { start: end, len }
        }
        None => {
            let mut starts = Vec::with_capacity(rows + 1);
            starts.push(end);
            for row in 0..rows {
                let len = usize::try_from(numbers.get(row)).map_err(|_| damaged())?;
                end = end.checked_add(len).filter(|end| *end <= limit).ok_or_else(damaged)?;
                starts.push(end);
            }
            Values::Spans(starts)
        }
    };
    Ok(ColumnChunk { states, values })
}
