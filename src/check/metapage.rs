//! The metapage and the visibility map.

use pgrx::pg_sys;

use super::fault::{Faults, Kind};
use crate::pg::subtransaction::caught;
use crate::pg::tid::MAX_ROW_ID;
use crate::read::TableState;
use crate::segment::list::SegmentEntry;
use crate::segment::metapage::{self, Fault, FORMAT};
use crate::segment::{relation, visibility_map};

/// Checks metapage and visibility map. False if nothing else can be judged, since the metapage cannot be read.
pub(super) fn check(rel: pg_sys::Relation, faults: &mut Faults) -> bool {
    let table = relation::oid(rel);
    let metapage = match caught(|| metapage::try_read(rel)) {
        Ok(Ok(metapage)) => metapage,
        Ok(Err(Fault::Damaged(what))) => {
            faults.add(Kind::Metapage, table, Some(0), format!("the metapage is damaged: {what}"));
            return false;
        }
        Ok(Err(Fault::Format(format))) => {
            let detail = format!("the metapage has format {format}, and this version of cass knows format {FORMAT}");
            faults.add(Kind::Metapage, table, Some(0), detail);
            return false;
        }
        Err(error) => {
            faults.add(Kind::Metapage, table, Some(0), error.text);
            return false;
        }
    };
    if metapage.storage_id == 0 || i64::try_from(metapage.storage_id).is_err() {
        faults.add(Kind::Metapage, table, Some(0), "the storage id is out of range");
    }
    let counters = [metapage.next_row_id, metapage.next_run_id, metapage.next_sequence];
    if counters.contains(&0) || metapage.next_row_id > MAX_ROW_ID {
        faults.add(Kind::Metapage, table, Some(0), "a counter is out of range");
    }
    match caught(|| visibility_map::is_damaged(rel)) {
        Ok(false) => {}
        Ok(true) => faults.add(Kind::VisibilityMap, table, None, "the visibility map is damaged; it is not used"),
        Err(error) => faults.add(Kind::VisibilityMap, table, None, error.text),
    }
    true
}

/// Whether the counters of the metapage, read now, are beyond what the segments have been given.
pub(super) fn check_counters(state: &TableState, segments: &[SegmentEntry], faults: &mut Faults) {
    let table = relation::oid(state.rel);
    let Ok(Ok(metapage)) = caught(|| metapage::try_read(state.rel)) else { return };
    for entry in segments {
        let given = [
            ("number", entry.run_id, metapage.next_run_id),
            ("place in the order of segments", entry.sequence_high, metapage.next_sequence),
        ];
        for (what, number, next) in given.into_iter().filter(|(_, number, next)| number >= next) {
            let detail = format!("the segment has {what} {number}, and the metapage says that {next} is given next");
            faults.add_in_segment(Kind::Metapage, table, entry.run_id, Some(0), detail);
        }
    }
}

/// The row id that the metapage says is given next.
pub(super) fn next_row_id(state: &TableState) -> Option<u64> {
    caught(|| metapage::try_read(state.rel)).ok()?.ok().map(|metapage| metapage.next_row_id)
}
