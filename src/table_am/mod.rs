//! Stand-in until the table access method exists: cass tables are heaps.

use pgrx::pg_sys;
use pgrx::prelude::*;

extension_sql!(
    "CREATE ACCESS METHOD cass TYPE TABLE HANDLER heap_tableam_handler;",
    name = "cass_access_method"
);

/// Places the rows of a table that has got a key; gives their number, or -1 if they were placed before.
///
/// # Safety
/// Both are open, the table is locked against writers.
pub unsafe fn place_rows(_rel: pg_sys::Relation, _index: pg_sys::Relation) -> f64 {
    -1.0
}
