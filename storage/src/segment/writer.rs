//! Writing a segment.

use super::filter::FilterBuilder;
use super::footer::Footer;
use super::inner::{separator, TreeBuilder};
use super::keys::MAX_LEAF_KEY_BYTES;
use super::leaf_buffer::{LeafBuffer, MAX_LEAF_ROWS};
use super::leaf_pages::{self, Stored, FIRST_PAGE_BYTES};
use super::pages::PageWriter;
use super::row_ids::RowIdBuilder;
use super::statistics::Statistics;
use super::walk::Root;
use super::{Column, PageSink, SegmentSummary, WriterOptions, MAX_KEY_LEN};
use crate::error::{Result, StorageError};
use crate::page::PageKind;
use crate::row::RowView;

/// Bytes that a leaf of several rows has before compression: more would make reading one row slow.
const MAX_BODY: usize = 64 * 1024;
/// A page is full when so much of it is used; looking for the last row costs more than it saves.
const FULL: f64 = 0.94;
/// Numbers of rows tried to fill a page, after which one that fits is good enough.
const MAX_TRIES: usize = 6;
/// Bytes of rows gathered before a leaf is tried, however few rows they are.
const MAX_GATHERED: usize = 256 * 1024;

/// Writes a segment front to back, in memory in proportion to a leaf and to the sorters' bounds.
pub struct SegmentWriter<S> {
    pages: PageWriter<S>,
    columns: Vec<Column>,
    buffer: LeafBuffer,
    /// Rows to gather before the next leaf is tried.
    target: usize,
    /// Bytes of the rows gathered since the last try.
    gathered: usize,
    tree: TreeBuilder,
    /// Last key of the leaf written last.
    leaf_end: Option<Vec<u8>>,
    row_ids: RowIdBuilder,
    filter: FilterBuilder,
    statistics: Statistics,
    body: Vec<u8>,
}

/// A number of rows that fits into a page, encoded; or the one row that does not.
struct Fit {
    rows: usize,
    stored: Stored,
    load: f64,
}

impl<S: PageSink> SegmentWriter<S> {
    /// A writer of a run that goes to `sink`.
    pub fn new(sink: S, options: WriterOptions) -> Self {
        let mut columns = options.columns;
        columns.sort_by_key(|column| column.attnum);
        columns.dedup_by_key(|column| column.attnum);
        SegmentWriter {
            pages: PageWriter::new(sink, options.storage_id, options.run_id),
            buffer: LeafBuffer::new(&columns),
            columns,
            target: 64,
            gathered: 0,
            tree: TreeBuilder::new(PageKind::Inner),
            leaf_end: None,
            row_ids: RowIdBuilder::new(options.memory_bytes / 2, &options.temp_directory),
            filter: FilterBuilder::new(options.memory_bytes / 2, &options.temp_directory),
            statistics: Statistics::new(),
            body: Vec::new(),
        }
    }

    /// Adds a row. Keys come strictly ascending. The first `partition_len` bytes of the key name the partition;
    /// 0 if keys have none.
    ///
    /// # Errors
    /// `Refused` if the key is not greater than the last, `partition_len` exceeds it, a value does not fit its
    /// column's class, or the row is an anchor; `TooLarge` if the key exceeds [`MAX_KEY_LEN`]; errors of `row`, of
    /// the sink and of temporary files. The writer must not be used after an error.
    pub fn push(&mut self, key: &[u8], partition_len: usize, row: &dyn RowView) -> Result<()> {
        if key.len() > MAX_KEY_LEN {
            let (size, limit) = (key.len() as u64, MAX_KEY_LEN as u64);
            return Err(StorageError::TooLarge { what: "key", size, limit });
        }
        if partition_len > key.len() {
            return Err(StorageError::Refused { what: "the partition is longer than the key" });
        }
        if self.buffer.keys.last().or(self.leaf_end.as_deref()).is_some_and(|last| last >= key) {
            return Err(StorageError::Refused { what: "keys are not ascending" });
        }
        let pushed = self.buffer.push(key, partition_len, row)?;
        if self.statistics.push(key, partition_len, row.header(), &pushed) {
            self.filter.push(&key[..partition_len])?;
        }
        self.gathered += pushed.bytes;
        if self.gathered >= MAX_GATHERED {
            self.target = self.target.min(self.buffer.len());
        }
        if self.buffer.len() >= self.target {
            self.write_leaves(false)?;
            self.gathered = 0;
        }
        Ok(())
    }

