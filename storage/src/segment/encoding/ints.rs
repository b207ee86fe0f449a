//! Integers, as differences from a base or from each other, packed into few bits.
//!
//! A chunk says how each value follows from a *residual* of `width` bits. The values themselves, or the
//! differences of neighbours, are taken relative to a base: the smallest of them, or their median with the
//! sign folded into the lowest bit. Residuals that need more than `width` bits keep their low bits in place
//! and have the rest in a list of patches. The encoder takes what is smallest. All arithmetic is modulo 2^64.

use super::bits::{pack, packed_len, unpack};
use super::chunks::{encode_chunks, Chunks};
use super::CHUNK_ROWS;
use crate::bytes::{put_signed, put_varint, unzigzag, varint_len, zigzag, ByteReader};
use crate::error::{Result, StorageError};
use std::ops::Range;

/// Bits of a chunk's first byte.
const CONSTANT: u8 = 0;
const DELTAS: u8 = 1;
const PACKED: u8 = 2;
const FOLDED: u8 = 4;
const PATCHED: u8 = 8;

/// Decoded numbers of a chunk.
#[derive(Debug)]
pub(crate) enum Ints {
    /// `first + index * step`.
    Linear {
        /// The number at index 0.
        first: u64,
        /// Difference of neighbours.
        step: u64,
    },
    /// One by one.
    Values(Vec<u64>),
}

impl Ints {
    #[inline]
    pub(crate) fn get(&self, index: usize) -> u64 {
        match self {
            Ints::Linear { first, step } => first.wrapping_add(step.wrapping_mul(index as u64)),
            Ints::Values(values) => values.get(index).copied().unwrap_or(0),
        }
    }

    /// Index of the first of `count` numbers that equals `value`.
    fn position(&self, count: usize, value: u64) -> Option<usize> {
        match self {
            Ints::Linear { first, step: 1 } => {
                usize::try_from(value.wrapping_sub(*first)).ok().filter(|index| *index < count)
            }
            Ints::Linear { .. } => (0..count).find(|index| self.get(*index) == value),
            Ints::Values(values) => values.iter().position(|found| *found == value),
        }
    }

    /// The single number of a chunk whose numbers are all equal.
    pub(crate) fn constant(&self) -> Option<u64> {
        match self {
            Ints::Linear { first, step: 0 } => Some(*first),
            _ => None,
        }
    }
}

/// How residuals are packed, and what that costs.
#[derive(Clone, Copy)]
struct Plan {
    deltas: bool,
    folded: bool,
    base: u64,
    width: u32,
    bits: usize,
}

/// Appends the chunk of `values`, at most [`super::CHUNK_ROWS`] of them.
pub(crate) fn encode(out: &mut Vec<u8>, values: &[u64]) {
    let Some((&first, rest)) = values.split_first() else {
        return;
    };
    if rest.iter().all(|value| *value == first) {
        out.push(CONSTANT);
        put_signed(out, first as i64);
        return;
    }
    let deltas: Vec<u64> = values.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
    let linear = deltas.iter().all(|delta| *delta == deltas[0]);
    if linear {
        out.push(CONSTANT | DELTAS);
        put_signed(out, first as i64);
        put_signed(out, deltas[0] as i64);
        return;
    }
    let mut scratch = Vec::with_capacity(values.len());
    let mut best = plan(&deltas, true, &mut scratch);
    let direct = plan(values, false, &mut scratch);
    if direct.bits <= best.bits {
        best = direct;
    }
    let source = if best.deltas { &deltas[..] } else { values };
    let residuals: Vec<u64> = source.iter().map(|value| residual(*value, &best)).collect();
    let too_wide = |value: &u64| best.width < 64 && value >> best.width != 0;
    let patches = residuals.iter().filter(|value| too_wide(value)).count();
    let mut tag = PACKED;
    for (set, bit) in [(best.deltas, DELTAS), (best.folded, FOLDED), (patches > 0, PATCHED)] {
        if set {
            tag |= bit;
        }
    }
    out.push(tag);
    if best.deltas {
        put_signed(out, first as i64);
    }
    put_signed(out, best.base as i64);
    out.push(best.width as u8);
    pack(out, residuals.iter().copied(), best.width);
    if patches > 0 {
        put_varint(out, patches as u64);
        let mut next = 0;
        for (index, value) in residuals.iter().enumerate().filter(|(_, value)| too_wide(value)) {
            put_varint(out, (index - next) as u64);
            put_varint(out, value >> best.width);
            next = index + 1;
        }
    }
}

