//! Stand-in until the merged read exists.

use pgrx::pg_sys;

use crate::error::Report;

/// The row that a snapshot sees under a key.
///
/// # Safety
/// `rel` is an open cass table.
pub unsafe fn fetch_key(
    _rel: pg_sys::Relation,
    _snapshot: pg_sys::Snapshot,
    _key: &[u8],
) -> Option<pg_sys::ItemPointerData> {
    Report::new("0A000", "reads by key are not there").raise()
}
