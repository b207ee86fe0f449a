//! Checking a segment: nothing is told of a sound one, and each kind of damage under a valid checksum is found.

mod common;

use cass_storage::merge::{Cursor, Direction};
use cass_storage::page::{self, PageIdentity, PageKind, CONTENT_CAPACITY};
use cass_storage::row::{RowBuilder, RowHeader, RowView};
use cass_storage::segment::check::{check_segment, CheckOptions, CheckedRow, Fault, Part, Visitor};
use cass_storage::segment::{MemoryRun, SegmentReader};
use cass_storage::Result;
use common::*;
use proptest::prelude::*;
use std::ops::Bound;

/// 40 partitions of 60 rows that cannot be compressed, so that they take several leaves.
fn noisy() -> Model {
    let mut model = readings(40, 60);
    for (index, row) in model.values_mut().enumerate() {
        let mut number = index as u64 + 1;
        let noise = (0..6).flat_map(|_| {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            number.to_be_bytes()
        });
        row.set_value(9, &noise.collect::<Vec<u8>>());
    }
    model
}

/// Keeps what it hears.
#[derive(Default)]
struct Listener {
    faults: Vec<Fault>,
    keys: Vec<Vec<u8>>,
}

impl Visitor for Listener {
    fn fault(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    fn row(&mut self, row: &CheckedRow<'_>) -> Result<()> {
        self.keys.push(row.key.to_vec());
        Ok(())
    }
}

fn check(run: &MemoryRun) -> Listener {
    let options = CheckOptions { memory_bytes: 0, temp_directory: std::env::temp_dir() };
    let mut listener = Listener::default();
    check_segment(run, run.pages().len() as u32, &options, &mut listener).unwrap();
    listener
}

/// The parts and pages of all faults, and the words of the first.
fn faults_of(run: &MemoryRun) -> (Vec<(Part, Option<u32>)>, String) {
    let faults = check(run).faults;
    let what = faults.first().map(|fault| fault.what.clone()).unwrap_or_default();
    (faults.into_iter().map(|fault| (fault.part, fault.page_no)).collect(), what)
}

/// Changes the content of a page and seals it again.
fn change(run: &mut MemoryRun, page_no: usize, change: impl FnOnce(&mut Vec<u8>)) {
    let (kind, mut content) =
        page::parse(&run.pages()[page_no]).map(|(kind, content)| (kind, content.to_vec())).unwrap();
    change(&mut content);
    let identity = PageIdentity { storage_id: STORAGE_ID, run_id: RUN_ID, page_no: page_no as u32 };
    page::write(&mut run.pages_mut()[page_no], &identity, kind, &content).unwrap();
}

/// Numbers of the pages of a kind.
fn pages_of(run: &MemoryRun, kind: PageKind) -> Vec<usize> {
    let kinds = run.pages().iter().map(|page| page::parse(page).unwrap().0);
    kinds.enumerate().filter(|(_, found)| *found == kind).map(|(page_no, _)| page_no).collect()
}

/// A run of noisy rows, and the same with some rows changed. Both have the same pages in the same places.
fn twins(change: impl Fn(&mut Model)) -> (MemoryRun, MemoryRun) {
    let mut model = noisy();
    let (run, _) = write(&model, PARTITION_LEN);
    change(&mut model);
    let (twin, _) = write(&model, PARTITION_LEN);
    assert_eq!(run.pages().len(), twin.pages().len());
    (run, twin)
}

/// Puts the pages of a kind, or only the one at `index` among them, in the place of those of the other run.
fn transplant(run: &mut MemoryRun, from: &MemoryRun, kind: PageKind, index: Option<usize>) {
    let pages = pages_of(from, kind);
    for page_no in index.map_or(pages.clone(), |index| vec![pages[index]]) {
        run.pages_mut()[page_no] = from.pages()[page_no].clone();
    }
}

fn set_header(model: &mut Model, index: usize, set: impl Fn(RowHeader) -> RowHeader) {
    let row = model.values_mut().nth(index).unwrap();
    let header = set(*row.header());
    row.set_header(header);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_sound_segment_has_no_faults(rows in model(600), partition_len in prop::sample::select(vec![0, PARTITION_LEN])) {
        let (run, _) = write(&rows, partition_len);
        let listener = check(&run);
        prop_assert_eq!(listener.faults, vec![]);
        prop_assert_eq!(listener.keys, rows.into_keys().collect::<Vec<_>>());
    }

    #[test]
    fn what_passes_the_check_is_found_by_key_and_by_row_id(
        rows in model(400), page in any::<usize>(), at in any::<usize>(), near in any::<bool>(), byte in 1u8..=255,
    ) {
        let (mut run, page_count) = write(&rows, PARTITION_LEN);
        let page = page % run.pages().len();
        change(&mut run, page, |content| {
            let length = if near { content.len().min(40) } else { content.len() };
            if length > 0 {
                content[at % length] ^= byte;
            }
        });
        let listener = check(&run);
        if listener.faults.is_empty() {
            let reader = SegmentReader::open(run, page_count).unwrap();
            // A change may give rows other keys in the same order: only who knows their values can see that.
            prop_assert_eq!(listener.keys.len(), rows.len());
            for (key, row) in listener.keys.iter().zip(rows.values()) {
                prop_assert!(reader.may_contain(&key[..PARTITION_LEN]).unwrap());
                let (row_id, key) = (row.header().row_id, key.as_slice());
                let by_key = reader.cursor(Bound::Included(key), Bound::Included(key), Direction::Forward).unwrap();
                let by_row_id = reader.find_row_id(row_id).unwrap();
                for cursor in [Some(by_key), by_row_id] {
                    let found = cursor.as_ref().map(|cursor| (cursor.key(), cursor.header().row_id));
                    prop_assert_eq!(found, Some((Some(key), row_id)));
                }
            }
        }
    }
}

#[test]
fn a_flipped_bit_is_found_in_its_page_and_rows_of_other_leaves_are_seen() {
    let model = noisy();
    let (mut run, _) = write(&model, PARTITION_LEN);
    let leaf = pages_of(&run, PageKind::Leaf)[1];
    run.pages_mut()[leaf][4000] ^= 1;
    let listener = check(&run);
    let told: Vec<_> = listener.faults.iter().map(|fault| (fault.part, fault.page_no, fault.what.as_str())).collect();
    assert_eq!(told, [(Part::Page, Some(leaf as u32), "checksum does not match")]);
    assert!(listener.keys.len() > model.len() / 2 && listener.keys.len() < model.len());
}

#[test]
fn pages_in_each_others_places_are_found() {
    let (mut run, _) = write(&noisy(), PARTITION_LEN);
    run.pages_mut().swap(0, 1);
    let (parts, what) = faults_of(&run);
    assert_eq!(parts, [(Part::Page, Some(0)), (Part::Page, Some(1))]);
    assert!(what.contains("another one than expected"), "{what}");
}

#[test]
fn a_key_outside_the_bounds_of_its_leaf_is_found() {
    // The first leaf gets the rows of the fourth.
    let (mut run, _) = write(&noisy(), PARTITION_LEN);
    let leaves = pages_of(&run, PageKind::Leaf);
    let identity = PageIdentity { storage_id: STORAGE_ID, run_id: RUN_ID, page_no: leaves[0] as u32 };
    let content = page::parse(&run.pages()[leaves[3]]).unwrap().1.to_vec();
    page::write(&mut run.pages_mut()[leaves[0]], &identity, PageKind::Leaf, &content).unwrap();
    let faults = check(&run).faults;
    let whats: Vec<&str> = faults.iter().map(|fault| fault.what.as_str()).collect();
    assert!(whats.iter().any(|what| what.contains("outside the bounds that the inner pages set")), "{whats:?}");
    assert!(whats.iter().any(|what| what.contains("is not greater than the one before it")), "{whats:?}");
    assert!(whats.iter().any(|what| what.contains("is given to two rows")), "{whats:?}");
}

#[test]
fn a_child_that_is_another_page_is_found() {
    let (mut run, _) = write(&noisy(), PARTITION_LEN);
    let inner = pages_of(&run, PageKind::Inner)[0];
    // Count, level, zero, length of the common prefix, the prefix, two bytes a child, then the children's pages.
    change(&mut run, inner, |content| {
        let (count, common) = (usize::from(content[0]), usize::from(content[4]));
        let children = 6 + common + 2 * count;
        content[children + 4] = content[children];
    });
    let (parts, what) = faults_of(&run);
    assert!(parts.starts_with(&[(Part::Tree, Some(inner as u32)); 2]), "{parts:?}");
    assert!(what.contains("child page"), "{what}");
}

#[test]
fn separators_out_of_order_are_found() {
    let (mut run, _) = write(&noisy(), PARTITION_LEN);
    let inner = pages_of(&run, PageKind::Inner)[0];
    change(&mut run, inner, |content| {
        let (count, common) = (usize::from(content[0]), usize::from(content[4]));
        let rests = 6 + common + 6 * count;
        content[rests] = 0xff;
    });
    let faults = check(&run).faults;
    assert_eq!((faults[0].part, faults[0].page_no), (Part::Tree, Some(inner as u32)));
    assert!(faults[0].what.contains("is followed by"), "{faults:?}");
    assert!(
        faults.iter().any(|fault| fault.part == Part::Leaf && fault.what.contains("outside the bounds")),
        "{faults:?}"
    );
}

#[test]
fn a_page_that_nothing_leads_to_is_found() {
    let (mut run, _) = write(&noisy(), PARTITION_LEN);
    let inner = pages_of(&run, PageKind::Inner)[0];
    let leaves = pages_of(&run, PageKind::Leaf);
    change(&mut run, inner, |content| {
        let (count, common) = (usize::from(content[0]), usize::from(content[4]));
        let (ends, children) = (6 + common, 6 + common + 2 * count);
        content[0] -= 1;
        content.drain(children + 4 * (count - 1)..children + 4 * count);
        content.drain(ends + 2 * (count - 1)..ends + 2 * count);
    });
    let faults = check(&run).faults;
    let last = *leaves.last().unwrap() as u32;
    assert!(faults.contains(&Fault {
        part: Part::Page,
        page_no: Some(last),
        what: "nothing leads to the page".into()
    }));
    assert!(faults.iter().any(|fault| fault.part == Part::Footer && fault.what.contains("number of rows")));
    assert!(faults.iter().any(|fault| fault.part == Part::RowIds && fault.what.contains("which no row has")));
}

#[test]
fn a_row_id_map_of_other_rows_is_found() {
    let (mut run, twin) = twins(|model| set_header(model, 700, |header| RowHeader { row_id: 1 << 30, ..header }));
    transplant(&mut run, &twin, PageKind::RowIds, None);
    let faults = check(&run).faults;
    assert!(faults.iter().all(|fault| fault.part == Part::RowIds), "{faults:?}");
    let whats: Vec<&str> = faults.iter().map(|fault| fault.what.as_str()).collect();
    assert!(whats.contains(&"row id 701 of this leaf is not in the map"), "{whats:?}");
    assert!(whats.contains(&"the map has row ids 1073741824 to 1073741824, which no row has"), "{whats:?}");
}

#[test]
fn a_filter_of_other_partitions_is_found() {
    let (mut run, twin) = twins(|model| {
        let moved: Vec<(Vec<u8>, RowBuilder)> =
            model.iter().take(60).map(|(k, row)| (k.clone(), row.clone())).collect();
        for (key, row) in moved {
            model.remove(&key);
            model.insert([&[0xff, 0xff][..], &key[2..]].concat(), row);
        }
    });
    transplant(&mut run, &twin, PageKind::Filter, None);
    let (parts, what) = faults_of(&run);
    assert_eq!(parts, [(Part::Filter, Some(0))]);
    assert_eq!(what, "the filter does not admit partition 0000 of this leaf");
}

#[test]
fn a_footer_of_other_rows_is_found() {
    let (mut run, twin) = twins(|model| {
        set_header(model, 5, |header| RowHeader { write_time: header.write_time + 1, ..header });
    });
    transplant(&mut run, &twin, PageKind::Footer, None);
    let last = Some(run.pages().len() as u32 - 1);
    let (parts, what) = faults_of(&run);
    assert_eq!(parts, [(Part::Footer, last)]);
    assert!(what.contains("largest write time"), "{what}");
}

#[test]
fn a_run_without_a_footer_has_its_pages_looked_at_all_the_same() {
    let (mut run, _) = write(&noisy(), PARTITION_LEN);
    let last = run.pages().len() - 1;
    run.pages_mut()[0][4000] ^= 1;
    change(&mut run, last, |content| content.truncate(CONTENT_CAPACITY / 100));
    let (parts, _) = faults_of(&run);
    assert_eq!(parts, [(Part::Page, Some(0)), (Part::Footer, Some(last as u32))]);
}
