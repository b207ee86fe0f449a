//! Gathering a segment's summary row by row.

use super::leaf_buffer::Pushed;
use super::{LargestPartition, SegmentSummary};
use crate::row::RowHeader;

/// The summary so far, and the partition that is being written.
pub(super) struct Statistics {
    summary: SegmentSummary,
    partition: Option<LargestPartition>,
}

impl Statistics {
    pub(super) fn new() -> Self {
        let summary = SegmentSummary {
            page_count: 0,
            footer_page: 0,
            row_count: 0,
            tombstone_count: 0,
            partition_count: 0,
            partition_rows: Vec::new(),
            min_key: Vec::new(),
            max_key: Vec::new(),
            min_write_time: i64::MAX,
            max_write_time: i64::MIN,
            min_expiry: None,
            max_expiry: None,
            max_row_id: 0,
            raw_bytes: 0,
            largest_partition: None,
        };
        Statistics { summary, partition: None }
    }

    /// Counts a row, and says whether it begins a partition.
    pub(super) fn push(&mut self, key: &[u8], partition_len: usize, header: &RowHeader, pushed: &Pushed) -> bool {
        let summary = &mut self.summary;
        if summary.row_count == 0 {
            summary.min_key = key.to_vec();
        }
        summary.row_count += 1;
        summary.tombstone_count += u64::from(header.kind.is_tombstone());
        summary.min_write_time = summary.min_write_time.min(header.write_time);
        summary.max_write_time = summary.max_write_time.max(header.write_time);
        let row_expiry = header.expiry.map(|expiry| (expiry, expiry));
        for (low, high) in row_expiry.into_iter().chain(pushed.cell_expiries) {
            summary.min_expiry = Some(summary.min_expiry.map_or(low, |expiry| expiry.min(low)));
            summary.max_expiry = Some(summary.max_expiry.map_or(high, |expiry| expiry.max(high)));
        }
        summary.max_row_id = summary.max_row_id.max(header.row_id);
        summary.raw_bytes += pushed.bytes as u64;
        if partition_len == 0 {
            return false;
        }
        let prefix = &key[..partition_len];
        let begins = self.partition.as_ref().is_none_or(|partition| partition.key != prefix);
        if begins {
            self.end_partition();
            self.partition = Some(LargestPartition { key: prefix.to_vec(), rows: 0, bytes: 0 });
        }
        if let Some(partition) = &mut self.partition {
            partition.rows += 1;
            partition.bytes += pushed.bytes as u64;
        }
        begins
    }

    fn end_partition(&mut self) {
        let Some(partition) = self.partition.take() else {
            return;
        };
        let class = partition.rows.ilog2() as usize;
        let summary = &mut self.summary;
        if summary.partition_rows.len() <= class {
            summary.partition_rows.resize(class + 1, 0);
        }
        summary.partition_rows[class] += 1;
        summary.partition_count += 1;
        if summary.largest_partition.as_ref().is_none_or(|largest| largest.rows < partition.rows) {
            summary.largest_partition = Some(partition);
        }
    }

    pub(super) fn finish(mut self, last_key: &[u8]) -> SegmentSummary {
        self.end_partition();
        self.summary.max_key = last_key.to_vec();
        self.summary
    }
}
