//! What a check tells.

use pgrx::pg_sys::{self, Datum};
use pgrx::IntoDatum;

use crate::pg::scratch::in_scratch;

/// Number of columns of a fault.
pub const COLUMNS: usize = 5;

/// What a fault is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Block 0 of the table, with its counters.
    Metapage,
    /// The page that spares reads the list and the delta.
    VisibilityMap,
    /// The rows of `cass_catalog.segment`.
    List,
    /// A page of a segment by itself.
    Page,
    /// An inner page of a segment, or the order of its leaves.
    Tree,
    /// A leaf of a segment, or the order of its keys.
    Leaf,
    /// The map from row ids to leaves of a segment.
    RowIdMap,
    /// The filter over partitions of a segment.
    Filter,
    /// The footer of a segment.
    Footer,
    /// A row version that does not fit the table or its key.
    Row,
    /// Row ids over all segments and the delta.
    RowId,
    /// The heap of the delta.
    Delta,
    /// An index of the delta.
    DeltaIndex,
    /// A value that was moved out of its row or compressed.
    Toast,
    /// A secondary index.
    Index,
    /// A read of the whole table.
    Scan,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Metapage => "metapage",
            Kind::VisibilityMap => "visibility map",
            Kind::List => "segment list",
            Kind::Page => "page",
            Kind::Tree => "tree",
            Kind::Leaf => "leaf",
            Kind::RowIdMap => "row id map",
            Kind::Filter => "filter",
            Kind::Footer => "footer",
            Kind::Row => "row",
            Kind::RowId => "row id",
            Kind::Delta => "delta",
            Kind::DeltaIndex => "delta index",
            Kind::Toast => "toast",
            Kind::Index => "index",
            Kind::Scan => "scan",
        }
    }
}

/// Takes faults as they are found, into a tuplestore that leaves memory when it grows.
pub struct Faults {
    store: *mut pg_sys::Tuplestorestate,
    descriptor: pg_sys::TupleDesc,
    count: u64,
}

impl Faults {
    /// Faults that go into a tuplestore.
    ///
    /// # Safety
    /// Both outlive the value made; the descriptor has the columns kind, relation, segment, block and detail: text, regclass,
    /// bigint, bigint, text.
    pub unsafe fn into_store(store: *mut pg_sys::Tuplestorestate, descriptor: pg_sys::TupleDesc) -> Faults {
        Faults { store, descriptor, count: 0 }
    }

    /// How many there are so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Adds one that is in no segment. `block` is of `relation`.
    pub fn add(&mut self, kind: Kind, relation: pg_sys::Oid, block: Option<u32>, detail: impl Into<String>) {
        self.put(kind, relation, None, block, detail.into());
    }

    /// Adds one of a segment of `table`.
    pub fn add_in_segment(
        &mut self,
        kind: Kind,
        table: pg_sys::Oid,
        run_id: u64,
        block: Option<u32>,
        detail: impl Into<String>,
    ) {
        self.put(kind, table, Some(run_id), block, detail.into());
    }

    fn put(&mut self, kind: Kind, relation: pg_sys::Oid, run: Option<u64>, block: Option<u32>, detail: String) {
        self.count += 1;
        in_scratch(|| {
            let values = [
                kind.name().into_datum(),
                relation.into_datum(),
                run.map(|run| run as i64).into_datum(),
                block.map(i64::from).into_datum(),
                detail.into_datum(),
            ];
            let mut nulls = values.map(|value| value.is_none());
            let mut values: [Datum; COLUMNS] = values.map(|value| value.unwrap_or(Datum::from(0_usize)));
            // SAFETY: promised when this was made; the tuplestore copies the values.
            unsafe {
                pg_sys::tuplestore_putvalues(self.store, self.descriptor, values.as_mut_ptr(), nulls.as_mut_ptr());
            }
        });
    }
}
