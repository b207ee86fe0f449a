//! Segments against a model in memory.

mod common;

use cass_storage::error::{Result, StorageError};
use cass_storage::merge::{Cursor, Direction};
use cass_storage::page::{self, Page, PageKind, CONTENT_CAPACITY};
use cass_storage::row::{RowBuilder, RowHeader, RowKind, RowView};
use cass_storage::segment::{
    Column, ColumnClass, MemoryRun, PageSource, SegmentReader, SegmentWriter, WriterOptions, MAX_KEY_LEN,
};
use common::*;
use proptest::prelude::*;
use std::ops::Bound;

fn said_by(model: &Model) -> Vec<(Vec<u8>, Said)> {
    model.iter().map(|(key, row)| (key.clone(), said(row).unwrap())).collect()
}

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![
        Just(Bound::Unbounded),
        key().prop_map(Bound::Included),
        key().prop_map(Bound::Excluded),
        (0u8..2, 0u8..4).prop_map(|(a, b)| Bound::Included(vec![a, b])),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_segment_gives_back_every_row_in_order(rows in model(600)) {
        let reader = open(&rows, PARTITION_LEN);
        let found = read_all(reader.cursor(Bound::Unbounded, Bound::Unbounded, Direction::Forward).unwrap()).unwrap();
        prop_assert_eq!(&found, &said_by(&rows));
        let mut found =
            read_all(reader.cursor(Bound::Unbounded, Bound::Unbounded, Direction::Backward).unwrap()).unwrap();
        found.reverse();
        prop_assert_eq!(found, said_by(&rows));
    }

    #[test]
    fn a_cursor_reads_exactly_what_lies_between_its_bounds(
        rows in model(400),
        bounds in prop::collection::vec((bound(), bound()), 1..12),
        picks in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 24),
    ) {
        let reader = open(&rows, PARTITION_LEN);
        // Half of the bounds are keys that are there.
        let keys: Vec<_> = rows.keys().collect();
        let mut picks = picks.into_iter();
        let mut pick = |bound: Bound<Vec<u8>>| match picks.next() {
            Some((true, index)) if !keys.is_empty() => bound.map(|_| keys[index.index(keys.len())].clone()),
            _ => bound,
        };
        for (lower, upper) in bounds {
            let (lower, upper) = (pick(lower), pick(upper));
            let within = |key: &Vec<u8>| {
                (match &lower {
                    Bound::Unbounded => true,
                    Bound::Included(low) => key >= low,
                    Bound::Excluded(low) => key > low,
                }) && (match &upper {
                    Bound::Unbounded => true,
                    Bound::Included(high) => key <= high,
                    Bound::Excluded(high) => key < high,
                })
            };
            let mut expected: Vec<_> = rows.keys().filter(|key| within(key)).cloned().collect();
            for direction in [Direction::Forward, Direction::Backward] {
                let cursor = reader.cursor(as_slice(&lower), as_slice(&upper), direction).unwrap();
                let found: Vec<_> = read_all(cursor).unwrap().into_iter().map(|(key, _)| key).collect();
                prop_assert_eq!(&found, &expected);
                expected.reverse();
            }
        }
    }

    #[test]
    fn each_row_is_found_by_its_id_and_no_other_id_is(rows in model(400)) {
        let reader = open(&rows, PARTITION_LEN);
        let ids: std::collections::HashSet<u64> = rows.values().map(|row| row.header().row_id).collect();
        for (key, row) in &rows {
            let id = row.header().row_id;
            let mut cursor = reader.find_row_id(id).unwrap().unwrap();
            prop_assert_eq!(cursor.key(), Some(&key[..]));
            prop_assert_eq!(said(&cursor).unwrap(), said(row).unwrap());
            cursor.advance().unwrap();
            prop_assert_eq!(cursor.key(), None);
            for other in [id - 1, id + 1, id + 20_000] {
                if !ids.contains(&other) {
                    prop_assert!(reader.find_row_id(other).unwrap().is_none());
                }
            }
        }
    }

    #[test]
    fn the_summary_counts_what_was_written(rows in model(300)) {
        let reader = open(&rows, PARTITION_LEN);
        let (summary, empty) = (reader.summary(), Vec::new());
        let headers = || rows.values().map(|row| *row.header());
        prop_assert_eq!(summary.row_count, rows.len() as u64);
        prop_assert_eq!(summary.tombstone_count, headers().filter(|header| header.kind.is_tombstone()).count() as u64);
        prop_assert_eq!(Some(&summary.min_key), rows.keys().next().or(Some(&empty)));
        prop_assert_eq!(Some(&summary.max_key), rows.keys().next_back().or(Some(&empty)));
        prop_assert_eq!(summary.min_write_time, headers().map(|header| header.write_time).min().unwrap_or(i64::MAX));
        prop_assert_eq!(summary.max_write_time, headers().map(|header| header.write_time).max().unwrap_or(i64::MIN));
        prop_assert_eq!(summary.max_row_id, headers().map(|header| header.row_id).max().unwrap_or(0));
        let mut partitions = std::collections::BTreeMap::new();
        rows.keys().for_each(|key| *partitions.entry(&key[..PARTITION_LEN]).or_insert(0u64) += 1);
        prop_assert_eq!(summary.partition_count, partitions.len() as u64);
        prop_assert_eq!(summary.partition_rows.iter().sum::<u64>(), partitions.len() as u64);
        let largest = summary.largest_partition.as_ref().map(|largest| largest.rows);
        prop_assert_eq!(largest, partitions.values().copied().max());
        for partition in partitions.keys() {
            prop_assert!(reader.may_contain(partition).unwrap());
        }
    }
}

