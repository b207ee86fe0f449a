//! One version of one row: what it says, independent of how it is stored.
//!
//! A version is whole: it says for each column whether the column is absent, null or has a value, when it was
//! written and until when it lives, as a Cassandra row does. Versions lie in the delta as [`EncodedRow`] and in
//! segments column by column; both are read through [`RowView`].

mod builder;
mod encoded;

pub use builder::RowBuilder;
pub use encoded::{EncodedRow, OwnedRow, StoredRow};

pub(crate) use builder::put_extras;
pub(crate) use encoded::RowExtras;
pub(crate) use flags::{HAS_EXPIRY, HAS_RANGE_END, HAS_TIMES, KIND_BITS, MARKER};

/// Bits of the byte that tells what a version is and which parts it has.
mod flags {
    /// The number of its [`super::RowKind`].
    pub(crate) const KIND_BITS: u8 = 0x07;
    pub(crate) const MARKER: u8 = 0x08;
    pub(crate) const HAS_EXPIRY: u8 = 0x10;
    pub(crate) const HAS_TIMES: u8 = 0x20;
    pub(crate) const HAS_RANGE_END: u8 = 0x40;
}

use crate::error::{Result, StorageError};

/// What a version is.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowKind {
    /// A live row.
    Row = 1,
    /// The row of this key was deleted.
    RowTombstone = 2,
    /// Holds the key's lock in the delta; says nothing about the row and never lies in a segment.
    Anchor = 3,
    /// All rows from this key (inclusive) to the range end (exclusive) were deleted.
    RangeTombstone = 4,
    /// All rows of the partition were deleted.
    PartitionTombstone = 5,
    /// The partition's static columns.
    Static = 6,
    /// A row tombstone in the delta whose row was given another key, so that who waited for it cannot take it for deleted.
    /// In a segment it is a [`RowKind::RowTombstone`].
    Moved = 7,
}

impl RowKind {
    /// The kind stored as `byte`.
    ///
    /// # Errors
    /// `Damaged` if no kind has this number.
    pub fn from_byte(byte: u8) -> Result<Self> {
        Ok(match byte {
            1 => RowKind::Row,
            2 => RowKind::RowTombstone,
            3 => RowKind::Anchor,
            4 => RowKind::RangeTombstone,
            5 => RowKind::PartitionTombstone,
            6 => RowKind::Static,
            7 => RowKind::Moved,
            _ => return Err(StorageError::damaged("unknown kind of row")),
        })
    }

    /// Whether the version says that something was deleted.
    pub fn is_tombstone(self) -> bool {
        matches!(self, RowKind::RowTombstone | RowKind::Moved | RowKind::RangeTombstone | RowKind::PartitionTombstone)
    }
}

/// Largest row id: 48 bits, as a tuple identifier must carry it.
pub const MAX_ROW_ID: u64 = (1 << 48) - 1;

/// What is known of a version as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowHeader {
    /// What the version is.
    pub kind: RowKind,
    /// Names this version for ever; 1 to [`MAX_ROW_ID`] in tables, 0 where none was given.
    pub row_id: u64,
    /// Microseconds since the Unix epoch.
    pub write_time: i64,
    /// Row marker: the row exists even when all its cells are gone (it was written by INSERT).
    pub marker: bool,
    /// Seconds since the Unix epoch at which the row expires.
    pub expiry: Option<i64>,
    /// Number of attributes the table had when the version was written.
    pub natts: u16,
}

/// The state of one column in one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell<'a> {
    /// The version says nothing about the column.
    Absent,
    /// The column was set to null (a cell tombstone).
    Null,
    /// The column's value. Numbers are little-endian.
    Value(&'a [u8]),
    /// A pointer, opaque here, to a value that is kept elsewhere.
    External(&'a [u8]),
}

/// Write time and expiry of one cell, where they differ from the row's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellTimes {
    /// Microseconds since the Unix epoch.
    pub write_time: i64,
    /// Seconds since the Unix epoch.
    pub expiry: Option<i64>,
}

/// Reads one version, however it is stored.
pub trait RowView {
    /// The version as a whole.
    fn header(&self) -> &RowHeader;

    /// The cell of column `attnum` (from 1). A column the version does not know is [`Cell::Absent`].
    ///
    /// # Errors
    /// `Damaged` if the stored bytes make no sense.
    fn cell(&self, attnum: u16) -> Result<Cell<'_>>;

    /// Times of the cell of column `attnum`; `None` if they are the row's.
    ///
    /// # Errors
    /// `Damaged` if the stored bytes make no sense.
    fn cell_times(&self, attnum: u16) -> Result<Option<CellTimes>>;

    /// The exclusive end key of a [`RowKind::RangeTombstone`].
    fn range_end(&self) -> Option<&[u8]>;
}
