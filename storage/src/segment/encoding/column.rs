//! The cells of one column in a leaf: their states, and the values by the column's class.

use super::bytes_column::{self, BytesColumn, Strings};
use super::chunks::{encode_chunks, Chunks};
use super::{bits, floats, ints};
use crate::bytes::ByteReader;
use crate::error::{Result, StorageError};
use crate::row::Cell;
use crate::segment::ColumnClass;
use std::ops::Range;

pub(crate) const STATE_ABSENT: u8 = 0;
pub(crate) const STATE_NULL: u8 = 1;
pub(crate) const STATE_VALUE: u8 = 2;
pub(crate) const STATE_EXTERNAL: u8 = 3;
/// First byte of states that differ; two bits a row follow.
const STATES_DIFFER: u8 = 4;

/// Appends the states of a chunk's rows and says whether any of them has bytes.
pub(crate) fn put_states(out: &mut Vec<u8>, states: &[u8]) -> bool {
    let first = states.first().copied().unwrap_or(STATE_ABSENT);
    if states.iter().all(|state| *state == first) {
        out.push(first);
        return first >= STATE_VALUE;
    }
    out.push(STATES_DIFFER);
    bits::pack(out, states.iter().map(|state| u64::from(*state)), 2);
    states.iter().any(|state| *state >= STATE_VALUE)
}

/// Reads what [`put_states`] wrote.
pub(crate) fn take_states(reader: &mut ByteReader<'_>, rows: usize) -> Result<(States, bool)> {
    match reader.u8()? {
        STATES_DIFFER => {
            let packed = reader.take(bits::packed_len(rows, 2))?.to_vec();
            let any = (0..rows).any(|row| packed[row / 4] >> (row % 4 * 2) & 3 >= STATE_VALUE);
            Ok((States::Packed(packed), any))
        }
        state if state < STATES_DIFFER => Ok((States::All(state), state >= STATE_VALUE)),
        _ => Err(StorageError::damaged("unknown state of cells")),
    }
}

/// States of a chunk's rows.
#[derive(Debug)]
pub(crate) enum States {
    /// All rows have this one.
    All(u8),
    /// Two bits a row.
    Packed(Vec<u8>),
}

/// Values of a chunk's rows.
#[derive(Debug)]
pub(crate) enum Values {
    /// No row has any.
    None,
    /// Here, `width` bytes each.
    Decoded { width: usize, bytes: Vec<u8> },
    /// In the leaf, from one start to the next.
    Spans(Vec<usize>),
    /// In the leaf, `len` bytes each.
    Strided { start: usize, len: usize },
    /// In the leaf's dictionary.
    Codes(ints::Ints),
}

/// A decoded chunk.
#[derive(Debug)]
pub(crate) struct ColumnChunk {
    pub(crate) states: States,
    pub(crate) values: Values,
}

impl ColumnChunk {
    pub(crate) fn state(&self, index: usize) -> u8 {
        match &self.states {
            States::All(state) => *state,
            States::Packed(packed) => packed.get(index / 4).map_or(0, |byte| byte >> (index % 4 * 2) & 3),
        }
    }
}

/// The column's cells in a leaf under construction.
#[derive(Debug)]
pub(crate) struct ColumnBuffer {
    class: ColumnClass,
    states: Vec<u8>,
    /// Numbers of numeric classes, one a row; a row without one repeats the last, which costs least.
    numbers: Vec<u64>,
    strings: Strings,
}

impl ColumnBuffer {
    pub(crate) fn new(class: ColumnClass) -> Self {
        ColumnBuffer { class, states: Vec::new(), numbers: Vec::new(), strings: Strings::default() }
    }

    /// Adds a row's cell and says how many bytes its value has.
    pub(crate) fn push(&mut self, cell: Cell<'_>) -> Result<usize> {
        let (state, bytes) = match cell {
            Cell::Absent => (STATE_ABSENT, &[][..]),
            Cell::Null => (STATE_NULL, &[][..]),
            Cell::Value(value) => (STATE_VALUE, value),
            Cell::External(pointer) => (STATE_EXTERNAL, pointer),
        };
        if state == STATE_VALUE && self.class.width().is_some_and(|width| width != bytes.len()) {
            return Err(StorageError::Refused { what: "a value does not have its column's length" });
        }
        if state == STATE_EXTERNAL && self.class != ColumnClass::Bytes {
            return Err(StorageError::Refused { what: "an external value in a column of fixed length" });
        }
        self.states.push(state);
        if is_numeric(self.class) {
            let last = self.numbers.last().copied().unwrap_or(0);
            self.numbers.push(if state == STATE_VALUE { to_number(self.class, bytes) } else { last });
        } else {
            self.strings.push(bytes);
        }
        Ok(bytes.len())
    }

