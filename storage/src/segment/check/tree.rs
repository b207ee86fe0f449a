//! Going down a tree from its root to every leaf, with the bounds that separators set.

use super::{hex, Check, Part};
use crate::error::{Result, StorageError};
use crate::page::PageKind;
use crate::segment::inner::MAX_HEIGHT;
use crate::segment::pages::content_of;
use crate::segment::walk::{InnerPage, Root};
use crate::segment::PageSource;

/// A page of a tree, and what its parent says of it.
pub(super) struct Place {
    pub(super) page_no: u32,
    /// Level of the page; 0 is a leaf.
    level: u8,
    /// Keys under the page are not less.
    pub(super) lower: Vec<u8>,
    /// Keys under the page are less; `None` if there is no bound.
    pub(super) upper: Option<Vec<u8>>,
}

impl Place {
    pub(super) fn root(root: Root) -> Self {
        Place { page_no: root.page_no, level: root.height, lower: Vec::new(), upper: None }
    }
}

/// Which of a segment's trees.
#[derive(Clone, Copy)]
pub(super) struct Tree {
    pub(super) inner: PageKind,
    pub(super) part: Part,
}

impl<S: PageSource> Check<'_, S> {
    /// Calls `leaf` with each leaf under `root`, in order.
    pub(super) fn descend(
        &mut self,
        tree: Tree,
        root: Root,
        leaf: &mut dyn FnMut(&mut Self, &Place) -> Result<()>,
    ) -> Result<()> {
        if root.height > MAX_HEIGHT {
            self.fault(tree.part, Some(root.page_no), "the tree is too high");
            self.lost(tree);
            return Ok(());
        }
        if !self.meet(tree.part, root.page_no, root.page_no) {
            self.lost(tree);
            return Ok(());
        }
        self.visit(tree, &Place::root(root), leaf)
    }

    fn visit(
        &mut self,
        tree: Tree,
        place: &Place,
        leaf: &mut dyn FnMut(&mut Self, &Place) -> Result<()>,
    ) -> Result<()> {
        if place.level == 0 {
            return leaf(self, place);
        }
        let children = match children_of(self.source, tree.inner, place) {
            Ok(children) => children,
            Err(error) => {
                self.error(tree.part, place.page_no, &error);
                self.lost(tree);
                return Ok(());
            }
        };
        self.check_separators(tree, place, &children);
        for (index, (separator, page_no)) in children.iter().enumerate() {
            if !self.meet(tree.part, *page_no, place.page_no) {
                self.lost(tree);
                continue;
            }
            let lower = if index == 0 { place.lower.clone() } else { separator.clone() };
            let upper = children.get(index + 1).map(|(next, _)| next.clone()).or_else(|| place.upper.clone());
            self.visit(tree, &Place { page_no: *page_no, level: place.level - 1, lower, upper }, leaf)?;
        }
        Ok(())
    }

    fn check_separators(&mut self, tree: Tree, place: &Place, children: &[(Vec<u8>, u32)]) {
        let separators: Vec<&[u8]> = children.iter().skip(1).map(|(separator, _)| separator.as_slice()).collect();
        if let Some(pair) = separators.windows(2).find(|pair| pair[0] >= pair[1]) {
            let what = format!("separator {} is followed by {}", hex(pair[0]), hex(pair[1]));
            self.fault(tree.part, Some(place.page_no), what);
        }
        let above =
            separators.iter().find(|separator| place.upper.as_deref().is_some_and(|upper| **separator >= upper));
        if let Some(separator) = above.or_else(|| separators.iter().find(|separator| **separator <= &place.lower[..])) {
            let what = format!("separator {} is outside the bounds that the page above sets", hex(separator));
            self.fault(tree.part, Some(place.page_no), what);
        }
        if let Some(pair) = children.windows(2).find(|pair| pair[0].1 >= pair[1].1) {
            let what = format!("child page {} is followed by page {}", pair[0].1, pair[1].1);
            self.fault(tree.part, Some(place.page_no), what);
        }
    }

    /// Notes that a part of a tree was not read.
    fn lost(&mut self, tree: Tree) {
        self.all_led_to = false;
        if tree.part == Part::Tree {
            self.complete = false;
        }
    }
}

/// Separators and pages of the children of an inner page.
fn children_of<S: PageSource>(source: &S, kind: PageKind, place: &Place) -> Result<Vec<(Vec<u8>, u32)>> {
    let page = source.page(place.page_no)?;
    let inner = InnerPage::parse(content_of(&page, kind, place.page_no)?, place.level)?;
    (0..inner.count)
        .map(|index| Ok((inner.separator(index)?, inner.child(index)?)))
        .collect::<Result<Vec<_>>>()
        .map_err(|error| match error {
            StorageError::Damaged { page_no: None, what } => StorageError::damaged_at(place.page_no, what),
            other => other,
        })
}