fn simple(row_id: u64) -> RowBuilder {
    let kind = RowKind::Row;
    RowBuilder::new(RowHeader { kind, row_id, write_time: 5, marker: true, expiry: None, natts: 1 })
}

fn writer(class: ColumnClass) -> SegmentWriter<MemoryRun> {
    let columns = vec![Column { attnum: 1, class }];
    SegmentWriter::new(MemoryRun::new(1, 1), WriterOptions::new(1, 1, columns))
}

#[test]
fn the_filter_passes_few_partitions_that_are_not_there() {
    let mut writer = writer(ColumnClass::Int4);
    for n in 0..20_000u32 {
        writer.push(&n.to_be_bytes(), 4, &simple(u64::from(n) + 1)).unwrap();
    }
    let (run, summary) = writer.finish().unwrap();
    let reader = SegmentReader::open(run, summary.page_count).unwrap();
    assert!((0..20_000u32).all(|n| reader.may_contain(&n.to_be_bytes()).unwrap()));
    let passed = (20_000..120_000u32).filter(|n| reader.may_contain(&n.to_be_bytes()).unwrap()).count();
    assert!(passed < 2_000, "{passed} of 100000");
}

#[test]
fn an_empty_segment_has_no_rows() {
    let (run, summary) = writer(ColumnClass::Int4).finish().unwrap();
    let reader = SegmentReader::open(run, summary.page_count).unwrap();
    assert_eq!(reader.cursor(Bound::Unbounded, Bound::Unbounded, Direction::Forward).unwrap().key(), None);
    assert!(!reader.may_contain(b"x").unwrap());
    assert!(reader.find_row_id(1).unwrap().is_none());
}

#[test]
fn rows_larger_than_a_page_take_several() {
    let mut writer = writer(ColumnClass::Bytes);
    let mut random = 1u32;
    let mut value = Vec::new();
    for n in 0..6u64 {
        value.extend((0..20_000 * n).map(|_| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 24) as u8
        }));
        let mut row = simple(n + 1);
        row.set_value(1, &value);
        writer.push(&n.to_be_bytes(), 0, &row).unwrap();
    }
    let (run, summary) = writer.finish().unwrap();
    assert!(u64::from(summary.page_count) > 700_000 / 8192);
    let reader = SegmentReader::open(run, summary.page_count).unwrap();
    for direction in [Direction::Forward, Direction::Backward] {
        let mut cursor = reader.cursor(Bound::Unbounded, Bound::Unbounded, direction).unwrap();
        let mut lengths = Vec::new();
        while cursor.key().is_some() {
            let cass_storage::row::Cell::Value(found) = cursor.cell(1).unwrap() else { panic!("no value") };
            assert_eq!(found, &value[..found.len()]);
            lengths.push(found.len());
            cursor.advance().unwrap();
        }
        lengths.sort_unstable();
        assert_eq!(lengths, [0, 20_000, 60_000, 120_000, 200_000, 300_000]);
    }
}

#[test]
fn keys_up_to_the_limit_are_stored_and_longer_ones_refused() {
    let mut writer = writer(ColumnClass::Int4);
    for n in 0..200u8 {
        let mut key = vec![n; MAX_KEY_LEN];
        key[0] = 7;
        writer.push(&key, 1, &simple(u64::from(n) + 1)).unwrap();
    }
    let too_long = writer.push(&[8; MAX_KEY_LEN + 1], 1, &simple(500));
    assert!(matches!(too_long, Err(StorageError::TooLarge { .. })));
    let (run, summary) = writer.finish().unwrap();
    let reader = SegmentReader::open(run, summary.page_count).unwrap();
    for n in 0..200u8 {
        let mut key = vec![n; MAX_KEY_LEN];
        key[0] = 7;
        let cursor = reader.cursor(Bound::Included(&key), Bound::Included(&key), Direction::Forward).unwrap();
        assert_eq!(cursor.header().row_id, u64::from(n) + 1);
    }
}

#[test]
fn rows_that_cannot_be_stored_are_refused() {
    let refused = |result| matches!(result, Err(StorageError::Refused { .. }));
    let mut value = simple(1);
    value.set_value(1, b"12345");
    assert!(refused(writer(ColumnClass::Int4).push(b"a", 0, &value)));
    let mut external = simple(1);
    external.set_external(1, b"1234");
    assert!(refused(writer(ColumnClass::Int4).push(b"a", 0, &external)));
    let anchor = RowBuilder::new(RowHeader { kind: RowKind::Anchor, ..*simple(1).header() });
    assert!(refused(writer(ColumnClass::Int4).push(b"a", 0, &anchor)));
    assert!(refused(writer(ColumnClass::Int4).push(b"a", 2, &simple(1))));
    let mut unordered = writer(ColumnClass::Int4);
    unordered.push(b"b", 0, &simple(1)).unwrap();
    assert!(refused(unordered.push(b"b", 0, &simple(2))));
    assert!(refused(unordered.push(b"a", 0, &simple(3))));
}

