//! Checking a segment: every page of its run, and that its parts agree with each other.
//!
//! A reader trusts what the writer promised: that keys ascend, that separators part them, that the filter admits every
//! partition, that the row id map and the summary say what the leaves hold. Here all of it is looked at, and what does not hold
//! is told to a [`Visitor`]. Damage ends nothing: what lies behind an unreadable page is passed over, and what can only be judged
//! by all rows is left out then. Memory is a bit for each page and the sorters' bounds.
//!
//! `pages` notes which pages were met, `tree` goes down both trees, `leaf` reads the rows of a leaf, `row_ids` compares the row id
//! map with them, `summary` the footer.

mod leaf;
mod pages;
mod row_ids;
mod summary;
mod tree;

use super::filter;
use super::footer::Footer;
use super::statistics::Statistics;
use super::{PageSource, SegmentSummary};
use crate::error::{Result, StorageError};
use crate::page::{self, PageKind};
use crate::row::RowView;
use crate::sort::ExternalSorter;
use pages::PageSet;
use std::path::PathBuf;

/// The part of a segment that a fault was found in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// A page by itself: its identity, checksum and kind, or nothing leads to it.
    Page,
    /// An inner page of the key tree, or the order of leaves.
    Tree,
    /// A leaf, or the order of keys.
    Leaf,
    /// The row id map.
    RowIds,
    /// The filter over partitions.
    Filter,
    /// The footer and the summary in it.
    Footer,
}

/// Something that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where it was found.
    pub part: Part,
    /// Page of the run, where one is known.
    pub page_no: Option<u32>,
    /// What does not hold, as a clause without a full stop.
    pub what: String,
}

/// A row version of the segment.
pub struct CheckedRow<'a> {
    /// First page of its leaf.
    pub page_no: u32,
    /// Its place in the leaf, from 0.
    pub position: usize,
    /// Its key.
    pub key: &'a [u8],
    /// Length of the partition's part of the key; 0 if keys have no partitions.
    pub partition_len: usize,
    /// What it says. All its stored cells have been read once without an error.
    pub row: &'a dyn RowView,
}

/// Hears of faults and rows.
pub trait Visitor {
    /// Something does not hold.
    fn fault(&mut self, fault: Fault);

    /// A row that can be read. Rows come in key order, unless a fault has told otherwise.
    ///
    /// # Errors
    /// Ends the check.
    fn row(&mut self, row: &CheckedRow<'_>) -> Result<()>;
}

/// What a check may use.
#[derive(Clone, Debug)]
pub struct CheckOptions {
    /// Memory for sorting row ids, in bytes.
    pub memory_bytes: usize,
    /// Folder for temporary files of the sort.
    pub temp_directory: PathBuf,
}

/// What a check of a segment has found out, apart from faults.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// The summary in the footer, if that can be read.
    pub summary: Option<SegmentSummary>,
    /// Whether every row was read.
    pub complete: bool,
}

/// Checks the run of `page_count` pages that `source` gives.
///
/// # Errors
/// `Io` where the sorter's temporary file fails, and what the visitor returns; damage is told to the visitor.
pub fn check_segment<S: PageSource>(
    source: &S,
    page_count: u32,
    options: &CheckOptions,
    visitor: &mut dyn Visitor,
) -> Result<Checked> {
    let mut check = Check {
        source,
        visitor,
        met: PageSet::new(page_count),
        faulty: PageSet::new(page_count),
        complete: true,
        all_led_to: true,
    };
    check.validate_pages(page_count);
    let footer = match Footer::read(source, page_count) {
        Ok(footer) => footer,
        Err(error) => {
            check.error(Part::Footer, page_count.saturating_sub(1), &error);
            return Ok(Checked::default());
        }
    };
    check.meet_footer(page_count);
    let mut rows = Rows {
        statistics: Statistics::new(),
        last_key: None,
        last_leaf: None,
        row_ids: ExternalSorter::with_directory(options.memory_bytes, &options.temp_directory),
    };
    check.key_tree(&footer, &mut rows)?;
    check.row_id_map(&footer, rows.row_ids)?;
    check.filter_pages(&footer);
    if check.complete {
        let counted = rows.statistics.finish(rows.last_key.as_deref().unwrap_or_default());
        check.compare_summary(&footer, &counted, page_count);
    }
    if check.all_led_to {
        check.report_unmet(page_count);
    }
    Ok(Checked { summary: Some(footer.summary), complete: check.complete })
}

/// A check that is under way.
struct Check<'a, S> {
    source: &'a S,
    visitor: &'a mut dyn Visitor,
    /// Pages that something has led to.
    met: PageSet,
    /// Pages of which damage has been told.
    faulty: PageSet,
    /// Whether all rows were read so far.
    complete: bool,
    /// Whether all that leads to pages could be read so far.
    all_led_to: bool,
}

