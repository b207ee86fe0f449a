//! The pages and rows of a segment.

use std::rc::Rc;

use cass_storage::page::Page;
use cass_storage::segment::check::{check_segment, CheckOptions, CheckedRow, Fault, Part, Visitor};
use cass_storage::segment::{Column, PageSource, SegmentReader, SegmentSummary};
use cass_storage::StorageError;

use super::fault::{Faults, Kind};
use super::row_ids::RowIds;
use super::{sort_directory, sort_memory, version, Check};
use crate::pg::subtransaction::caught;
use crate::read::TableState;
use crate::segment::list::SegmentEntry;
use crate::segment::{relation, PageGuard, RunSource};

/// Pages of a run, with PostgreSQL's errors as results. A page counts as right if that copy of it is that a reader gets.
struct CheckedRun {
    source: RunSource,
}

impl CheckedRun {
    fn buffered(&self, page_no: u32) -> Result<Rc<Page>, StorageError> {
        match caught(|| self.source.read_buffer(page_no)) {
            Ok(result) => result,
            Err(error) => Err(StorageError::Source(error.text)),
        }
    }
}

impl PageSource for CheckedRun {
    type Guard<'a> = PageGuard<'a>;

    fn page(&self, page_no: u32) -> Result<PageGuard<'_>, StorageError> {
        pgrx::check_for_interrupts!();
        match self.source.mapped(page_no) {
            Some(page) => Ok(PageGuard::Mapped(page)),
            None => self.buffered(page_no).map(PageGuard::Copied),
        }
    }

    fn will_need(&self, first: u32, count: u32) {
        self.source.will_need(first, count);
    }
}

/// Hears of the faults and rows of one segment.
struct Rows<'a> {
    state: &'a TableState,
    entry: &'a SegmentEntry,
    faults: &'a mut Faults,
    row_ids: &'a mut RowIds,
}

impl Rows<'_> {
    fn tell(&mut self, kind: Kind, page_no: Option<u32>, detail: impl Into<String>) {
        let block = page_no.map(|page_no| self.entry.first_block.saturating_add(page_no));
        self.faults.add_in_segment(kind, relation::oid(self.state.rel), self.entry.run_id, block, detail);
    }
}

impl Visitor for Rows<'_> {
    fn fault(&mut self, fault: Fault) {
        let kind = match fault.part {
            Part::Page => Kind::Page,
            Part::Tree => Kind::Tree,
            Part::Leaf => Kind::Leaf,
            Part::RowIds => Kind::RowIdMap,
            Part::Filter => Kind::Filter,
            Part::Footer => Kind::Footer,
        };
        let detail = match fault.page_no {
            Some(page_no) => format!("page {page_no} of the segment: {}", fault.what),
            None => fault.what,
        };
        self.tell(kind, fault.page_no, detail);
    }

    fn row(&mut self, row: &CheckedRow<'_>) -> Result<(), StorageError> {
        pgrx::check_for_interrupts!();
        let place = version::Place::Segment { partition_len: row.partition_len };
        if let Err(fault) = version::check(self.state, place, row.key, row.row) {
            let key = version::describe_key(self.state, row.key);
            let detail = format!("row {} of the leaf in page {} ({key}): {fault}", row.position, row.page_no);
            self.tell(Kind::Row, Some(row.page_no), detail);
        }
        self.row_ids.push(row.row.header().row_id, row.key, self.entry.run_id)
    }
}

impl Check<'_> {
    /// Checks the pages of a segment that lies inside the table's file.
    pub(super) fn segment(&mut self, entry: &SegmentEntry, row_ids: &mut RowIds) {
        let run = CheckedRun { source: RunSource::open(self.state.rel, entry) };
        let options = CheckOptions { memory_bytes: sort_memory(), temp_directory: sort_directory(self.state) };
        let mut rows = Rows { state: self.state, entry, faults: self.faults, row_ids };
        let checked = match check_segment(&run, entry.page_count, &options, &mut rows) {
            Ok(checked) => checked,
            Err(error) => self.state.raise(&error),
        };
        if let Some(summary) = checked.summary {
            for detail in differences(entry, &summary) {
                rows.tell(Kind::List, None, detail);
            }
            let columns = SegmentReader::open(run, entry.page_count).map(|reader| reader.columns().to_vec());
            for detail in columns.iter().flat_map(|columns| misfits(self.state, columns)) {
                rows.tell(Kind::Footer, Some(summary.footer_page), detail);
            }
        }
    }
}

/// What the list says otherwise than the footer.
fn differences(entry: &SegmentEntry, summary: &SegmentSummary) -> Vec<String> {
    let numbers =
        [("rows", entry.row_count, summary.row_count), ("tombstones", entry.tombstone_count, summary.tombstone_count)];
    let mut found: Vec<String> = numbers
        .into_iter()
        .filter(|(_, listed, in_footer)| listed != in_footer)
        .map(|(what, listed, in_footer)| format!("the list says {listed} {what} of it, and its footer {in_footer}"))
        .collect();
    for (what, listed, in_footer) in
        [("smallest", &entry.min_key, &summary.min_key), ("largest", &entry.max_key, &summary.max_key)]
    {
        if listed != in_footer {
            let (listed, in_footer) = (super::hex(listed), super::hex(in_footer));
            found.push(format!("the list says that {listed} is its {what} key, and its footer {in_footer}"));
        }
    }
    found
}

/// Columns of a segment that the table does not have or has otherwise.
fn misfits(state: &TableState, columns: &[Column]) -> Vec<String> {
    let mut found = Vec::new();
    for column in columns {
        match state.table.columns.get(usize::from(column.attnum).wrapping_sub(1)) {
            None => found.push(format!("the segment has a column {}, and the table does not", column.attnum)),
            Some(of_table) if !of_table.dropped && of_table.class != column.class => found.push(format!(
                "the segment stores column {} as {:?}, and the table as {:?}",
                column.attnum, column.class, of_table.class
            )),
            Some(_) => {}
        }
    }
    found
}
