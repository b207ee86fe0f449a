//! Asking for pages before they are needed, while a cursor walks from leaf to leaf.
//!
//! A read of one partition needs single pages from all over a run, so that a source had better not read on by itself; a
//! walk over many leaves needs pages that lie side by side. Who walks says so here: a few pages first, then more and more.

use super::PageSource;
use crate::merge::Direction;

/// Pages asked for at the first step of a walk.
const FIRST: u32 = 8;
/// Pages asked for at once in a long walk: 1 MB.
const MOST: u32 = 128;

/// How far ahead of a walk pages have been asked for.
pub(super) struct ReadAhead {
    /// Pages to ask for next time.
    window: u32,
    /// The first page (walking backward: the page behind the last one) that was not asked for.
    edge: Option<u32>,
}

impl Default for ReadAhead {
    fn default() -> Self {
        ReadAhead { window: FIRST, edge: None }
    }
}

impl ReadAhead {
    /// Asks for pages when the walk, on its way to `page_no`, comes near the edge of those asked for.
    pub(super) fn step<S: PageSource>(&mut self, source: &S, page_no: u32, direction: Direction) {
        let near = self.window / 4;
        let (from, to) = match (direction, self.edge) {
            (Direction::Forward, Some(edge)) if page_no.saturating_add(near) < edge => return,
            (Direction::Backward, Some(edge)) if page_no > edge.saturating_add(near) => return,
            (Direction::Forward, edge) => {
                let from = edge.map_or(page_no, |edge| edge.max(page_no));
                (from, from.saturating_add(self.window))
            }
            (Direction::Backward, edge) => {
                let behind = page_no.saturating_add(1);
                let to = edge.map_or(behind, |edge| edge.min(behind));
                (to.saturating_sub(self.window), to)
            }
        };
        source.will_need(from, to - from);
        self.edge = Some(if direction == Direction::Forward { to } else { from });
        self.window = (self.window * 2).min(MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Result, StorageError};
    use crate::page::Page;
    use std::cell::RefCell;

    /// Notes what it is asked for.
    #[derive(Default)]
    struct Listener {
        asked: RefCell<Vec<(u32, u32)>>,
    }

    impl PageSource for Listener {
        type Guard<'a> = &'a Page;

        fn page(&self, page_no: u32) -> Result<&Page> {
            Err(StorageError::damaged_at(page_no, "there are no pages here"))
        }

        fn will_need(&self, first: u32, count: u32) {
            self.asked.borrow_mut().push((first, count));
        }
    }

    fn asked_for(pages: impl Iterator<Item = u32>, direction: Direction) -> Vec<(u32, u32)> {
        let (source, mut ahead) = (Listener::default(), ReadAhead::default());
        pages.for_each(|page_no| ahead.step(&source, page_no, direction));
        source.asked.into_inner()
    }

    #[test]
    fn a_long_walk_asks_for_each_page_once_before_it_is_needed() {
        let asked = asked_for(100..400, Direction::Forward);
        assert_eq!(asked[..4], [(100, 8), (108, 16), (124, 32), (156, 64)]);
        assert!(asked.windows(2).all(|pair| pair[0].0 + pair[0].1 == pair[1].0), "{asked:?}");
        assert!(asked.last().is_some_and(|(first, count)| first + count >= 400));
        assert!(asked.len() < 10, "{asked:?}");
    }

    #[test]
    fn a_walk_backward_asks_for_what_lies_before() {
        let asked = asked_for((0..300).rev(), Direction::Backward);
        assert_eq!(asked[..3], [(292, 8), (276, 16), (244, 32)]);
        assert_eq!(asked.last().map(|(first, _)| *first), Some(0));
        assert!(asked.windows(2).all(|pair| pair[1].0 + pair[1].1 == pair[0].0), "{asked:?}");
    }

    #[test]
    fn a_leaf_longer_than_what_was_asked_for_is_no_trouble() {
        assert_eq!(asked_for([0, 50, 51].into_iter(), Direction::Forward), [(0, 8), (50, 16)]);
    }
}
