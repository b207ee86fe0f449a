//! The rows of a leaf: the order of their keys, and that each of them can be read.

use super::tree::{Place, Tree};
use super::{hex, Check, CheckedRow, Part, Rows};
use crate::error::Result;
use crate::page::PageKind;
use crate::row::{self, Cell, CellTimes, RowHeader, RowView};
use crate::segment::footer::Footer;
use crate::segment::leaf::{Extras, Leaf};
use crate::segment::leaf_buffer::Pushed;
use crate::segment::pages::content_of;
use crate::segment::{leaf_pages, Column, PageSource};

/// A row of a leaf.
struct LeafRow<'a> {
    leaf: &'a Leaf,
    position: usize,
    columns: &'a [Column],
    header: RowHeader,
    extras: Option<Extras>,
}

impl<'a> LeafRow<'a> {
    fn read(leaf: &'a Leaf, position: usize, columns: &'a [Column]) -> Result<Self> {
        let (header, flags) = leaf.header(position)?;
        let extras = leaf.extras(position, flags, header.write_time)?;
        Ok(LeafRow { leaf, position, columns, header, extras })
    }

    /// What the statistics count of the row; reads all its cells.
    fn measure(&self, key: &[u8]) -> Result<Pushed> {
        let mut bytes = key.len();
        for (index, column) in self.columns.iter().enumerate() {
            if let Cell::Value(value) | Cell::External(value) = self.leaf.cell(self.position, index, column)? {
                bytes += value.len();
            }
        }
        let mut cell_expiries: Option<(i64, i64)> = None;
        if let Some(extras) = &self.extras {
            let mut encoded = Vec::new();
            row::put_extras(&mut encoded, &extras.times, self.header.write_time, extras.range_end.as_deref());
            bytes += encoded.len();
            for expiry in extras.times.iter().filter_map(|(_, times)| times.expiry) {
                let (low, high) = cell_expiries.unwrap_or((expiry, expiry));
                cell_expiries = Some((low.min(expiry), high.max(expiry)));
            }
        }
        Ok(Pushed { bytes, cell_expiries })
    }
}

impl RowView for LeafRow<'_> {
    fn header(&self) -> &RowHeader {
        &self.header
    }

    fn cell(&self, attnum: u16) -> Result<Cell<'_>> {
        match self.columns.binary_search_by_key(&attnum, |column| column.attnum) {
            Ok(index) => self.leaf.cell(self.position, index, &self.columns[index]),
            Err(_) => Ok(Cell::Absent),
        }
    }

    fn cell_times(&self, attnum: u16) -> Result<Option<CellTimes>> {
        let times = self.extras.iter().flat_map(|extras| &extras.times);
        Ok(times.into_iter().find(|(number, _)| *number == attnum).map(|(_, times)| *times))
    }

    fn range_end(&self) -> Option<&[u8]> {
        self.extras.as_ref()?.range_end.as_deref()
    }
}

impl<S: PageSource> Check<'_, S> {
    /// Reads all leaves in key order.
    pub(super) fn key_tree(&mut self, footer: &Footer, rows: &mut Rows) -> Result<()> {
        let Some(root) = footer.root else { return Ok(()) };
        let tree = Tree { inner: PageKind::Inner, part: Part::Tree };
        self.descend(tree, root, &mut |check, place| check.leaf(footer, place, rows))
    }

    fn leaf(&mut self, footer: &Footer, place: &Place, rows: &mut Rows) -> Result<()> {
        let page_no = place.page_no;
        if rows.last_leaf.is_some_and(|last| last >= page_no) {
            self.fault(Part::Tree, Some(page_no), "the leaf lies before the one whose keys are less");
        }
        rows.last_leaf = Some(page_no);
        let leaf = match Leaf::read(self.source, page_no, &footer.columns, Vec::new()) {
            Ok(leaf) => leaf,
            Err(error) => {
                self.error(Part::Leaf, page_no, &error);
                (self.complete, self.all_led_to) = (false, false);
                return Ok(());
            }
        };
        self.meet_continuations(page_no);
        let mut key = Vec::new();
        for position in 0..leaf.rows() {
            let read = leaf.key(position, &mut key).and_then(|()| {
                let row = LeafRow::read(&leaf, position, &footer.columns)?;
                row.measure(&key).map(|measured| (row, measured))
            });
            match read {
                Ok((row, measured)) => self.leaf_row(footer, place, &row, &key, &measured, rows)?,
                Err(error) => {
                    self.error(Part::Leaf, page_no, &error);
                    self.complete = false;
                }
            }
        }
        Ok(())
    }

    fn leaf_row(
        &mut self,
        footer: &Footer,
        place: &Place,
        row: &LeafRow<'_>,
        key: &[u8],
        measured: &Pushed,
        rows: &mut Rows,
    ) -> Result<()> {
        let (page_no, position) = (place.page_no, row.position);
        if rows.last_key.as_deref().is_some_and(|last| last >= key) {
            let what = format!("key {} of row {position} is not greater than the one before it", hex(key));
            self.fault(Part::Leaf, Some(page_no), what);
        }
        let too_large = place.upper.as_deref().is_some_and(|upper| key >= upper);
        if too_large || key < &place.lower[..] {
            let what = format!("key {} of row {position} is outside the bounds that the inner pages set", hex(key));
            self.fault(Part::Leaf, Some(page_no), what);
        }
        let partition_len = row.leaf.partition_len(position);
        let partition = key.get(..partition_len).unwrap_or_default();
        if rows.statistics.push(key, partition.len(), &row.header, measured) {
            self.ask_filter(footer, partition, page_no);
        }
        if row.header.row_id != 0 {
            let mut entry = [0; 14];
            entry[..8].copy_from_slice(&row.header.row_id.to_be_bytes());
            entry[8..12].copy_from_slice(&page_no.to_be_bytes());
            entry[12..].copy_from_slice(&(position as u16).to_be_bytes());
            rows.row_ids.push(&entry, &[])?;
        }
        match &mut rows.last_key {
            Some(last) => {
                last.clear();
                last.extend_from_slice(key);
            }
            none => *none = Some(key.to_vec()),
        }
        self.visitor.row(&CheckedRow { page_no, position, key, partition_len, row })
    }

    /// Notes the further pages of a leaf that has been read.
    fn meet_continuations(&mut self, page_no: u32) {
        let span = self
            .source
            .page(page_no)
            .ok()
            .and_then(|page| content_of(&page, PageKind::Leaf, page_no).and_then(leaf_pages::span).ok());
        for next in 1..u32::from(span.unwrap_or(1)) {
            self.meet(Part::Leaf, page_no.saturating_add(next), page_no);
        }
    }
}
