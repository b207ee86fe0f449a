//! Rows of every shape, for tests of segments.
#![allow(dead_code)] // each test file uses a part

use cass_storage::error::Result;
use cass_storage::merge::Cursor;
use cass_storage::row::{Cell, CellTimes, RowBuilder, RowHeader, RowKind, RowView};
use cass_storage::segment::{
    Column, ColumnClass, MemoryRun, SegmentCursor, SegmentReader, SegmentWriter, WriterOptions,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

pub const STORAGE_ID: u64 = 0xfeed_beef_1234_5678;
pub const RUN_ID: u64 = 42;

/// Bytes of a key that name its partition.
pub const PARTITION_LEN: usize = 2;

pub type Model = BTreeMap<Vec<u8>, RowBuilder>;
pub type Reader = SegmentReader<MemoryRun>;

pub fn columns() -> Vec<Column> {
    use ColumnClass::*;
    let classes = [Int1, Int2, Int4, Int8, Float4, Float8, Fixed(16), Bytes, Bytes];
    // Attribute 5 is not stored: a key column whose value is in the key.
    let attnums = [1, 2, 3, 4, 6, 7, 8, 9, 10];
    attnums.iter().zip(classes).map(|(attnum, class)| Column { attnum: *attnum, class }).collect()
}

pub fn write(model: &Model, partition_len: usize) -> (MemoryRun, u32) {
    let options = WriterOptions::new(STORAGE_ID, RUN_ID, columns());
    let mut writer = SegmentWriter::new(MemoryRun::new(STORAGE_ID, RUN_ID), options);
    for (key, row) in model {
        writer.push(key, partition_len, row).unwrap();
    }
    let (run, summary) = writer.finish().unwrap();
    assert_eq!(summary.page_count as usize, run.pages().len());
    assert_eq!(summary.row_count as usize, model.len());
    (run, summary.page_count)
}

pub fn open(model: &Model, partition_len: usize) -> Reader {
    let (run, page_count) = write(model, partition_len);
    SegmentReader::open(run, page_count).unwrap()
}

/// Everything a row says, to be compared.
#[derive(Debug, PartialEq)]
pub struct Said {
    header: RowHeader,
    cells: Vec<String>,
    times: Vec<Option<CellTimes>>,
    range_end: Option<Vec<u8>>,
}

pub fn said(row: &dyn RowView) -> Result<Said> {
    let stored = columns();
    let mut said = Said {
        header: *row.header(),
        cells: Vec::new(),
        times: Vec::new(),
        range_end: row.range_end().map(<[u8]>::to_vec),
    };
    for Column { attnum, .. } in stored {
        let cell = row.cell(attnum)?;
        said.cells.push(match cell {
            Cell::Value(bytes) if bytes.len() > 40 => {
                format!("{} bytes {:x}", bytes.len(), crc32c::crc32c(bytes))
            }
            _ => format!("{cell:?}"),
        });
        said.times.push(row.cell_times(attnum)?);
    }
    Ok(said)
}

/// Reads a cursor to its end.
pub fn read_all(mut cursor: SegmentCursor<MemoryRun>) -> Result<Vec<(Vec<u8>, Said)>> {
    let mut rows = Vec::new();
    while let Some(key) = cursor.key() {
        rows.push((key.to_vec(), said(&cursor)?));
        cursor.advance()?;
    }
    Ok(rows)
}

fn value(class: ColumnClass) -> BoxedStrategy<Vec<u8>> {
    match class.width() {
        None => prop_oneof![
            4 => prop::sample::select(vec!["ok", "warning", "error", ""]).prop_map(|text| text.as_bytes().to_vec()),
            4 => prop::collection::vec(any::<u8>(), 0..12),
            1 => prop::collection::vec(b'a'..=b'c', 0..300),
        ]
        .boxed(),
        Some(width) => prop_oneof![
            3 => (-50i64..50).prop_map(move |n| n.to_le_bytes().into_iter().cycle().take(width).collect::<Vec<u8>>()),
            1 => prop::collection::vec(any::<u8>(), width),
        ]
        .boxed(),
    }
}

#[derive(Clone, Debug)]
enum AnyCell {
    Absent,
    Null,
    Value(Vec<u8>),
    External(Vec<u8>),
}

fn cell(class: ColumnClass) -> BoxedStrategy<AnyCell> {
    let external = if class == ColumnClass::Bytes { 1 } else { 0 };
    prop_oneof![
        1 => Just(AnyCell::Absent),
        1 => Just(AnyCell::Null),
        8 => value(class).prop_map(AnyCell::Value),
        external => prop::collection::vec(any::<u8>(), 10..20).prop_map(AnyCell::External),
    ]
    .boxed()
}

fn header() -> impl Strategy<Value = RowHeader> {
    let kind = prop_oneof![
        20 => Just(RowKind::Row),
        1 => Just(RowKind::RowTombstone),
        1 => Just(RowKind::RangeTombstone),
        1 => Just(RowKind::PartitionTombstone),
        1 => Just(RowKind::Static),
    ];
    let time = prop_oneof![4 => 1_700_000_000_000_000i64..1_700_000_001_000_000, 1 => any::<i64>()];
    (kind, time, prop::bool::weighted(0.9), prop::option::weighted(0.1, any::<i64>()), 8u16..12).prop_map(
        |(kind, write_time, marker, expiry, natts)| RowHeader { kind, row_id: 0, write_time, marker, expiry, natts },
    )
}

pub fn row() -> impl Strategy<Value = RowBuilder> {
    let cells: Vec<_> = columns().into_iter().map(|column| cell(column.class)).collect();
    let times = prop_oneof![
        10 => Just(Vec::new()),
        1 => prop::collection::vec((prop::sample::select(vec![1u16, 4, 9]), any::<i64>(), any::<Option<i64>>()), 1..4),
    ];
    (header(), cells, times, prop::collection::vec(any::<u8>(), 0..6)).prop_map(|(header, cells, times, range_end)| {
        let mut row = RowBuilder::new(header);
        for (column, cell) in columns().iter().zip(cells) {
            match cell {
                AnyCell::Absent => row.set_absent(column.attnum),
                AnyCell::Null => row.set_null(column.attnum),
                AnyCell::Value(value) => row.set_value(column.attnum, &value),
                AnyCell::External(pointer) => row.set_external(column.attnum, &pointer),
            }
        }
        for (attnum, write_time, expiry) in times {
            row.set_times(attnum, Some(CellTimes { write_time, expiry }));
        }
        if header.kind == RowKind::RangeTombstone {
            row.set_range_end(&range_end);
        }
        row
    })
}

/// A key: partition of two bytes, then a suffix of 8 bytes or of any length.
pub fn key() -> impl Strategy<Value = Vec<u8>> {
    let suffix = prop_oneof![
        (0u64..5000).prop_map(|n| ((1u64 << 63) | (n * 600)).to_be_bytes().to_vec()),
        prop::collection::vec(0u8..4, 0..14),
    ];
    ((0u8..2, 0u8..4), suffix).prop_map(|((a, b), suffix)| [vec![a, b], suffix].concat())
}

/// Up to `most` rows; their row ids are random or in the order of keys.
pub fn model(most: usize) -> impl Strategy<Value = Model> {
    let rows = prop::collection::btree_map(key(), row(), 0..most);
    (rows, any::<bool>(), 1u64..1 << 40).prop_map(|(mut rows, consecutive, start)| {
        for (index, row) in rows.values_mut().enumerate() {
            let step = if consecutive { index as u64 } else { index as u64 * 7919 % 10_007 };
            let header = RowHeader { row_id: start + step, ..*row.header() };
            row.set_header(header);
        }
        rows
    })
}

/// A quick model with many rows: the shape of the benchmark.
pub fn readings(partitions: u32, rows: u32) -> Model {
    let mut model = Model::new();
    let mut id = 0;
    for partition in 0..partitions {
        let mut walk = 2000i64;
        for n in 0..rows {
            id += 1;
            walk += i64::from(partition.wrapping_mul(31).wrapping_add(n.wrapping_mul(7919)) % 101) - 50;
            let mut key = (partition as u16).to_be_bytes().to_vec();
            key.extend_from_slice(&((1u64 << 63) | (780_000_000_000_000 + u64::from(n) * 600_000_000)).to_be_bytes());
            let header = RowHeader {
                kind: RowKind::Row,
                row_id: id,
                write_time: 1_700_000_000_000_000,
                marker: true,
                expiry: None,
                natts: 10,
            };
            let mut row = RowBuilder::new(header);
            row.set_value(7, &(walk as f64 / 100.0).to_le_bytes());
            row.set_value(9, ["ok", "warning", "error"][(walk % 7 / 3) as usize % 3].as_bytes());
            model.insert(key, row);
        }
    }
    model
}