fn residual(value: u64, plan: &Plan) -> u64 {
    let difference = value.wrapping_sub(plan.base);
    if plan.folded {
        zigzag(difference as i64)
    } else {
        difference
    }
}

/// The cheaper of the two bases for `values`.
fn plan(values: &[u64], deltas: bool, scratch: &mut Vec<u64>) -> Plan {
    scratch.clear();
    scratch.extend_from_slice(values);
    let middle = scratch.len() / 2;
    let median = *scratch.select_nth_unstable_by_key(middle, |value| *value as i64).1;
    let least = values.iter().map(|value| *value as i64).min().unwrap_or(0) as u64;
    let mut best: Option<Plan> = None;
    for (base, folded) in [(least, false), (median, true)] {
        let mut plan = Plan { deltas, folded, base, width: 0, bits: 0 };
        let mut counts = [0usize; 65];
        for value in values {
            counts[64 - residual(*value, &plan).leading_zeros() as usize] += 1;
        }
        (plan.width, plan.bits) = cheapest_width(&counts, values.len());
        plan.bits += 8 * varint_len(zigzag(base as i64));
        if deltas {
            plan.bits += 16;
        }
        if best.is_none_or(|best| plan.bits < best.bits) {
            best = Some(plan);
        }
    }
    best.unwrap_or(Plan { deltas, folded: false, base: 0, width: 64, bits: usize::MAX })
}

/// Width, and cost in bits, given how many residuals have which length. A patch costs a byte for its place and
/// the varint of what is cut off.
fn cheapest_width(counts: &[usize; 65], total: usize) -> (u32, usize) {
    let longest = (0..=64).rev().find(|bits| counts[*bits] > 0).unwrap_or(0);
    let mut best = (longest as u32, longest * total);
    let mut patches = 0;
    for width in (0..longest).rev() {
        patches += counts[width + 1];
        let cost = width * total + patches * (8 + 8 * (longest - width).div_ceil(7)) + 8;
        if cost < best.1 {
            best = (width as u32, cost);
        }
    }
    best
}

/// Decodes a chunk of `count` values from the reader.
pub(crate) fn decode(reader: &mut ByteReader<'_>, count: usize) -> Result<Ints> {
    if count == 0 {
        return Ok(Ints::Linear { first: 0, step: 0 });
    }
    let tag = reader.u8()?;
    let first = if tag & DELTAS != 0 || tag == CONSTANT { reader.signed()? as u64 } else { 0 };
    if tag & PACKED == 0 {
        let step = match tag {
            CONSTANT => 0,
            DELTAS => reader.signed()? as u64,
            _ => return Err(StorageError::damaged("unknown encoding of numbers")),
        };
        return Ok(Ints::Linear { first, step });
    }
    if tag & !(PACKED | DELTAS | FOLDED | PATCHED) != 0 {
        return Err(StorageError::damaged("unknown encoding of numbers"));
    }
    let deltas = tag & DELTAS != 0;
    let base = reader.signed()? as u64;
    let width = u32::from(reader.u8()?);
    if width > 64 {
        return Err(StorageError::damaged("packed numbers are too wide"));
    }
    let packed = if deltas { count - 1 } else { count };
    let bytes = reader.take(packed_len(packed, width))?;
    let mut values = Vec::with_capacity(count);
    if deltas {
        values.push(0);
    }
    unpack(bytes, width, packed, |value| values.push(value))?;
    let residuals = &mut values[usize::from(deltas)..];
    if tag & PATCHED != 0 {
        patch(reader, residuals, width)?;
    }
    if tag & FOLDED != 0 {
        residuals.iter_mut().for_each(|value| *value = base.wrapping_add(unzigzag(*value) as u64));
    } else {
        residuals.iter_mut().for_each(|value| *value = base.wrapping_add(*value));
    }
    if deltas {
        let mut last = first;
        values[0] = first;
        for value in &mut values[1..] {
            last = last.wrapping_add(*value);
            *value = last;
        }
    }
    Ok(Ints::Values(values))
}