    /// Pages that went to the sink so far.
    pub fn pages_written(&self) -> u32 {
        self.pages.next_page()
    }

    /// Writes what is left and the rest of the run. Gives the sink back.
    ///
    /// # Errors
    /// Errors of the sink and of temporary files.
    pub fn finish(mut self) -> Result<(S, SegmentSummary)> {
        self.write_leaves(true)?;
        let mut pages = self.pages;
        let root = self.tree.finish(&mut pages)?.map(|(page_no, height)| Root { page_no, height });
        let summary = self.statistics.finish(self.leaf_end.as_deref().unwrap_or_default());
        let filter = self.filter.finish(&mut pages, summary.partition_count)?;
        let row_ids = self.row_ids.finish(&mut pages)?;
        let mut footer = Footer { columns: self.columns, summary, root, row_ids, filter };
        footer.write(&mut pages)?;
        Ok((pages.into_sink(), footer.summary))
    }

    /// Writes leaves while enough rows are there; all of them if there will be no more.
    fn write_leaves(&mut self, last: bool) -> Result<()> {
        while self.buffer.len() > 0 && (last || self.buffer.len() >= self.target) {
            let fit = self.fit();
            let all = fit.rows == self.buffer.len();
            let may_grow = all && fit.load < FULL && fit.rows < MAX_LEAF_ROWS;
            let estimate = scaled(fit.rows, fit.load);
            self.target = estimate.clamp(fit.rows.min(16), MAX_LEAF_ROWS);
            if may_grow && !last {
                // The page is not full yet: gather more, at most eight times as many, as the estimate is rough.
                self.target = estimate.clamp(fit.rows + 1, (fit.rows * 8).min(MAX_LEAF_ROWS));
                return Ok(());
            }
            self.write_leaf(&fit)?;
        }
        Ok(())
    }

    /// Finds how many of the gathered rows fill a page.
    fn fit(&mut self) -> Fit {
        let available = self.buffer.len().min(MAX_LEAF_ROWS);
        let mut best: Option<Fit> = None;
        let mut too_many = available + 1;
        let mut rows = self.target.min(available);
        for tries in 1.. {
            let tried = self.encode(rows);
            if tried.load <= 1.0 || rows == 1 {
                let done = tried.load >= FULL || rows + 1 >= too_many || tries >= MAX_TRIES;
                let estimate = scaled(rows, tried.load);
                best = Some(tried);
                if done {
                    break;
                }
                rows = estimate.clamp(rows + 1, too_many - 1);
            } else {
                too_many = rows;
                let least = best.as_ref().map_or(1, |fit| fit.rows + 1);
                if least >= too_many {
                    break;
                }
                rows = scaled(rows, tried.load).clamp(least, too_many - 1);
            }
        }
        best.unwrap_or_else(|| self.encode(1))
    }

    fn encode(&mut self, rows: usize) -> Fit {
        self.body.clear();
        self.buffer.encode(&mut self.body, rows);
        let stored = leaf_pages::store(&self.body);
        let part = |used: usize, limit: usize| used as f64 / limit as f64;
        let load = part(stored.bytes.len(), FIRST_PAGE_BYTES)
            .max(part(self.body.len(), MAX_BODY))
            .max(part(self.buffer.keys.bytes(rows), MAX_LEAF_KEY_BYTES));
        Fit { rows, stored, load }
    }

    fn write_leaf(&mut self, fit: &Fit) -> Result<()> {
        let page_no = leaf_pages::write(&mut self.pages, &fit.stored)?;
        let first = self.buffer.keys.key(0);
        let separator = match &self.leaf_end {
            Some(before) => separator(before, first),
            None => &[],
        };
        self.tree.push(&mut self.pages, separator, page_no)?;
        self.leaf_end = Some(self.buffer.keys.key(fit.rows - 1).to_vec());
        self.row_ids.push_leaf(self.buffer.row_ids(fit.rows), page_no)?;
        self.buffer.remove_first(fit.rows);
        Ok(())
    }
}

/// So many rows should fill a page to a little less than its end, if `rows` load it by `load`.
fn scaled(rows: usize, load: f64) -> usize {
    (rows as f64 * 0.975 / load.max(0.001)) as usize
}
