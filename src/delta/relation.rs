//! Opening a table's delta and forming its tuples.

use super::{create, lost};
use crate::error::Report;
use crate::pg::bytea;
use crate::pg::snapshot::is_serializable;
use cass_storage::row::RowKind;
use pgrx::pg_sys;
use std::ffi::c_int;

/// Attribute numbers of the delta's columns.
pub mod column {
    pub const STORAGE_ID: i16 = 1;
    pub const KEY: i16 = 2;
    pub const ROW_ID: i16 = 3;
    pub const KIND: i16 = 4;
    pub const ROW: i16 = 5;
    pub const COUNT: usize = 5;
}

/// An open delta. It has no `Drop`: PostgreSQL's resource owner closes what an error leaves open, so [`Delta::close`] is
/// called on the ordinary way out only. Locks are held to the transaction's end.
pub struct Delta {
    pub heap: pg_sys::Relation,
    pub key_index: pg_sys::Relation,
    pub row_id_index: pg_sys::Relation,
    /// The life of the table whose rows count.
    pub storage_id: u64,
}

/// A delta as a read finds it.
pub enum ForReading {
    /// The table has none.
    Missing,
    /// It holds no row.
    Empty,
    Open(Delta),
}

impl Delta {
    /// Opens the delta of `table`, or `None` where the table has none yet.
    pub fn open(table: pg_sys::Relation, storage_id: u64, lock_mode: u32) -> Option<Delta> {
        find(table).map(|oid| Self::open_oid(oid, storage_id, lock_mode as c_int))
    }

    /// Opens the delta of `table` for writing and makes it where it is missing (after pg_upgrade).
    ///
    /// # Errors
    /// XX001 where it is missing although it held rows.
    pub fn open_or_create(table: pg_sys::Relation, storage_id: u64) -> Delta {
        let mode = pg_sys::RowExclusiveLock;
        if let Some(delta) = Self::open(table, storage_id, mode) {
            return delta;
        }
        // SAFETY: `table` is open. Whoever comes second waits here until the first one's delta is committed.
        unsafe {
            let exclusive = pg_sys::ExclusiveLock as c_int;
            pg_sys::LockDatabaseObject(pg_sys::RelationRelationId, (*table).rd_id, 0, exclusive);
        }
        match Self::open(table, storage_id, mode) {
            Some(delta) => delta,
            None => {
                lost::refuse_if_lost(table);
                Self::open_oid(create::create(table), storage_id, mode as c_int)
            }
        }
    }

    /// Whether a rollback would take the delta away and leave `table`: this transaction has made it by a first write.
    pub fn is_younger_than(&self, table: pg_sys::Relation) -> bool {
        // SAFETY: both relations are open; 0 is no subtransaction.
        unsafe { (*self.heap).rd_createSubid != 0 && (*table).rd_createSubid == 0 }
    }

    /// Opens the delta of `table` for a read, if it can hold rows. What a snapshot sees has been written before the snapshot was
    /// taken, so a heap without blocks has none; but a SERIALIZABLE read leaves its locks in the index all the same.
    pub fn open_for_reading(table: pg_sys::Relation, storage_id: u64) -> ForReading {
        let mode = pg_sys::AccessShareLock as c_int;
        let Some(oid) = find(table) else {
            return ForReading::Missing;
        };
        // SAFETY: `oid` names a delta; its heap is closed here unless the delta keeps it.
        unsafe {
            let heap = pg_sys::table_open(oid, mode);
            if !is_serializable() && crate::segment::relation::main_fork_blocks(heap) == 0 {
                pg_sys::table_close(heap, pg_sys::NoLock as c_int);
                return ForReading::Empty;
            }
            ForReading::Open(Self::of_heap(heap, storage_id, mode))
        }
    }

    fn open_oid(oid: pg_sys::Oid, storage_id: u64, lock_mode: c_int) -> Delta {
        // SAFETY: `oid` names a relation of ours.
        unsafe { Self::of_heap(pg_sys::table_open(oid, lock_mode), storage_id, lock_mode) }
    }

    /// # Safety
    /// `heap` is the open heap of a delta.
    unsafe fn of_heap(heap: pg_sys::Relation, storage_id: u64, lock_mode: c_int) -> Delta {
        // SAFETY: promised by the caller; its index list is copied by RelationGetIndexList.
        unsafe {
            let list = pg_sys::RelationGetIndexList(heap);
            let indexes = pgrx::PgList::<pg_sys::Oid>::from_pg(list);
            let (mut key_index, mut row_id_index) = (std::ptr::null_mut(), std::ptr::null_mut());
            for index in indexes.iter_oid() {
                let index = pg_sys::index_open(index, lock_mode);
                if (*(*index).rd_index).indisunique {
                    key_index = index;
                } else {
                    row_id_index = index;
                }
            }
            if key_index.is_null() || row_id_index.is_null() {
                Report::new("XX001", "an index of a delta is missing")
                    .detail(format!("The delta is relation {}.", (*heap).rd_id.to_u32()))
                    .raise();
            }
            Delta { heap, key_index, row_id_index, storage_id }
        }
    }

