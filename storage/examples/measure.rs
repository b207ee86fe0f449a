//! Prints size and speed of a segment of sensor readings: `cargo run --release --example measure -- [partitions]`.

use cass_storage::merge::{Cursor, Direction, Merge};
use cass_storage::row::{RowBuilder, RowHeader, RowKind, RowView};
use cass_storage::segment::{Column, ColumnClass, MemoryRun, PageSource, SegmentReader, SegmentWriter, WriterOptions};
use cass_storage::{page::Page, Result};
use std::hint::black_box;
use std::ops::Bound;
use std::time::Duration;

/// Time that this process had a processor, which neighbours on the machine do not disturb as much.
struct Instant(Duration);

impl Instant {
    fn now() -> Self {
        let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
        let nanoseconds = text.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0);
        Instant(Duration::from_nanos(nanoseconds))
    }

    fn elapsed(&self) -> Duration {
        Instant::now().0 - self.0
    }
}

const ROWS: u64 = 144;

/// Pages that were validated before, as a memory map keeps them.
struct Trusted(MemoryRun);

impl PageSource for Trusted {
    type Guard<'a> = &'a Page;

    fn page(&self, page_no: u32) -> Result<&Page> {
        Ok(&self.0.pages()[page_no as usize])
    }
}

fn prefix(partition: u64) -> Vec<u8> {
    let token = partition.wrapping_mul(0x9e37_79b9_7f4a_7c15 & !0xffff) + partition;
    let mut key = token.to_be_bytes().to_vec();
    key.extend_from_slice(format!("sensor-{partition:05}\0").as_bytes());
    key.extend_from_slice(&[0x80, 0, 0x26, 0x10]);
    key
}

fn main() -> Result<()> {
    let partitions: u64 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(10_000);
    let mut prefixes: Vec<_> = (0..partitions).map(prefix).collect();
    prefixes.sort();
    let columns =
        vec![Column { attnum: 4, class: ColumnClass::Float8 }, Column { attnum: 5, class: ColumnClass::Bytes }];
    let mut writer = SegmentWriter::new(MemoryRun::new(1, 1), WriterOptions::new(1, 1, columns));
    let mut row_id = 0;
    let mut random = 1u64;
    let header = RowHeader {
        kind: RowKind::Row,
        row_id,
        write_time: 1_700_000_000_000_000,
        marker: true,
        expiry: None,
        natts: 5,
    };
    let mut row = RowBuilder::new(header);
    let start = Instant::now();
    for prefix in &prefixes {
        let mut walk = 2000i64;
        for n in 0..ROWS {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            walk += (random >> 33) as i64 % 101 - 50;
            row_id += 1;
            row.reset(RowHeader { row_id, ..header });
            row.set_value(4, &(walk as f64 / 100.0).to_le_bytes());
            row.set_value(5, [&b"ok"[..], b"warning", b"error"][(random >> 60) as usize % 3]);
            let mut key = prefix.clone();
            key.extend_from_slice(&(!(1u64 << 63 | (780_000_000_000_000 - n * 600_000_000))).to_be_bytes());
            writer.push(&key, prefix.len(), &row)?;
        }
    }
    let (run, summary) = writer.finish()?;
    let rows = summary.row_count;
    let took = start.elapsed();
    println!(
        "write: {} ns a row, {:.2} bytes a row, {} pages",
        took.as_nanos() as u64 / rows,
        f64::from(summary.page_count) * 8192.0 / rows as f64,
        summary.page_count
    );

    let mut kinds = [0; 8];
    for page in run.pages() {
        kinds[usize::from(page[8160 + 20])] += 1;
    }
    println!("pages by kind: {kinds:?}");

    let reader = SegmentReader::open(Trusted(run), summary.page_count)?;
    let start = Instant::now();
    let mut cursor = reader.cursor(Bound::Unbounded, Bound::Unbounded, Direction::Forward)?;
    let mut read = 0;
    while cursor.key().is_some() {
        black_box((cursor.cell(4)?, cursor.cell(5)?));
        read += 1;
        cursor.advance()?;
    }
    println!("full scan, all columns: {} ns a row", start.elapsed().as_nanos() as u64 / read);

    let start = Instant::now();
    let mut merge =
        Merge::new(vec![reader.cursor(Bound::Unbounded, Bound::Unbounded, Direction::Forward)?], Direction::Forward);
    let mut read = 0;
    while let Some(cursor) = merge.next()? {
        black_box(cursor.key());
        read += 1;
    }
    println!("merged scan of keys: {} ns a row", start.elapsed().as_nanos() as u64 / read);

    for limit in [20, ROWS as usize] {
        let start = Instant::now();
        let tries = 20_000;
        for n in 0..tries {
            let prefix = &prefixes[n * 7919 % prefixes.len()];
            assert!(reader.may_contain(prefix)?);
            let mut cursor = reader.cursor(Bound::Included(prefix), Bound::Unbounded, Direction::Forward)?;
            for _ in 0..limit {
                black_box((cursor.key(), cursor.cell(4)?, cursor.cell(5)?));
                cursor.advance()?;
            }
        }
        println!("first {limit} rows of a partition: {:.1} us", start.elapsed().as_secs_f64() * 1e6 / tries as f64);
    }
    let start = Instant::now();
    let tries = 20_000;
    for n in 0..tries {
        let found = reader.find_row_id(n * 7919 % rows + 1)?;
        black_box(found.map(|cursor| cursor.header().row_id));
    }
    println!("row by id: {:.1} us", start.elapsed().as_secs_f64() * 1e6 / tries as f64);
    Ok(())
}
