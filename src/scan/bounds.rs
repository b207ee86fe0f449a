//! The bounds of a scan: which of a relation's clauses narrow what is read, and what that says about its order.

use pgrx::pg_sys::{self, Node, NodeTag};

use super::clause::{Bound, Subject, Target, Test};
use crate::catalog::TableKey;
use crate::pg::nodes::{downcast, pointers};

/// The clauses that narrow a scan.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    /// One "=" or "= ANY" for every partition column in key order, or nothing.
    pub partition: Vec<Bound>,
    /// "=" or "= ANY" for the leading clustering columns, in key order.
    pub clustering: Vec<Bound>,
    /// Inequalities of the clustering column after those.
    pub slice: Vec<Bound>,
    /// Comparisons of the token, where the partition is not bound.
    pub token: Vec<Bound>,
}

impl Bounds {
    /// Chooses from the clauses of `restrictions` (a list of RestrictInfo).
    ///
    /// # Safety
    /// `restrictions` is null or a live list of this planner run.
    pub unsafe fn choose(subject: &Subject<'_>, restrictions: *const pg_sys::List) -> Self {
        // SAFETY: passed on.
        let found = unsafe { collect(subject, restrictions) };
        let key = subject.key;
        // One value is better than several; of two alike the first is taken, the other stays a filter.
        let equality = |index: usize| {
            let on = |test| found.iter().find(|bound| bound.target == Target::Column(index) && bound.test == test);
            on(Test::Equal).or_else(|| on(Test::Any)).copied()
        };
        let partition: Option<Vec<Bound>> = (0..key.partition_columns).map(equality).collect();
        let Some(partition) = partition.filter(|bounds| !bounds.is_empty()) else {
            let token = found.into_iter().filter(|bound| bound.target == Target::Token).collect();
            return Self { token, ..Self::default() };
        };
        let clustering: Vec<Bound> = (key.partition_columns..key.columns.len()).map_while(equality).collect();
        let next = Target::Column(key.partition_columns + clustering.len());
        let slice = found.iter().filter(|bound| bound.target == next && !bound.test.is_equality()).copied().collect();
        Self { partition, clustering, slice, token: Vec::new() }
    }

    /// Whether whole partitions are named.
    pub fn has_partition(&self) -> bool {
        !self.partition.is_empty()
    }

    /// Whether less than the whole table is read.
    pub fn is_bound(&self) -> bool {
        self.has_partition() || !self.token.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Bound> {
        self.partition.iter().chain(&self.clustering).chain(&self.slice).chain(&self.token)
    }

    /// Number of key ranges read if every array has `array_length` elements.
    pub fn range_count(&self, array_length: f64) -> f64 {
        self.iter().filter(|bound| bound.test == Test::Any).fold(1.0, |count, _| count * array_length)
    }

    /// The key columns, by index, that the rows of the scan come ordered by (declared order); those with a single
    /// value are left out. Empty if the scan reads several partitions.
    pub fn ordered_columns(&self, key: &TableKey) -> Vec<usize> {
        if !self.has_partition() || self.partition.iter().any(|bound| bound.test != Test::Equal) {
            return Vec::new();
        }
        self.ordered_clustering(key)
    }

    /// As `ordered_columns`, for the rows of each partition by itself.
    pub fn ordered_clustering(&self, key: &TableKey) -> Vec<usize> {
        let single = |index: &usize| {
            let bound = self.clustering.get(index - key.partition_columns);
            bound.is_some_and(|bound| bound.test == Test::Equal)
        };
        (key.partition_columns..key.columns.len())
            .filter(|index| !single(index))
            .take_while(|index| key.columns.get(*index).is_some_and(|column| column.bytewise))
            .collect()
    }
}

/// Every clause that says something about a key column or the token.
///
/// # Safety
/// `restrictions` is null or a live list of RestrictInfo.
pub unsafe fn collect(subject: &Subject<'_>, restrictions: *const pg_sys::List) -> Vec<Bound> {
    // SAFETY: passed on.
    unsafe { clauses(restrictions) }.filter_map(|clause| unsafe { subject.bound(clause) }).collect()
}

/// The clauses of a list of RestrictInfo that are tested for each row.
///
/// # Safety
/// `restrictions` is null or a live list of RestrictInfo.
pub unsafe fn clauses(restrictions: *const pg_sys::List) -> impl Iterator<Item = *mut Node> {
    // SAFETY: a RestrictInfo's clause lives as long as itself.
    unsafe {
        pointers::<Node>(restrictions).filter_map(|node| {
            let restriction = downcast::<pg_sys::RestrictInfo>(node, NodeTag::T_RestrictInfo)?;
            (!restriction.pseudoconstant).then_some(restriction.clause.cast())
        })
    }
}