/// What is gathered of the rows.
struct Rows {
    statistics: Statistics,
    last_key: Option<Vec<u8>>,
    last_leaf: Option<u32>,
    /// Row id, first page of the leaf, and place in the leaf, of all rows that have an id.
    row_ids: ExternalSorter,
}

impl<S: PageSource> Check<'_, S> {
    fn fault(&mut self, part: Part, page_no: Option<u32>, what: impl Into<String>) {
        self.visitor.fault(Fault { part, page_no, what: what.into() });
    }

    /// Tells of damage, once for each page. `page_no` is named where the error names none.
    fn error(&mut self, part: Part, page_no: u32, error: &StorageError) {
        let (page_no, what) = match error {
            StorageError::Damaged { page_no: named, what } => (named.unwrap_or(page_no), (*what).to_owned()),
            other => (page_no, other.to_string()),
        };
        if self.faulty.insert(page_no) {
            self.fault(part, Some(page_no), what);
        }
    }

    /// Notes that something leads to a page. False, with a fault, where something else has done so before or there is no such page.
    fn meet(&mut self, part: Part, page_no: u32, from: u32) -> bool {
        let fresh = self.met.insert(page_no);
        if !fresh {
            let what = if self.met.contains(page_no) {
                format!("it leads to page {page_no}, to which another place leads too")
            } else {
                format!("it leads to page {page_no}, which the run does not have")
            };
            self.fault(part, Some(from), what);
        }
        fresh
    }

    /// Looks at every page by itself.
    fn validate_pages(&mut self, page_count: u32) {
        /// Pages asked for at once: 1 MB.
        const AHEAD: u32 = 128;
        for page_no in 0..page_count {
            if page_no % AHEAD == 0 {
                self.source.will_need(page_no, AHEAD);
            }
            let result = self.source.page(page_no).and_then(|page| page::parse(&page).map(|_| ()));
            if let Err(error) = result {
                self.error(Part::Page, page_no, &error);
            }
        }
    }

    fn meet_footer(&mut self, page_count: u32) {
        let last = page_count.saturating_sub(1);
        // The number of footer pages was checked when the footer was read.
        let count = self.source.page(last).ok().and_then(|page| {
            let (_, content) = page::parse(&page).ok()?;
            Some(u32::from(u16::from_le_bytes([*content.get(2)?, *content.get(3)?])))
        });
        for page_no in page_count.saturating_sub(count.unwrap_or(1))..page_count {
            self.meet(Part::Footer, page_no, last);
        }
    }

    fn filter_pages(&mut self, footer: &Footer) {
        let Some(place) = footer.filter else { return };
        let mut page_no = place.first_page;
        for length in place.page_lengths() {
            if !self.meet(Part::Filter, page_no, footer.summary.footer_page) {
                return;
            }
            let found = self
                .source
                .page(page_no)
                .and_then(|page| super::pages::content_of(&page, PageKind::Filter, page_no).map(<[u8]>::len));
            match found {
                Ok(found) if found == length => {}
                Ok(found) => {
                    let what = format!("the page has {found} bytes of the filter where there are to be {length}");
                    self.fault(Part::Filter, Some(page_no), what);
                }
                Err(error) => self.error(Part::Filter, page_no, &error),
            }
            page_no = page_no.saturating_add(1);
        }
    }

    /// Looks whether the filter admits a partition that is there.
    fn ask_filter(&mut self, footer: &Footer, partition: &[u8], leaf: u32) {
        let Some(place) = footer.filter else { return };
        match filter::may_contain(self.source, place, partition) {
            Ok(true) => {}
            Ok(false) => {
                let what = format!("the filter does not admit partition {} of this leaf", hex(partition));
                self.fault(Part::Filter, Some(leaf), what);
            }
            Err(error) => self.error(Part::Filter, place.first_page, &error),
        }
    }

    fn report_unmet(&mut self, page_count: u32) {
        for page_no in 0..page_count {
            if !self.met.contains(page_no) && !self.faulty.contains(page_no) {
                self.fault(Part::Page, Some(page_no), "nothing leads to the page");
            }
        }
    }
}

/// The first bytes of a key, for messages.
fn hex(bytes: &[u8]) -> String {
    const MOST: usize = 24;
    let shown: String = bytes.iter().take(MOST).map(|byte| format!("{byte:02x}")).collect();
    if bytes.len() > MOST {
        format!("{shown}... ({} bytes)", bytes.len())
    } else {
        shown
    }
}
