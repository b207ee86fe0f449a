//! What keeps a table small and quick, all of it run by VACUUM, and loads that go straight into a segment.
//!
//! - `vacuum`: the steps of VACUUM in their order;
//! - `in_vacuum`: makes what VACUUM writes count in other sessions' snapshots;
//! - `heap`: vacuum of the heaps behind a table, the delta and the list of segments;
//! - `tidy`: giving back what nobody can see any more;
//! - `empty_delta`: whether a delta is empty, and noting that it is;
//! - `reclaim`: what the VACUUM command gives back once the transaction of all this has ended;
//! - `flush`: from the delta to a new segment;
//! - `merge`: several segments into one, without what is deleted, expired or overwritten;
//! - `index_entries`: entries of user indexes whose row is gone;
//! - `toast`: values that were moved out of rows which a merge drops;
//! - `bulk_load`: rows into a segment of their own;
//! - `settled`: whether all snapshots see the same of a table;
//! - `stored`: how rows become rows of a segment.

mod bulk_load;
mod empty_delta;
mod flush;
mod heap;
mod in_vacuum;
mod index_entries;
mod merge;
pub mod reclaim;
mod settled;
mod stored;
mod tidy;
mod toast;
mod vacuum;

pub use bulk_load::BulkLoad;
pub use empty_delta::{delta_holds_rows, note_delta_if_empty, InUse};
pub use flush::{flush, Flushed};
pub use merge::{merge, Merged};
pub use settled::is_settled;
pub use vacuum::vacuum;
