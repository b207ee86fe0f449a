//! The segment store by itself: metapage, list, runs and maps, on a heap whose file is made as a cass table's is.

#[cfg(any(test, feature = "pg_test"))]
#[pgrx::pg_schema]
mod tests {
    use cass_storage::page::{self, Page, PageIdentity, PageKind};
    use cass_storage::segment::PageSource;
    use pgrx::prelude::*;
    use pgrx::{pg_sys, PgBox};

    use crate::segment::buffer::RunBuffer;
    use crate::segment::list::{self, SegmentEntry};
    use crate::segment::{metapage, relation, run, source};

    /// Heap, but with a metapage in block 0.
    #[pg_extern(sql = "
        CREATE FUNCTION tests.segment_store_am(internal) RETURNS table_am_handler LANGUAGE c STRICT
            AS '@MODULE_PATHNAME@', '@FUNCTION_NAME@';
        CREATE ACCESS METHOD segment_store TYPE TABLE HANDLER tests.segment_store_am;
    ")]
    fn segment_store_am(_fcinfo: pg_sys::FunctionCallInfo) -> PgBox<pg_sys::TableAmRoutine> {
        static mut ROUTINE: std::mem::MaybeUninit<pg_sys::TableAmRoutine> = std::mem::MaybeUninit::uninit();
        // SAFETY: one thread; the routine lives as long as the process.
        unsafe {
            let mut routine = *pg_sys::GetHeapamTableAmRoutine();
            #[cfg(feature = "pg15")]
            {
                routine.relation_set_new_filenode = Some(set_new_filenode);
            }
            #[cfg(not(feature = "pg15"))]
            {
                routine.relation_set_new_filelocator = Some(set_new_filenode);
            }
            let place = &raw mut ROUTINE;
            (*place).write(routine);
            PgBox::from_pg(place.cast())
        }
    }

    #[pg_guard]
    unsafe extern "C-unwind" fn set_new_filenode(
        _rel: pg_sys::Relation,
        node: *const crate::pg::versions::files::Locator,
        persistence: std::ffi::c_char,
        xid: *mut pg_sys::TransactionId,
        multi: *mut pg_sys::MultiXactId,
    ) {
        // SAFETY: core passes valid pointers.
        unsafe {
            *xid = pg_sys::InvalidTransactionId;
            *multi = pg_sys::MultiXactId::from(0);
            metapage::create(&*node, persistence);
        }
    }

    /// Makes a table and runs `test` with it locked as a publisher locks it.
    fn with_table(kind: &str, test: impl FnOnce(pg_sys::Relation)) {
        Spi::run(&format!("CREATE {kind} TABLE store (a int) USING segment_store")).unwrap();
        let oid = Spi::get_one::<pg_sys::Oid>("SELECT 'store'::regclass::oid").unwrap().unwrap();
        // SAFETY: the table was just made.
        unsafe {
            let rel = pg_sys::table_open(oid, pg_sys::ExclusiveLock as i32);
            test(rel);
            pg_sys::table_close(rel, pg_sys::NoLock as i32);
        }
    }

    fn snapshot() -> pg_sys::Snapshot {
        // SAFETY: a test runs in a transaction.
        unsafe { pg_sys::RegisterSnapshot(pg_sys::GetLatestSnapshot()) }
    }

    /// Publishes a run of `count` pages with known content.
    fn publish(rel: pg_sys::Relation, count: u32) -> SegmentEntry {
        let storage_id = metapage::identity(rel).storage_id;
        let (run_id, sequence) = metapage::next_run(rel);
        let mut buffer = RunBuffer::new().unwrap();
        for page_no in 0..count {
            let mut page: Page = [0; page::PAGE_SIZE];
            let identity = PageIdentity { storage_id, run_id, page_no };
            page::write(&mut page, &identity, PageKind::Leaf, format!("page {page_no} of run {run_id}").as_bytes())
                .unwrap();
            cass_storage::segment::PageSink::put(&mut buffer, &page).unwrap();
        }
        let mut entry = SegmentEntry {
            storage_id,
            run_id,
            first_block: 0,
            page_count: count,
            sequence_low: sequence,
            sequence_high: sequence,
            bulk: false,
            row_count: 1,
            tombstone_count: 0,
            min_key: vec![1],
            max_key: vec![2; 2600],
        };
        run::publish(rel, &mut entry, buffer);
        entry
    }

