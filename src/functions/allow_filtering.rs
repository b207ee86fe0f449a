//! `cass_allow_filtering()`: ALLOW FILTERING for one statement.

use pgrx::prelude::*;

/// Allows the statement it stands in to read whole cass tables, as ALLOW FILTERING does in CQL.
///
/// It is joined by AND to a WHERE or ON condition and always true. The planner looks for it, hence STABLE: an immutable
/// function would be folded away before.
#[pg_extern(stable, parallel_safe)]
fn cass_allow_filtering() -> bool {
    true
}
