//! Damaged data with valid checksums: never a panic, a hang or a huge allocation.

mod common;

use cass_storage::merge::{Cursor, Direction};
use cass_storage::page::{self, PageIdentity, PageKind, CONTENT_CAPACITY};
use cass_storage::row::{EncodedRow, OwnedRow, RowView};
use cass_storage::segment::{MemoryRun, SegmentReader};
use cass_storage::{Result, StorageError};
use common::*;
use proptest::prelude::*;
use std::ops::Bound;

const KINDS: [PageKind; 7] = [
    PageKind::Leaf,
    PageKind::LeafContinuation,
    PageKind::Inner,
    PageKind::Filter,
    PageKind::RowIds,
    PageKind::RowIdInner,
    PageKind::Footer,
];

/// One change to a page's content.
#[derive(Clone, Debug)]
enum Damage {
    Byte(usize, u8),
    Truncate(usize),
    Garbage(Vec<u8>),
    CopyOf(usize),
    Kind(usize),
}

fn damage() -> impl Strategy<Value = (usize, Damage)> {
    let damage = prop_oneof![
        12 => (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Damage::Byte(at, byte)),
        // The heads of pages hold the counts and lengths.
        8 => (0usize..80, any::<u8>()).prop_map(|(at, byte)| Damage::Byte(at, byte)),
        1 => any::<usize>().prop_map(Damage::Truncate),
        1 => prop::collection::vec(any::<u8>(), 0..200).prop_map(Damage::Garbage),
        1 => any::<usize>().prop_map(Damage::CopyOf),
        1 => (0..KINDS.len()).prop_map(Damage::Kind),
    ];
    (any::<usize>(), damage)
}

/// Changes the page's content and seals it again.
fn apply(run: &mut MemoryRun, page_no: usize, damage: &Damage) {
    let page_no = page_no % run.pages().len();
    let (mut kind, mut content) =
        page::parse(&run.pages()[page_no]).map(|(kind, content)| (kind, content.to_vec())).unwrap();
    match damage {
        Damage::Byte(at, byte) if !content.is_empty() => {
            let at = at % content.len();
            content[at] ^= byte;
        }
        Damage::Byte(..) => {}
        Damage::Truncate(len) => content.truncate(len % CONTENT_CAPACITY),
        Damage::Garbage(bytes) => content.clone_from(bytes),
        Damage::CopyOf(other) => {
            let other = &run.pages()[other % run.pages().len()];
            (kind, content) = page::parse(other).map(|(kind, content)| (kind, content.to_vec())).unwrap();
        }
        Damage::Kind(index) => kind = KINDS[*index],
    }
    let identity = PageIdentity { storage_id: STORAGE_ID, run_id: RUN_ID, page_no: page_no as u32 };
    page::write(&mut run.pages_mut()[page_no], &identity, kind, &content).unwrap();
}

/// Uses a segment in every way; how many rows came out of the scans.
fn use_all(run: MemoryRun, model: &Model) -> Result<usize> {
    let page_count = run.pages().len() as u32;
    let reader = SegmentReader::open(run, page_count)?;
    let mut rows = 0;
    let mut scan = |lower: Bound<&[u8]>, upper: Bound<&[u8]>, direction| -> Result<()> {
        let mut cursor = reader.cursor(lower, upper, direction)?;
        while cursor.key().is_some() {
            rows += 1;
            // A damaged value may be an error of its own; the scan goes on.
            let _ = said(&cursor);
            cursor.advance()?;
        }
        Ok(())
    };
    for direction in [Direction::Forward, Direction::Backward] {
        let _ = scan(Bound::Unbounded, Bound::Unbounded, direction);
        for key in model.keys().step_by(37) {
            let _ = scan(Bound::Included(key), Bound::Excluded(key), direction);
            let _ = scan(Bound::Excluded(key), Bound::Unbounded, direction);
        }
    }
    for (key, row) in model.iter().step_by(23) {
        let _ = reader.may_contain(&key[..PARTITION_LEN]);
        if let Ok(Some(cursor)) = reader.find_row_id(row.header().row_id) {
            let _ = said(&cursor);
        }
    }
    Ok(rows)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn damage_under_a_valid_checksum_never_panics_or_hangs(
        model in model(300),
        damages in prop::collection::vec(prop::collection::vec(damage(), 1..4), 24),
    ) {
        let (run, _) = write(&model, PARTITION_LEN);
        for several in damages {
            let mut damaged = run.clone();
            several.iter().for_each(|(page_no, damage)| apply(&mut damaged, *page_no, damage));
            let _ = use_all(damaged, &model);
        }
    }

    #[test]
    fn a_damaged_row_never_panics(row in row(), changes in prop::collection::vec((any::<usize>(), any::<u8>()), 1..4), cut: usize) {
        let mut bytes = row.encode();
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] ^= byte;
        }
        let _ = EncodedRow::parse(&bytes).map(|row| said(&row));
        bytes.truncate(cut % (bytes.len() + 1));
        let _ = EncodedRow::parse(&bytes).map(|row| said(&row));
    }

    #[test]
    fn garbage_is_no_row_or_one_that_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        if let Ok(row) = EncodedRow::parse(&bytes) {
            prop_assert!(said(&row).is_ok());
        }
    }

    #[test]
    fn an_encoded_row_says_what_its_builder_said(rows in prop::collection::vec(row(), 1..4)) {
        let mut owned = OwnedRow::empty();
        for row in rows {
            let bytes = row.encode();
            prop_assert_eq!(said(&EncodedRow::parse(&bytes).unwrap()).unwrap(), said(&row).unwrap());
            owned.replace(&bytes).unwrap();
            prop_assert_eq!(said(&owned).unwrap(), said(&row).unwrap());
        }
    }
}

#[test]
fn a_flipped_bit_is_an_error_that_names_the_page() {
    let rows = readings(20, 144);
    let (run, page_count) = write(&rows, PARTITION_LEN);
    for page_no in 0..run.pages().len() {
        let mut damaged = run.clone();
        damaged.pages_mut()[page_no][4000] ^= 1;
        let found = SegmentReader::open(damaged, page_count).and_then(|reader| {
            read_all(reader.cursor(Bound::Unbounded, Bound::Unbounded, Direction::Forward)?)?;
            rows.keys().try_for_each(|key| reader.may_contain(&key[..PARTITION_LEN]).map(|_| ()))?;
            reader.find_row_id(1).map(|_| ())
        });
        match found {
            Err(StorageError::Damaged { page_no: Some(named), .. }) => assert_eq!(named as usize, page_no),
            other => panic!("page {page_no}: {other:?}"),
        }
    }
}

#[test]
fn a_run_that_is_too_short_or_of_another_version_is_refused() {
    let (run, page_count) = write(&readings(2, 10), PARTITION_LEN);
    for count in (0..page_count).chain([page_count + 1]) {
        assert!(SegmentReader::open(run.clone(), count).is_err());
    }
    let mut newer = run.clone();
    apply(&mut newer, page_count as usize - 1, &Damage::Byte(0, 0xff));
    assert!(matches!(SegmentReader::open(newer, page_count), Err(StorageError::Unsupported { .. })));
}