    fn content(rel: pg_sys::Relation, entry: &SegmentEntry, page_no: u32) -> (String, bool) {
        let source = source::RunSource::open(rel, entry);
        let guard = source.page(page_no).unwrap();
        let (_, content) = page::parse(&guard).unwrap();
        (String::from_utf8(content.to_vec()).unwrap(), matches!(guard, source::PageGuard::Mapped(_)))
    }

    #[pg_test]
    fn a_new_table_has_a_metapage_and_nothing_else() {
        with_table("", |rel| {
            let metapage = metapage::read(rel);
            assert!(metapage.storage_id > 0 && metapage.storage_id <= i64::MAX as u64);
            assert_eq!((metapage.layout, metapage.next_row_id, metapage.next_run_id), (0, 1, 1));
            assert!(!metapage.delta_dirty);
            assert_eq!(relation::main_fork_blocks(rel), 1);
        });
    }

    #[pg_test]
    fn counters_never_give_a_number_twice() {
        with_table("", |rel| {
            assert_eq!(metapage::reserve_row_ids(rel, 10), 1);
            assert_eq!(metapage::reserve_row_ids(rel, 1), 11);
            assert_eq!(metapage::next_run(rel), (1, 1));
            assert_eq!(metapage::next_run(rel), (2, 2));
            metapage::set_layout(rel, 77);
            crate::segment::visibility_map::delta_changed(rel, true);
            let metapage = metapage::read(rel);
            assert_eq!((metapage.next_row_id, metapage.layout, metapage.delta_dirty), (12, 77, true));
            assert_eq!(metapage::identity(rel).layout, 77);
        });
    }

    #[pg_test(error = "table \"store\" has used up its row ids")]
    fn row_ids_end_where_tids_end() {
        with_table("", |rel| {
            metapage::reserve_row_ids(rel, crate::pg::tid::MAX_ROW_ID - 1);
            metapage::reserve_row_ids(rel, 1);
        });
    }

    #[pg_test(error = "access method \"cass\" does not support unlogged tables")]
    fn unlogged_tables_are_refused() {
        with_table("UNLOGGED", |_| {});
    }

