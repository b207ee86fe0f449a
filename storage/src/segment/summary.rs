//! What a segment's columns are and what it holds as a whole.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// How the values of a column are encoded. A value must have the class's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ColumnClass {
    /// One byte, signed.
    Int1,
    /// Two bytes, little-endian, signed.
    Int2,
    /// Four bytes, little-endian, signed.
    Int4,
    /// Eight bytes, little-endian, signed.
    Int8,
    /// IEEE 754 single, little-endian.
    Float4,
    /// IEEE 754 double, little-endian.
    Float8,
    /// So many bytes, without further meaning.
    Fixed(u16),
    /// Any number of bytes; the only class that may hold external values.
    Bytes,
}

impl ColumnClass {
    /// Length of each value, where all have the same.
    pub fn width(self) -> Option<usize> {
        Some(match self {
            ColumnClass::Int1 => 1,
            ColumnClass::Int2 => 2,
            ColumnClass::Int4 | ColumnClass::Float4 => 4,
            ColumnClass::Int8 | ColumnClass::Float8 => 8,
            ColumnClass::Fixed(width) => usize::from(width),
            ColumnClass::Bytes => return None,
        })
    }
}

/// A column of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Number of the attribute, from 1.
    pub attnum: u16,
    /// How its values are encoded.
    pub class: ColumnClass,
}

/// What a writer must be told.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// Storage id in each page.
    pub storage_id: u64,
    /// Run id in each page.
    pub run_id: u64,
    /// Columns to store, each attnum once. Cells of other columns are not stored.
    pub columns: Vec<Column>,
    /// Folder for temporary files, used when a segment's row ids or partitions do not fit into `memory_bytes`.
    pub temp_directory: PathBuf,
    /// Memory for sorting row ids and partitions.
    pub memory_bytes: usize,
}

impl WriterOptions {
    /// Options with the system's folder for temporary files and 16 MB of memory.
    pub fn new(storage_id: u64, run_id: u64, columns: Vec<Column>) -> Self {
        WriterOptions { storage_id, run_id, columns, temp_directory: std::env::temp_dir(), memory_bytes: 16 << 20 }
    }
}

/// The partition with the most rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LargestPartition {
    /// The bytes with which its keys start.
    pub key: Vec<u8>,
    /// Its rows, tombstones included.
    pub rows: u64,
    /// Bytes of its keys and values before encoding.
    pub bytes: u64,
}

/// What a segment holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentSummary {
    /// Pages of the run.
    pub page_count: u32,
    /// The page with the end of the footer: the run's last.
    pub footer_page: u32,
    /// Versions, tombstones and static rows included.
    pub row_count: u64,
    /// Row, range and partition tombstones.
    pub tombstone_count: u64,
    /// Different partition prefixes; 0 if keys have none.
    pub partition_count: u64,
    /// `partition_rows[n]` partitions have 2^n to 2^(n+1)-1 rows.
    pub partition_rows: Vec<u64>,
    /// Smallest key; empty if there is no row.
    pub min_key: Vec<u8>,
    /// Largest key; empty if there is no row.
    pub max_key: Vec<u8>,
    /// Smallest write time of a row, `i64::MAX` if there is none.
    pub min_write_time: i64,
    /// Largest write time of a row, `i64::MIN` if there is none.
    pub max_write_time: i64,
    /// Smallest expiry of a row or cell.
    pub min_expiry: Option<i64>,
    /// Largest expiry of a row or cell.
    pub max_expiry: Option<i64>,
    /// Largest row id, 0 if there is none.
    pub max_row_id: u64,
    /// Bytes of keys and values before encoding.
    pub raw_bytes: u64,
    /// The partition with the most rows, if keys have partitions.
    pub largest_partition: Option<LargestPartition>,
}
