//! The row id map against the rows: each id leads to its leaf, and no other id leads anywhere.

use super::tree::{Place, Tree};
use super::{Check, Part};
use crate::error::Result;
use crate::page::PageKind;
use crate::segment::footer::Footer;
use crate::segment::pages::content_of;
use crate::segment::row_ids::{entries_in_page, MapEntry};
use crate::segment::PageSource;
use crate::sort::{ExternalSorter, SortedRows};

/// Row ids of the rows, ascending, each with the first page of its leaf.
struct Ids {
    sorted: SortedRows,
    current: Option<(u64, u32)>,
    /// Ids that came twice, with the leaves of both rows.
    twice: Vec<(u64, u32, u32)>,
}

impl Ids {
    fn of(sorter: ExternalSorter) -> Result<Ids> {
        let mut ids = Ids { sorted: sorter.finish()?, current: None, twice: Vec::new() };
        ids.advance()?;
        Ok(ids)
    }

    fn advance(&mut self) -> Result<()> {
        let before = self.current;
        loop {
            self.current = self.sorted.next()?.and_then(|(entry, _)| {
                let (id, rest) = entry.split_first_chunk::<8>()?;
                Some((u64::from_be_bytes(*id), u32::from_be_bytes(*rest.first_chunk::<4>()?)))
            });
            match (before, self.current) {
                (Some((last, leaf)), Some((id, other))) if last == id => self.twice.push((id, leaf, other)),
                _ => return Ok(()),
            }
        }
    }
}

/// The map's side of the comparison.
struct Comparison {
    ids: Ids,
    /// End of the ids of the run read last.
    end: u64,
    /// Whether all rows were read, so that an id without a row is a fault.
    complete: bool,
}

impl<S: PageSource> Check<'_, S> {
    pub(super) fn row_id_map(&mut self, footer: &Footer, sorter: ExternalSorter) -> Result<()> {
        let mut comparison = Comparison { ids: Ids::of(sorter)?, end: 0, complete: self.complete };
        if let Some(root) = footer.row_ids {
            let tree = Tree { inner: PageKind::RowIdInner, part: Part::RowIds };
            self.descend(tree, root, &mut |check, place| check.map_page(place, &mut comparison))?;
        }
        self.missing_ids(&mut comparison, u64::MAX)?;
        if let Some((id, ..)) = comparison.ids.current.filter(|_| comparison.complete && self.all_led_to) {
            self.fault(Part::RowIds, None, format!("row id {id} is not in the map"));
        }
        for (id, leaf, other) in comparison.ids.twice {
            let what = format!("row id {id} is given to two rows, in the leaves of pages {leaf} and {other}");
            self.fault(Part::RowIds, Some(other), what);
        }
        Ok(())
    }

    fn map_page(&mut self, place: &Place, comparison: &mut Comparison) -> Result<()> {
        let page_no = place.page_no;
        let mut entries = Vec::new();
        let read = self.source.page(page_no).and_then(|page| {
            let content = content_of(&page, PageKind::RowIds, page_no)?;
            entries_in_page(content, &mut |entry| entries.push(MapEntry { ..*entry }))
        });
        if let Err(error) = read {
            self.error(Part::RowIds, page_no, &error);
            comparison.complete = false;
            return Ok(());
        }
        for entry in entries {
            self.map_entry(place, &entry, comparison)?;
        }
        Ok(())
    }

    fn map_entry(&mut self, place: &Place, entry: &MapEntry, comparison: &mut Comparison) -> Result<()> {
        let (page_no, first) = (Some(place.page_no), entry.first);
        if entry.directory.is_some_and(|directory| directory != first) {
            self.fault(Part::RowIds, page_no, format!("the page's directory has another first id than {first}"));
        }
        let key = first.to_be_bytes();
        if key[..] < place.lower[..] || place.upper.as_deref().is_some_and(|upper| key[..] >= *upper) {
            self.fault(Part::RowIds, page_no, format!("row id {first} is outside the bounds that the inner pages set"));
        }
        let Some(end) = first.checked_add(entry.count).filter(|end| first >= comparison.end && *end > first) else {
            self.fault(Part::RowIds, page_no, format!("the ids from {first} on are out of order"));
            comparison.complete = false;
            return Ok(());
        };
        comparison.end = end;
        self.missing_ids(comparison, first)?;
        let mut next = first;
        while next < end {
            match comparison.ids.current {
                Some((id, leaf)) if id == next => {
                    if u64::from(leaf) != entry.leaf {
                        let what = format!("row id {id} leads to page {}, and its row lies in page {leaf}", entry.leaf);
                        self.fault(Part::RowIds, page_no, what);
                    }
                    comparison.ids.advance()?;
                    next += 1;
                }
                // A damaged number of ids may be huge: what no row has is passed over at once.
                other => {
                    let known = other.map_or(end, |(id, _)| id.min(end));
                    if comparison.complete {
                        let what = format!("the map has row ids {next} to {}, which no row has", known - 1);
                        self.fault(Part::RowIds, page_no, what);
                    }
                    next = known;
                }
            }
        }
        Ok(())
    }

    /// Tells of rows whose id is less than `end` and not in the map, as far as the map could be read.
    fn missing_ids(&mut self, comparison: &mut Comparison, end: u64) -> Result<()> {
        while let Some((id, leaf)) = comparison.ids.current.filter(|(id, _)| *id < end) {
            if comparison.complete {
                self.fault(Part::RowIds, Some(leaf), format!("row id {id} of this leaf is not in the map"));
            }
            comparison.ids.advance()?;
        }
        Ok(())
    }
}
