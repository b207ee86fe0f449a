//! A delta that is gone although it held rows.

use crate::error::Report;
use crate::segment::{metapage, relation};
use pgrx::pg_sys;

/// Raises an error if the metapage of a table that has no delta says that it has rows there.
///
/// # Errors
/// XX001 then. It is never made good silently: neither reads nor writes may go on as if the rows had never been.
pub fn refuse_if_lost(table: pg_sys::Relation) {
    if metapage::read(table).delta_dirty {
        Report::new("XX001", format!("the delta of table \"{}\" is missing", relation::name(table)))
            .detail("It held rows that no segment has.")
            .hint(
                "pg_upgrade does not carry deltas: run CALL cass_prepare_upgrade() in the old cluster and upgrade again. TRUNCATE \
                 gives up all rows of the table.",
            )
            .raise();
    }
}
