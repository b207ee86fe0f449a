//! What inequalities leave of the keys that start alike: intervals of the bytes that follow.
//!
//! `(b, c) > (1, 2)` holds where `b > 1`, and where `b = 1` and `c > 2`. Each alternative is one interval of key bytes, whatever the
//! directions of the columns; where they are mixed, the intervals lie apart.

use std::ops::Bound::{Excluded, Included, Unbounded};

use cass_storage::key::{prefix_successor, Order};

use super::clause::{Target, Test};
use super::ranges::BoundValues;
use super::values::Fitted;
use crate::catalog::TableKey;
use crate::read::KeyRange;

/// Bytes from `lower` on and below `upper`; `None` is above all.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Interval {
    lower: Vec<u8>,
    upper: Option<Vec<u8>>,
}

impl Interval {
    fn everything() -> Self {
        Self { lower: Vec::new(), upper: None }
    }

    /// The bytes that start with a prefix.
    fn starting_with(prefix: &[u8]) -> Self {
        Self { lower: prefix.to_vec(), upper: prefix_successor(prefix) }
    }

    fn is_empty(&self) -> bool {
        self.upper.as_ref().is_some_and(|upper| *upper <= self.lower)
    }

    fn and(&self, other: &Self) -> Self {
        let upper = match (&self.upper, &other.upper) {
            (Some(one), Some(other)) => Some(one.min(other).clone()),
            (one, other) => one.as_ref().or(other.as_ref()).cloned(),
        };
        Self { lower: (&self.lower).max(&other.lower).clone(), upper }
    }
}

/// Disjoint intervals in ascending order, none of them empty.
#[derive(Debug)]
pub struct Slice(Vec<Interval>);

impl Slice {
    /// What the inequalities leave whose first column is that of this index.
    pub fn of(key: &TableKey, first: usize, bounds: &[BoundValues]) -> Self {
        let on_it = bounds.iter().filter(|bound| bound.target == Target::Column(first));
        on_it.fold(Self(vec![Interval::everything()]), |slice, bound| slice.and(&Self::satisfying(key, first, bound)))
    }

    /// The bytes of the columns from `first` on that satisfy one inequality.
    fn satisfying(key: &TableKey, first: usize, bound: &BoundValues) -> Self {
        let wants_greater = matches!(bound.test, Test::Greater | Test::GreaterOrEqual);
        let with_equal = matches!(bound.test, Test::GreaterOrEqual | Test::LessOrEqual);
        let mut intervals = Vec::with_capacity(bound.values.len());
        let mut equal = Vec::new();
        for (offset, (value, column)) in bound.values.iter().zip(key.columns.iter().skip(first)).enumerate() {
            let mut interval = Interval::starting_with(&equal);
            match value {
                Fitted::Value(value) => key.encode_component(first + offset, *value, &mut equal),
                // Either all values of the column are on the wanted side of it, or none; and none equals it.
                Fitted::BelowAll | Fitted::AboveAll => {
                    if matches!(value, Fitted::BelowAll) == wants_greater {
                        intervals.push(interval);
                    }
                    break;
                }
            }
            let with_value = with_equal && offset + 1 == bound.columns;
            let edge = |includes: bool| if includes { Some(equal.clone()) } else { prefix_successor(&equal) };
            if wants_greater == (column.order == Order::Ascending) {
                // Nothing lies behind the greatest value.
                let Some(lower) = edge(with_value) else { continue };
                interval.lower = lower;
            } else {
                interval.upper = edge(!with_value);
            }
            intervals.push(interval);
        }
        Self::joined(intervals)
    }

    /// Orders disjoint intervals, and joins those that meet.
    fn joined(mut intervals: Vec<Interval>) -> Self {
        intervals.retain(|interval| !interval.is_empty());
        intervals.sort_unstable_by(|one, other| one.lower.cmp(&other.lower));
        intervals.dedup_by(|next, last| {
            let meet = last.upper.as_ref() == Some(&next.lower);
            if meet {
                last.upper = next.upper.take();
            }
            meet
        });
        Self(intervals)
    }

    fn and(&self, other: &Self) -> Self {
        let both = self.0.iter().flat_map(|one| other.0.iter().map(move |other| one.and(other)));
        Self(both.filter(|interval| !interval.is_empty()).collect())
    }

    /// The ranges of keys of a partition that start with `prefix` and go on like this, in ascending order.
    pub fn ranges<'a>(&'a self, prefix: &'a [u8], partition: &'a [u8]) -> impl Iterator<Item = KeyRange> + 'a {
        self.0.iter().map(move |interval| {
            let upper = match &interval.upper {
                Some(upper) => Some([prefix, upper].concat()),
                None => prefix_successor(prefix),
            };
            KeyRange {
                lower: Included([prefix, interval.lower.as_slice()].concat()),
                upper: upper.map_or(Unbounded, Excluded),
                partition: Some(partition.to_vec()),
            }
        })
    }
}
