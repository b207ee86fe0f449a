//! The summary in the footer against what the rows are.

use super::{hex, Check, Part};
use crate::segment::footer::Footer;
use crate::segment::{filter, PageSource, SegmentSummary};
use std::fmt::Debug;

impl<S: PageSource> Check<'_, S> {
    /// Tells what a footer says otherwise than all rows, which have been read, show.
    pub(super) fn compare_summary(&mut self, footer: &Footer, counted: &SegmentSummary, page_count: u32) {
        let said = &footer.summary;
        let mut faults = Vec::new();
        let mut compare = |what: &str, said: &dyn Debug, found: &dyn Debug| {
            let (said, found) = (format!("{said:?}"), format!("{found:?}"));
            if said != found {
                faults.push(format!("the footer says {said} of the {what}, and the rows show {found}"));
            }
        };
        compare("number of rows", &said.row_count, &counted.row_count);
        compare("number of tombstones", &said.tombstone_count, &counted.tombstone_count);
        compare("number of partitions", &said.partition_count, &counted.partition_count);
        compare("sizes of partitions", &said.partition_rows, &counted.partition_rows);
        compare("smallest write time", &said.min_write_time, &counted.min_write_time);
        compare("largest write time", &said.max_write_time, &counted.max_write_time);
        compare("smallest expiry", &said.min_expiry, &counted.min_expiry);
        compare("largest expiry", &said.max_expiry, &counted.max_expiry);
        compare("largest row id", &said.max_row_id, &counted.max_row_id);
        compare("bytes of keys and values", &said.raw_bytes, &counted.raw_bytes);
        for (what, said, found) in
            [("smallest key", &said.min_key, &counted.min_key), ("largest key", &said.max_key, &counted.max_key)]
        {
            if said != found {
                let (said, found) = (hex(said), hex(found));
                faults.push(format!("the footer says {said} of the {what}, and the rows show {found}"));
            }
        }
        if said.largest_partition != counted.largest_partition {
            faults.push("the footer names another largest partition than the rows show".into());
        }
        let blocks = footer.filter.map_or(0, |place| place.blocks);
        if blocks != filter::blocks_of(counted.partition_count) {
            faults.push(format!("the filter has {blocks} blocks, too few or too many for the partitions"));
        }
        for what in faults {
            self.fault(Part::Footer, Some(page_count.saturating_sub(1)), what);
        }
    }
}
