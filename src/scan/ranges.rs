//! Key ranges: the bytes between which the rows lie that satisfy a scan's bounds.

use std::ops::Bound::{Excluded, Included, Unbounded};

use cass_storage::key::put_token;
use cass_storage::merge::Direction;
use pgrx::pg_sys::{self, Datum};

use super::clause::{Target, Test};
use super::slice::Slice;
use super::values::Fitted;
use crate::catalog::identifier::owned;
use crate::catalog::TableKey;
use crate::error::Report;
use crate::read::KeyRange;

/// Most combinations of key values that one scan looks up: each takes a range in memory.
const MAX_COMBINATIONS: u128 = 100_000;

/// A bound with its values: one, an array's without NULLs, or a row's up to the first NULL.
#[derive(Clone, Debug)]
pub struct BoundValues {
    pub target: Target,
    /// See [`super::clause::Bound`].
    pub columns: usize,
    pub test: Test,
    pub values: Vec<Fitted>,
}

/// The disjoint ranges that hold every row satisfying all bounds, in the scan's order.
///
/// The bounds are those of one [`super::bounds::Bounds`]. Values of the token are bigints.
pub fn key_ranges(key: &TableKey, bounds: &[BoundValues], direction: Direction) -> Vec<KeyRange> {
    let mut ranges = if bounds.is_empty() {
        vec![KeyRange::everything()]
    } else if bounds.iter().any(|bound| bound.target == Target::Token) {
        token_range(bounds).into_iter().collect()
    } else {
        partition_ranges(key, bounds)
    };
    if direction == Direction::Backward {
        ranges.reverse();
    }
    ranges
}

/// The range of the ring that all comparisons of the token leave; `None` if it is empty.
fn token_range(bounds: &[BoundValues]) -> Option<KeyRange> {
    token_interval(bounds).map(|(least, greatest)| tokens(least, greatest))
}

/// One of `count` parts of about the same length of what `token_range` gives, the whole ring for no bounds; `None` for
/// an empty part.
///
/// The bounds are comparisons of the token.
pub fn token_part(bounds: &[BoundValues], index: u64, count: u64) -> Option<KeyRange> {
    let (least, greatest) = token_interval(bounds)?;
    let length = (i128::from(greatest) - i128::from(least)) + 1;
    let start = |index: u64| i128::from(least) + length * i128::from(index) / i128::from(count);
    let (first, last) = (start(index), start(index + 1) - 1);
    (first <= last).then(|| tokens(first as i64, last as i64))
}

/// The keys of these tokens.
fn tokens(least: i64, greatest: i64) -> KeyRange {
    let start = |token| {
        let mut bytes = Vec::with_capacity(8);
        put_token(&mut bytes, token);
        bytes
    };
    KeyRange {
        lower: Included(start(least)),
        upper: greatest.checked_add(1).map_or(Unbounded, |next| Excluded(start(next))),
        partition: None,
    }
}

/// The least and the greatest token that all comparisons leave; `None` if there is none.
fn token_interval(bounds: &[BoundValues]) -> Option<(i64, i64)> {
    let (mut least, mut greatest) = (i64::MIN, i64::MAX);
    for bound in bounds {
        let token = match bound.values.first() {
            Some(Fitted::Value(value)) => value.value() as i64,
            _ => return None,
        };
        match bound.test {
            Test::Less => greatest = greatest.min(token.checked_sub(1)?),
            Test::LessOrEqual => greatest = greatest.min(token),
            Test::GreaterOrEqual => least = least.max(token),
            Test::Greater => least = least.max(token.checked_add(1)?),
            Test::Equal | Test::Any => {
                least = least.max(token);
                greatest = greatest.min(token);
            }
        }
    }
    (least <= greatest).then_some((least, greatest))
}

/// One range for every combination of partition and leading clustering values.
fn partition_ranges(key: &TableKey, bounds: &[BoundValues]) -> Vec<KeyRange> {
    let values_of = |index: usize| -> Option<Vec<Datum>> {
        let equality = bounds.iter().find(|bound| bound.target == Target::Column(index) && bound.test.is_equality())?;
        // A value outside the column's type equals none of its values.
        let in_type = |value: &Fitted| match value {
            Fitted::Value(datum) => Some(*datum),
            Fitted::BelowAll | Fitted::AboveAll => None,
        };
        Some(equality.values.iter().filter_map(in_type).collect())
    };

    let partition_values: Vec<Vec<Datum>> =
        (0..key.partition_columns).map(|index| values_of(index).unwrap_or_default()).collect();
    let clustering_values: Vec<Vec<Datum>> = (key.partition_columns..key.columns.len()).map_while(values_of).collect();
    let lengths = partition_values.iter().chain(&clustering_values).map(Vec::len);
    let count = lengths.fold(1_u128, |count, length| count.saturating_mul(length as u128));
    if count > MAX_COMBINATIONS {
        refuse_combinations(key, count);
    }
    if count == 0 {
        return Vec::new();
    }

    let mut combinations: Vec<Vec<Datum>> = vec![Vec::new()];
    for values in &partition_values {
        combinations = extend_each(&combinations, values, |combination, value| combination.push(*value));
    }
    let mut partitions: Vec<Vec<u8>> =
        combinations.iter().filter_map(|combination| key.find_partition(combination)).collect();
    partitions.sort_unstable();
    partitions.dedup();

    let mut clustering: Vec<Vec<u8>> = vec![Vec::new()];
    let mut next = key.partition_columns;
    for values in clustering_values {
        let mut encoded: Vec<Vec<u8>> = values
            .iter()
            .map(|value| {
                let mut bytes = Vec::new();
                key.encode_component(next, *value, &mut bytes);
                bytes
            })
            .collect();
        encoded.sort_unstable();
        encoded.dedup();
        clustering = extend_each(&clustering, &encoded, |prefix, component| prefix.extend_from_slice(component));
        next += 1;
    }

    let slice = Slice::of(key, next, bounds);
    let mut ranges = Vec::with_capacity(partitions.len() * clustering.len());
    for partition in partitions {
        for prefix in &clustering {
            let mut start = partition.clone();
            start.extend_from_slice(prefix);
            ranges.extend(slice.ranges(&start, &partition));
        }
    }
    ranges
}

/// Raises that IN lists give too many combinations of key values.
fn refuse_combinations(key: &TableKey, count: u128) -> ! {
    // SAFETY: catalog look-ups; the table is open, and so its name is a palloc'ed C string.
    let table = unsafe { owned(pg_sys::get_rel_name(pg_sys::IndexGetRelation(key.index_oid, false))) };
    Report::new("54000", format!("IN lists of the query on table \"{table}\" give {count} combinations of key values"))
        .detail(format!("At most {MAX_COMBINATIONS} are read at once."))
        .hint("Use fewer values, or join with a table of the values.")
        .raise()
}

/// Every member of `starts` followed by every one of `ends`, in this order.
fn extend_each<S: Clone, E>(starts: &[S], ends: &[E], append: impl Fn(&mut S, &E)) -> Vec<S> {
    let mut all = Vec::with_capacity(starts.len() * ends.len());
    for start in starts {
        pgrx::check_for_interrupts!();
        for end in ends {
            let mut extended = start.clone();
            append(&mut extended, end);
            all.push(extended);
        }
    }
    all
}