    pub(crate) fn remove_first(&mut self, rows: usize) {
        self.states.drain(..rows);
        if is_numeric(self.class) {
            self.numbers.drain(..rows);
        } else {
            self.strings.remove_first(rows);
        }
    }

    /// Appends the section of the first `rows` rows; nothing at all if all are absent.
    pub(crate) fn encode(&self, out: &mut Vec<u8>, rows: usize) {
        let states = &self.states[..rows];
        if states.iter().all(|state| *state == STATE_ABSENT) {
            return;
        }
        if !is_numeric(self.class) {
            return bytes_column::encode_column(out, states, &self.strings);
        }
        encode_chunks(out, rows, |rows, out| {
            if put_states(out, &states[rows.clone()]) {
                match self.class {
                    ColumnClass::Float4 => floats::encode(out, &self.numbers[rows], 4),
                    ColumnClass::Float8 => floats::encode(out, &self.numbers[rows], 8),
                    _ => ints::encode(out, &self.numbers[rows]),
                }
            }
        });
    }
}

fn is_numeric(class: ColumnClass) -> bool {
    !matches!(class, ColumnClass::Fixed(_) | ColumnClass::Bytes)
}

/// The number in little-endian `bytes`, integers with their sign extended.
fn to_number(class: ColumnClass, bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    let number = u64::from_le_bytes(word);
    match class {
        ColumnClass::Int1 => number as i8 as u64,
        ColumnClass::Int2 => number as i16 as u64,
        ColumnClass::Int4 => number as i32 as u64,
        _ => number,
    }
}

/// A column's section in a leaf.
#[derive(Debug)]
pub(crate) enum ColumnReader {
    /// All cells are absent.
    Absent,
    /// Numbers of a fixed number of bytes.
    Numbers {
        /// Integer or floating-point.
        class: ColumnClass,
        /// Bytes of each.
        width: usize,
        /// The cells.
        chunks: Chunks<ColumnChunk>,
    },
    /// Byte strings; of one length, if that is given.
    Bytes(BytesColumn, Option<usize>),
}

impl ColumnReader {
    pub(crate) fn parse(body: &[u8], section: Range<usize>, rows: usize, class: ColumnClass) -> Result<Self> {
        Ok(match class.width() {
            _ if section.is_empty() => ColumnReader::Absent,
            Some(width) if is_numeric(class) => {
                ColumnReader::Numbers { class, width, chunks: Chunks::parse(body, section, rows)? }
            }
            width => ColumnReader::Bytes(BytesColumn::parse(body, section, rows)?, width),
        })
    }

    pub(crate) fn cell<'a>(&'a self, body: &'a [u8], row: usize) -> Result<Cell<'a>> {
        let (state, bytes) = match self {
            ColumnReader::Absent => return Ok(Cell::Absent),
            ColumnReader::Bytes(column, width) => {
                let (state, bytes) = column.get(body, row)?;
                if state >= STATE_VALUE && width.is_some_and(|width| width != bytes.len()) {
                    return Err(StorageError::damaged("a value does not have its column's length"));
                }
                (state, bytes)
            }
            ColumnReader::Numbers { class, width, chunks } => {
                let (chunk, index) = chunks.of_row(body, row, |bytes, rows, _| decode(bytes, rows, *class, *width))?;
                let bytes = match &chunk.values {
                    // One value alone stands for all.
                    Values::Decoded { width, bytes } if bytes.len() == *width => &bytes[..],
                    Values::Decoded { width, bytes } => {
                        bytes.get(index * width..(index + 1) * width).unwrap_or_default()
                    }
                    _ => &[],
                };
                (chunk.state(index), bytes)
            }
        };
        Ok(match state {
            STATE_ABSENT => Cell::Absent,
            STATE_NULL => Cell::Null,
            STATE_VALUE => Cell::Value(bytes),
            _ if matches!(self, ColumnReader::Bytes(_, None)) => Cell::External(bytes),
            _ => return Err(StorageError::damaged("an external value in a column of fixed length")),
        })
    }
}

fn decode(bytes: &[u8], rows: usize, class: ColumnClass, width: usize) -> Result<ColumnChunk> {
    let mut reader = ByteReader::new(bytes);
    let (states, any) = take_states(&mut reader, rows)?;
    if !any {
        return Ok(ColumnChunk { states, values: Values::None });
    }
    let bytes = if matches!(class, ColumnClass::Float4 | ColumnClass::Float8) {
        floats::decode(&mut reader, rows, width)?
    } else {
        let numbers = ints::decode(&mut reader, rows)?;
        let count = if numbers.constant().is_some() { 1 } else { rows };
        let mut bytes = Vec::with_capacity(count * width);
        (0..count).for_each(|index| bytes.extend_from_slice(&numbers.get(index).to_le_bytes()[..width]));
        bytes
    };
    Ok(ColumnChunk { states, values: Values::Decoded { width, bytes } })
}
