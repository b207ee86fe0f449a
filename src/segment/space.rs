//! Which blocks of the main fork a new run gets.
//!
//! Free is what no physical row of the list covers, dead rows included: the run of a row that a snapshot may still see, here
//! or on a standby, is in use, and PostgreSQL prunes the row only when none can (and cancels standby snapshots first).

use std::fs::OpenOptions;
use std::path::Path;

use pgrx::pg_sys;

use super::{map, relation};
use crate::error::Report;

/// The first run of blocks, behind the metapage, that has room for `pages` and that none of the `occupied` runs (first block,
/// number of blocks) covers. The last one found reaches beyond the end of the fork. `None` where the fork would get too long.
pub fn find(occupied: &mut [(u32, u32)], pages: u32) -> Option<u32> {
    occupied.sort_unstable();
    let mut free_from = 1_u32;
    for (first, count) in occupied.iter() {
        if first.checked_sub(free_from).is_some_and(|gap| gap >= pages) {
            return Some(free_from);
        }
        free_from = free_from.max(first.saturating_add(*count));
    }
    // The last block must stay below InvalidBlockNumber.
    free_from.checked_add(pages).filter(|end| *end < u32::MAX).map(|_| free_from)
}

/// Makes the main fork reach to the end of a reserved run and its blocks exist on disk, so that a full disk is met here and
/// not when pages that are dirty already are written.
pub fn provide(rel: pg_sys::Relation, first_block: u32, pages: u32) {
    let last_block = first_block + pages - 1;
    let main = pg_sys::ForkNumber::MAIN_FORKNUM;
    let mut zeros = Box::new([0_u8; pg_sys::BLCKSZ as usize]);
    // SAFETY: `rel` is an open relation with storage. The blocks between the old end and the run's last one have never been
    // in a buffer; PostgreSQL fills files in between with zeros.
    unsafe {
        pg_sys::LockRelationForExtension(rel, pg_sys::ExclusiveLock as pg_sys::LOCKMODE);
        if relation::main_fork_blocks(rel) <= last_block {
            pg_sys::smgrextend(pg_sys::RelationGetSmgr(rel), main, last_block, zeros.as_mut_ptr().cast(), false);
        }
        pg_sys::UnlockRelationForExtension(rel, pg_sys::ExclusiveLock as pg_sys::LOCKMODE);
    }
    for (path, offset, length) in map::byte_ranges(relation::file_node(rel), first_block, pages) {
        allocate(rel, &path, offset, length);
    }
}

/// Has the file system allocate a range of a file, where it can.
fn allocate(rel: pg_sys::Relation, path: &Path, offset: u64, length: u64) {
    let Ok(file) = OpenOptions::new().write(true).open(path) else {
        return;
    };
    let flags = rustix::fs::FallocateFlags::KEEP_SIZE;
    if rustix::fs::fallocate(&file, flags, offset, length) == Err(rustix::io::Errno::NOSPC) {
        Report::new("53100", format!("no space left for a segment of table \"{}\"", relation::name(rel)))
            .detail(format!("{length} bytes are needed in file \"{}\".", path.display()))
            .hint("Check free disk space.")
            .raise();
    }
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn a_run_gets_the_first_gap_that_holds_it_or_the_end() {
        assert_eq!(find(&mut [], 5), Some(1), "block 0 is the metapage");
        let mut occupied = [(20, 5), (1, 4), (8, 2)];
        assert_eq!(find(&mut occupied, 3), Some(5));
        assert_eq!(find(&mut occupied, 4), Some(10));
        assert_eq!(find(&mut occupied, 10), Some(10));
        assert_eq!(find(&mut occupied, 11), Some(25));
    }

    #[test]
    fn rows_of_one_run_and_of_aborted_ones_may_overlap() {
        assert_eq!(find(&mut [(1, 10), (1, 10), (3, 2), (5, 20)], 1), Some(25));
    }

    #[test]
    fn no_run_reaches_the_last_block_number() {
        assert_eq!(find(&mut [(1, u32::MAX - 10)], 9), None);
        assert_eq!(find(&mut [(1, u32::MAX - 10)], 8), Some(u32::MAX - 9));
    }
}