    #[pg_test]
    fn a_flipped_bit_of_the_metapage_is_found() {
        let mut page = [0_u8; 8192];
        with_table("", |rel| metapage::read(rel).encode(&mut page));
        assert!(metapage::Metapage::decode(&page).is_ok());
        for bit in 24 * 8..80 * 8 {
            page[bit / 8] ^= 1 << (bit % 8);
            assert!(metapage::Metapage::decode(&page).is_err(), "bit {bit}");
            page[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[pg_test]
    fn a_published_run_is_listed_and_read_through_the_map() {
        with_table("", |rel| {
            let first = publish(rel, 150);
            let second = publish(rel, 3);
            assert_eq!((first.first_block, second.first_block), (1, 151));
            assert_eq!(*list::visible(rel, snapshot()), [second.clone(), first.clone()]);
            assert_eq!(relation::main_fork_blocks(rel), 154);
            assert_eq!(content(rel, &first, 149), ("page 149 of run 1".into(), true));
            assert_eq!(content(rel, &second, 0), ("page 0 of run 2".into(), true));
        });
    }

    #[pg_test]
    fn a_snapshot_does_not_see_what_was_published_after_it() {
        with_table("", |rel| {
            let before = snapshot();
            let entry = publish(rel, 1);
            assert_eq!(*list::visible(rel, before), []);
            assert_eq!(*list::visible(rel, snapshot()), [entry]);
        });
    }

    #[pg_test]
    fn runs_of_removed_rows_are_not_reused_while_the_rows_exist() {
        with_table("", |rel| {
            let first = publish(rel, 5);
            let listed = list::listed(first.storage_id, snapshot());
            list::List::change(rel, |list| list.remove(listed[0].tid));
            // SAFETY: the test runs in a transaction of its own.
            unsafe { pg_sys::CommandCounterIncrement() };
            assert_eq!(*list::visible(rel, snapshot()), []);
            assert_eq!(publish(rel, 5).first_block, 6);
        });
    }

    #[pg_test]
    fn a_run_may_lie_across_two_files_of_a_gigabyte() {
        with_table("", |rel| {
            let storage_id = metapage::identity(rel).storage_id;
            let (run_id, sequence) = metapage::next_run(rel);
            let entry = SegmentEntry {
                storage_id,
                run_id,
                first_block: 1,
                page_count: 131_060,
                sequence_low: sequence,
                sequence_high: sequence,
                bulk: false,
                row_count: 1,
                tombstone_count: 0,
                min_key: vec![],
                max_key: vec![],
            };
            list::List::change(rel, |list| list.insert_reservation(relation::oid(rel), &entry));
            let entry = publish(rel, 30);
            assert_eq!(entry.first_block, 131_061);
            assert_eq!(relation::main_fork_blocks(rel), 131_091);
            for page_no in [0, 10, 11, 29] {
                assert_eq!(content(rel, &entry, page_no), (format!("page {page_no} of run 2"), true));
            }
        });
    }

    #[pg_test]
    fn the_blocks_of_an_aborted_run_are_free_once_its_row_is_pruned() {
        with_table("", |rel| {
            // SAFETY: an internal subtransaction that is rolled back, as an error in PL/pgSQL does.
            unsafe {
                let (owner, context) = (pg_sys::CurrentResourceOwner, pg_sys::CurrentMemoryContext);
                pg_sys::BeginInternalSubTransaction(std::ptr::null());
                assert_eq!(publish(rel, 5).first_block, 1);
                pg_sys::RollbackAndReleaseCurrentSubTransaction();
                pg_sys::MemoryContextSwitchTo(context);
                pg_sys::CurrentResourceOwner = owner;
            }
            let entry = publish(rel, 5);
            assert_eq!(*list::visible(rel, snapshot()), *std::slice::from_ref(&entry));
            assert_eq!(entry.first_block, 6);
            let list = list::List::open(pg_sys::RowExclusiveLock);
            // SAFETY: all parameters are set; the list is an open heap.
            unsafe {
                let mut params = pg_sys::VacuumParams {
                    freeze_min_age: -1,
                    freeze_table_age: -1,
                    multixact_freeze_min_age: -1,
                    multixact_freeze_table_age: -1,
                    index_cleanup: pg_sys::VacOptValue::VACOPTVALUE_AUTO,
                    truncate: pg_sys::VacOptValue::VACOPTVALUE_DISABLED,
                    nworkers: -1,
                    log_min_duration: -1,
                    ..Default::default()
                };
                pg_sys::heap_vacuum_rel(list.heap, &raw mut params, std::ptr::null_mut());
            }
            list.close(pg_sys::RowExclusiveLock);
            assert_eq!(publish(rel, 5).first_block, 1);
            assert_eq!(content(rel, &entry, 4), ("page 4 of run 2".into(), true));
        });
    }

    #[pg_test]
    fn temporary_tables_are_read_through_the_map_too() {
        with_table("TEMPORARY", |rel| {
            assert_eq!(metapage::reserve_row_ids(rel, 10), 1);
            let entry = publish(rel, 70);
            assert_eq!(content(rel, &entry, 69), ("page 69 of run 1".into(), true));
        });
    }

    #[pg_test]
    fn a_page_whose_file_is_wrong_is_read_from_its_buffer() {
        with_table("", |rel| {
            let entry = publish(rel, 3);
            let path = Spi::get_one::<String>("SELECT pg_relation_filepath('store')").unwrap().unwrap();
            let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
            std::os::unix::fs::FileExt::write_all_at(&file, &[0; 8192], 8192 * 2).unwrap();
            assert_eq!(content(rel, &entry, 1), ("page 1 of run 1".into(), false));
            assert_eq!(content(rel, &entry, 2), ("page 2 of run 1".into(), true));
        });
    }

    #[pg_test(error = "block 2 of table \"store\" is damaged")]
    fn a_page_that_is_wrong_everywhere_is_an_error_that_names_the_block() {
        with_table("", |rel| {
            let mut entry = publish(rel, 3);
            entry.run_id += 1;
            content(rel, &entry, 1);
        });
    }

    #[pg_test]
    fn truncation_in_place_begins_a_new_life_without_runs() {
        with_table("", |rel| {
            metapage::reserve_row_ids(rel, 41);
            let old = publish(rel, 9);
            metapage::reset(rel);
            let new = metapage::identity(rel).storage_id;
            assert_ne!(new, old.storage_id);
            assert_eq!(list::listed(new, snapshot()).len(), 0);
            assert_eq!(relation::main_fork_blocks(rel), 1);
            assert_eq!(metapage::reserve_row_ids(rel, 1), 42);
            let entry = publish(rel, 2);
            assert_eq!(entry.first_block, 1);
            assert_eq!(content(rel, &entry, 1), ("page 1 of run 2".into(), true));
        });
    }
}