fn patch(reader: &mut ByteReader<'_>, residuals: &mut [u64], width: u32) -> Result<()> {
    let mut next = 0usize;
    for _ in 0..reader.size()? {
        let index = next.saturating_add(reader.size()?);
        let high = reader.varint()?;
        let value = residuals.get_mut(index).ok_or_else(|| StorageError::damaged("patch is out of its chunk"))?;
        *value |= high.checked_shl(width).ok_or_else(|| StorageError::damaged("patch is too wide"))?;
        next = index + 1;
    }
    Ok(())
}

/// Appends a section of numbers, one a row; nothing at all if they are all 0.
pub(crate) fn encode_column(out: &mut Vec<u8>, values: &[u64]) {
    if values.iter().any(|value| *value != 0) {
        encode_chunks(out, values.len(), |rows, out| encode(out, &values[rows]));
    }
}

/// A section of numbers, one a row.
#[derive(Debug)]
pub(crate) struct IntColumn {
    /// `None`: all are 0.
    chunks: Option<Chunks<Ints>>,
}

impl IntColumn {
    pub(crate) fn parse(body: &[u8], section: Range<usize>, rows: usize) -> Result<Self> {
        let chunks = if section.is_empty() { None } else { Some(Chunks::parse(body, section, rows)?) };
        Ok(IntColumn { chunks })
    }

    #[inline]
    pub(crate) fn get(&self, body: &[u8], row: usize) -> Result<u64> {
        let Some(chunks) = &self.chunks else {
            return Ok(0);
        };
        let (ints, index) = chunks.of_row(body, row, decode_chunk)?;
        Ok(ints.get(index))
    }

    /// The first of `rows` rows whose number is `value`, which must not be 0.
    pub(crate) fn position(&self, body: &[u8], rows: usize, value: u64) -> Result<Option<usize>> {
        let Some(chunks) = &self.chunks else {
            return Ok(None);
        };
        for start in (0..rows).step_by(CHUNK_ROWS) {
            let (ints, _) = chunks.of_row(body, start, decode_chunk)?;
            if let Some(index) = ints.position(CHUNK_ROWS.min(rows - start), value) {
                return Ok(Some(start + index));
            }
        }
        Ok(None)
    }
}

fn decode_chunk(bytes: &[u8], rows: usize, _: usize) -> Result<Ints> {
    decode(&mut ByteReader::new(bytes), rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(values: &[u64]) -> usize {
        let mut out = Vec::new();
        encode(&mut out, values);
        let mut reader = ByteReader::new(&out);
        let ints = decode(&mut reader, values.len()).unwrap();
        assert!(reader.is_empty());
        let found: Vec<u64> = (0..values.len()).map(|index| ints.get(index)).collect();
        assert_eq!(found, values);
        out.len()
    }

    proptest! {
        #[test]
        fn any_numbers_decode_as_encoded(
            values in prop::collection::vec((any::<u64>(), 0u32..64), 1..=super::super::CHUNK_ROWS),
            sorted: bool,
        ) {
            let mut values: Vec<u64> = values.into_iter().map(|(value, shift)| value >> shift).collect();
            if sorted {
                values.sort_unstable();
            }
            round_trip(&values);
        }

        #[test]
        fn damaged_numbers_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..100), count in 0usize..=256) {
            let _ = decode(&mut ByteReader::new(&bytes), count);
        }
    }

    #[test]
    fn times_at_even_steps_with_a_jump_cost_a_few_bytes() {
        let start = 1_700_000_000_000_000u64;
        let times: Vec<u64> = (0..256u64).map(|n| start + n % 144 * 600_000_000).collect();
        assert!(round_trip(&times) < 40);
    }

    #[test]
    fn small_steps_cost_their_bits() {
        let values: Vec<u64> = (0..256u64).map(|n| 1_000_000 + n * 3 + n * n % 5).collect();
        assert!(round_trip(&values) <= 3 * 256 / 8 + 12);
    }

    #[test]
    fn negative_numbers_are_as_short_as_positive_ones() {
        let values: Vec<u64> = (0..256i64).map(|n| (n % 7 - 3) as u64).collect();
        assert!(round_trip(&values) <= 3 * 256 / 8 + 6);
    }
}