#[test]
fn readings_of_sensors_take_few_bytes_and_fill_their_pages() {
    let rows = readings(400, 144);
    let (run, page_count) = write(&rows, PARTITION_LEN);
    let bytes = run.pages().len() * 8192;
    let per_row = bytes as f64 / rows.len() as f64;
    assert!(per_row < 4.0, "{per_row} bytes a row");
    let reader = SegmentReader::open(run, page_count).unwrap();
    let found = read_all(reader.cursor(Bound::Unbounded, Bound::Unbounded, Direction::Forward).unwrap()).unwrap();
    assert_eq!(found, said_by(&rows));
}

/// Counts the pages that are asked for.
struct Counting(MemoryRun, std::cell::RefCell<std::collections::BTreeSet<u32>>);

impl PageSource for Counting {
    type Guard<'a> = &'a Page;

    fn page(&self, page_no: u32) -> Result<&Page> {
        self.1.borrow_mut().insert(page_no);
        self.0.page(page_no)
    }
}

#[test]
fn the_first_rows_of_a_large_partition_touch_four_pages() {
    let rows = readings(3, 30_000);
    let (run, page_count) = write(&rows, PARTITION_LEN);
    let reader = SegmentReader::open(Counting(run, Default::default()), page_count).unwrap();
    reader.source().1.borrow_mut().clear();
    let partition = [0, 1];
    assert!(reader.may_contain(&partition).unwrap());
    let upper = [0, 2];
    let bounds = (Bound::Included(&partition[..]), Bound::Excluded(&upper[..]));
    let mut cursor = reader.cursor(bounds.0, bounds.1, Direction::Backward).unwrap();
    for n in (29_980..30_000u64).rev() {
        assert_eq!(cursor.header().row_id, 30_001 + n);
        cursor.advance().unwrap();
    }
    assert!(reader.source().1.borrow().len() <= 4, "{:?}", reader.source().1.borrow());
}

#[test]
fn leaves_fill_their_pages() {
    let mut writer = writer(ColumnClass::Bytes);
    let mut random = 1u64;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        random >> 32
    };
    for n in 0..20_000u64 {
        let mut row = simple(n + 1);
        let text: Vec<u8> = (0..next() % 120).map(|_| b'a' + (next() % 16) as u8).collect();
        row.set_value(1, &text);
        writer.push(&n.to_be_bytes(), 0, &row).unwrap();
    }
    let (run, _) = writer.finish().unwrap();
    let used: Vec<usize> = run
        .pages()
        .iter()
        .filter_map(|page| match page::parse(page).unwrap() {
            (PageKind::Leaf, content) => Some(content.len()),
            _ => None,
        })
        .collect();
    let average = used.iter().sum::<usize>() as f64 / used.len() as f64 / CONTENT_CAPACITY as f64;
    assert!(used.len() > 50 && average > 0.93, "{} leaves filled by {average}", used.len());
}

#[test]
fn trees_of_several_pages_lead_to_every_key_and_row_id() {
    let mut writer = writer(ColumnClass::Bytes);
    let count = 4_000u64;
    let id_of = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16 | 1;
    for n in 0..count {
        let mut row = simple(id_of(n));
        row.set_value(1, &[&n.to_be_bytes()[..], &n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()].concat());
        writer.push(&n.to_be_bytes(), 0, &row).unwrap();
    }
    let (run, summary) = writer.finish().unwrap();
    let kinds: Vec<_> = run.pages().iter().map(|page| page::parse(page).unwrap().0).collect();
    let pages_of = |kind| kinds.iter().filter(|found| **found == kind).count();
    assert_eq!((pages_of(PageKind::RowIds) > 1, pages_of(PageKind::RowIdInner)), (true, 1));
    assert_eq!((pages_of(PageKind::Leaf) > 2, pages_of(PageKind::Inner)), (true, 1));
    let reader = SegmentReader::open(run, summary.page_count).unwrap();
    let mut ids = Vec::new();
    reader.row_id_runs(|first, number| ids.extend(first..first + number)).unwrap();
    let mut expected: Vec<u64> = (0..count).map(id_of).collect();
    expected.sort_unstable();
    assert_eq!(ids, expected);
    for n in 0..count {
        let key = n.to_be_bytes();
        let direction = if n % 2 == 0 { Direction::Backward } else { Direction::Forward };
        let cursor = reader.cursor(Bound::Included(&key), Bound::Included(&key), direction).unwrap();
        assert_eq!((cursor.key(), cursor.header().row_id), (Some(&key[..]), id_of(n)));
        assert_eq!(reader.find_row_id(id_of(n)).unwrap().unwrap().key(), Some(&key[..]));
        assert!(reader.find_row_id(id_of(n) + 1).unwrap().is_none());
    }
}