    /// Closes the relations and keeps the locks.
    pub fn close(self) {
        let heap = self.heap;
        self.close_indexes();
        // SAFETY: opened by `of_heap`'s callers and closed once, since `self` was consumed.
        unsafe { pg_sys::table_close(heap, pg_sys::NoLock as c_int) }
    }

    /// Closes the indexes and keeps the locks; the heap stays open for the caller to close.
    pub fn close_indexes(self) {
        // SAFETY: both were opened by `of_heap` and are closed once, since `self` is consumed.
        unsafe {
            pg_sys::index_close(self.row_id_index, pg_sys::NoLock as c_int);
            pg_sys::index_close(self.key_index, pg_sys::NoLock as c_int);
        }
    }

    /// Forms a delta tuple in the current memory context.
    ///
    /// # Errors
    /// 54000 where key and row do not fit on a page together.
    pub fn form_tuple(&self, key: &[u8], row_id: u64, kind: RowKind, row: &[u8]) -> pg_sys::HeapTuple {
        let mut values = [
            pg_sys::Datum::from(self.storage_id as i64),
            bytea::from_bytes(key),
            pg_sys::Datum::from(row_id as i64),
            pg_sys::Datum::from(kind as i16),
            bytea::from_bytes(row),
        ];
        let mut nulls = [false; column::COUNT];
        // SAFETY: values and nulls have as many elements as the descriptor has columns, of its types.
        let tuple = unsafe { pg_sys::heap_form_tuple((*self.heap).rd_att, values.as_mut_ptr(), nulls.as_mut_ptr()) };
        // SAFETY: heap_form_tuple returns a valid tuple or raises.
        let size = unsafe { (*tuple).t_len } as usize;
        if size > MAX_TUPLE_SIZE {
            Report::new("54000", "row is too big")
                .detail(format!("The row needs {size} bytes with its key, {MAX_TUPLE_SIZE} are the most."))
                .hint("Use fewer or shorter columns; text and bytea are moved out of the row when they are large.")
                .raise();
        }
        tuple
    }
}

/// The delta of an open, locked table. One found by name stays as long as the table it depends on.
fn find(table: pg_sys::Relation) -> Option<pg_sys::Oid> {
    // SAFETY: `table` is open.
    unsafe {
        let (name, schema) = (create::name_of((*table).rd_id), create::namespace_of(table));
        let mut oid = pg_sys::get_relname_relid(name.as_ptr(), schema);
        if oid == pg_sys::InvalidOid {
            // Somebody may have made it since this backend heard of the catalogs last.
            pg_sys::AcceptInvalidationMessages();
            oid = pg_sys::get_relname_relid(name.as_ptr(), schema);
        }
        (oid != pg_sys::InvalidOid).then_some(oid)
    }
}

/// `MaxHeapTupleSize` of 8 kB pages: a page less its header and one line pointer, rounded to 8 bytes.
pub const MAX_TUPLE_SIZE: usize = 8160;

/// A delta row as it lies in a buffer or slot.
#[derive(Clone, Copy)]
pub struct RawRow<'a> {
    pub key: &'a [u8],
    pub row_id: u64,
    pub kind: RowKind,
    pub row: &'a [u8],
}

impl<'a> RawRow<'a> {
    /// Reads the columns of a delta tuple.
    ///
    /// # Safety
    /// `tuple` is a tuple of `delta`'s heap whose memory (its pinned buffer, say) outlives `'a`.
    pub unsafe fn of_tuple(delta: pg_sys::Relation, tuple: pg_sys::HeapTuple) -> RawRow<'a> {
        // SAFETY: promised by the caller; all columns are NOT NULL and stored plain.
        unsafe {
            let mut values = [pg_sys::Datum::from(0); column::COUNT];
            let mut nulls = [false; column::COUNT];
            pg_sys::heap_deform_tuple(tuple, (*delta).rd_att, values.as_mut_ptr(), nulls.as_mut_ptr());
            RawRow::of_values(&values)
        }
    }

    /// # Safety
    /// `values` are those of one delta tuple whose memory outlives `'a`.
    pub unsafe fn of_values(values: &[pg_sys::Datum]) -> RawRow<'a> {
        // SAFETY: promised by the caller; key and row are plain varlenas.
        unsafe {
            RawRow {
                key: bytea::bytes_of(values[column::KEY as usize - 1]),
                row_id: values[column::ROW_ID as usize - 1].value() as u64,
                kind: kind_of(values[column::KIND as usize - 1].value() as i16),
                row: bytea::bytes_of(values[column::ROW as usize - 1]),
            }
        }
    }
}

fn kind_of(number: i16) -> RowKind {
    match u8::try_from(number).ok().and_then(|byte| RowKind::from_byte(byte).ok()) {
        Some(kind) => kind,
        None => Report::new("XX001", format!("delta row is damaged: it has the unknown kind {number}")).raise(),
    }
}
