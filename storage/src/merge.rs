//! Merging sorted inputs into one, the newest version of each key winning.

use crate::error::Result;
use crate::heap::{heapify, sift_down};
use crate::row::{Cell, CellTimes, RowHeader, RowView};

/// In which order keys are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Ascending keys.
    Forward,
    /// Descending keys.
    Backward,
}

/// A position in a sorted input. The [`RowView`] methods read the row at the position, and may be called
/// while [`Cursor::key`] is `Some`.
pub trait Cursor: RowView {
    /// Key at the position; `None` past the end.
    fn key(&self) -> Option<&[u8]>;

    /// Moves to the next key.
    ///
    /// # Errors
    /// Whatever reading the input can fail with.
    fn advance(&mut self) -> Result<()>;
}

/// One sorted stream of many. Each key shows once: the row of the first input, in the order given, that has it.
pub struct Merge<C> {
    cursors: Vec<C>,
    /// A binary heap of indexes into `cursors` that have a key; the next one to show is at 0.
    heap: Vec<usize>,
    direction: Direction,
    /// Whether the cursor at the top of the heap was shown.
    shown: bool,
}

impl<C: Cursor> Merge<C> {
    /// Merges `cursors`, of which the first has the highest precedence. All of them read in `direction`.
    pub fn new(cursors: Vec<C>, direction: Direction) -> Self {
        let mut heap = (0..cursors.len()).filter(|index| cursors[*index].key().is_some()).collect::<Vec<_>>();
        heapify(&mut heap, |a, b| before(&cursors, direction, a, b));
        Merge { cursors, heap, direction, shown: false }
    }

    /// The winner of the next key, or `None` at the end. The rows it wins over are passed over.
    ///
    /// # Errors
    /// Whatever advancing an input can fail with; the merge must not be used afterwards.
    #[allow(clippy::should_implement_trait)] // lends its cursor, which an Iterator cannot
    pub fn next(&mut self) -> Result<Option<&C>> {
        if std::mem::take(&mut self.shown) {
            self.advance(0)?;
        }
        let Some(&winner) = self.heap.first() else {
            return Ok(None);
        };
        while let Some(loser) = self.equal_to_top() {
            self.advance(loser)?;
        }
        self.shown = true;
        Ok(self.cursors.get(winner))
    }

    /// Index of the input, as given to [`Merge::new`], whose row [`Merge::next`] gave last.
    pub fn winner(&self) -> Option<usize> {
        self.heap.first().copied().filter(|_| self.shown)
    }

    /// The input whose row [`Merge::next`] gave last.
    pub fn current(&self) -> Option<&C> {
        self.cursors.get(self.winner()?)
    }

    /// The inputs, where they stand.
    pub fn cursors(&self) -> &[C] {
        &self.cursors
    }

    /// Gives the inputs back, where they stand.
    pub fn into_cursors(self) -> Vec<C> {
        self.cursors
    }

    /// Heap position of a child of the top that has the top's key.
    fn equal_to_top(&self) -> Option<usize> {
        let key = self.key(0);
        (1..self.heap.len().min(3)).find(|at| self.key(*at) == key)
    }

    fn key(&self, at: usize) -> &[u8] {
        self.cursors[self.heap[at]].key().unwrap_or_default()
    }

    fn advance(&mut self, at: usize) -> Result<()> {
        let cursor = &mut self.cursors[self.heap[at]];
        cursor.advance()?;
        if cursor.key().is_none() {
            self.heap.swap_remove(at);
        }
        sift_down(&mut self.heap, at, |a, b| before(&self.cursors, self.direction, a, b));
        Ok(())
    }
}

/// Whether cursor `a` comes before `b`: by key, of equal keys the one of higher precedence.
fn before<C: Cursor>(cursors: &[C], direction: Direction, a: usize, b: usize) -> bool {
    let order = cursors[a].key().cmp(&cursors[b].key());
    let order = if direction == Direction::Backward { order.reverse() } else { order };
    order.then(a.cmp(&b)).is_lt()
}

impl<V: RowView + ?Sized> RowView for Box<V> {
    fn header(&self) -> &RowHeader {
        (**self).header()
    }

    fn cell(&self, attnum: u16) -> Result<Cell<'_>> {
        (**self).cell(attnum)
    }

    fn cell_times(&self, attnum: u16) -> Result<Option<CellTimes>> {
        (**self).cell_times(attnum)
    }

    fn range_end(&self) -> Option<&[u8]> {
        (**self).range_end()
    }
}

impl<C: Cursor + ?Sized> Cursor for Box<C> {
    fn key(&self) -> Option<&[u8]> {
        (**self).key()
    }

    fn advance(&mut self) -> Result<()> {
        (**self).advance()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{RowBuilder, RowKind};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    struct Sorted {
        rows: Vec<(Vec<u8>, RowBuilder)>,
        at: usize,
    }

    impl Sorted {
        fn row(&self) -> &RowBuilder {
            &self.rows[self.at].1
        }
    }

    impl RowView for Sorted {
        fn header(&self) -> &RowHeader {
            self.row().header()
        }
        fn cell(&self, attnum: u16) -> Result<Cell<'_>> {
            self.row().cell(attnum)
        }
        fn cell_times(&self, attnum: u16) -> Result<Option<CellTimes>> {
            self.row().cell_times(attnum)
        }
        fn range_end(&self) -> Option<&[u8]> {
            self.row().range_end()
        }
    }

    impl Cursor for Sorted {
        fn key(&self) -> Option<&[u8]> {
            self.rows.get(self.at).map(|(key, _)| &key[..])
        }
        fn advance(&mut self) -> Result<()> {
            self.at += 1;
            Ok(())
        }
    }

    fn row(row_id: u64) -> RowBuilder {
        RowBuilder::new(RowHeader { kind: RowKind::Row, row_id, write_time: 0, marker: true, expiry: None, natts: 0 })
    }

    proptest! {
        #[test]
        fn a_merge_shows_each_key_once_and_the_first_input_wins(
            inputs in prop::collection::vec(prop::collection::btree_set(prop::collection::vec(0u8..4, 0..4), 0..20), 0..7),
            backward: bool,
        ) {
            let mut model = BTreeMap::new();
            let mut cursors = Vec::new();
            let mut id = 0;
            for (index, keys) in inputs.iter().enumerate() {
                let mut rows = Vec::new();
                for key in keys {
                    id += 1;
                    model.entry(key.clone()).or_insert((index, id));
                    rows.push((key.clone(), row(id)));
                }
                if backward {
                    rows.reverse();
                }
                cursors.push(Box::new(Sorted { rows, at: 0 }) as Box<dyn Cursor>);
            }
            let mut expected: Vec<_> = model.into_iter().collect();
            let direction = if backward { Direction::Backward } else { Direction::Forward };
            if backward {
                expected.reverse();
            }
            let mut merge = Merge::new(cursors, direction);
            prop_assert_eq!(merge.winner(), None);
            let mut found = Vec::new();
            while let Some(cursor) = merge.next().unwrap() {
                let (key, id) = (cursor.key().unwrap().to_vec(), cursor.header().row_id);
                found.push((key, (merge.winner().unwrap(), id)));
            }
            prop_assert_eq!(found, expected);
            prop_assert!(merge.next().unwrap().is_none());
        }
    }
}
