//! Bytes changed in the files of a table: metapage, visibility map, and the pages of a segment.

use super::damage::{cluster, edit, edit_page, faults_of};
use cass_server_tests::Cluster;
use cass_storage::page::{PageKind, PAGE_SIZE};

#[test]
fn a_flipped_bit_of_a_page_is_found() {
    let mut cluster = cluster();
    edit(&mut cluster, "t", "", |bytes| bytes[2 * PAGE_SIZE + 4000] ^= 1);
    assert_eq!(faults_of(&cluster), ["page|t|1|2|page 1 of the segment: checksum does not match"]);
}

/// What PostgreSQL itself has against a block is told in its words, which name the relation in quotes or without, by its version.
#[test]
fn a_block_that_postgresql_refuses_is_found() {
    let mut cluster = Cluster::new();
    super::damage::create(&mut cluster.connect());
    cluster.expect_damage();
    edit(&mut cluster, "t", "", |bytes| bytes[2 * PAGE_SIZE + 4000] ^= 1);
    let faults = faults_of(&cluster);
    assert_eq!(faults.len(), 1, "{faults:?}");
    let start = "page|t|1|2|page 1 of the segment: invalid page in block 2 of relation base/";
    assert!(faults[0].replace('"', "").starts_with(start), "{faults:?}");
}

#[test]
fn a_metapage_that_is_damaged_or_gives_numbers_again_is_found() {
    let mut cluster = cluster();
    // Offset 56 has the next row id, 36 the checksum of what lies before and behind it.
    edit(&mut cluster, "t", "", |bytes| {
        bytes[56..64].copy_from_slice(&10_u64.to_le_bytes());
        let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[24..36]), &bytes[40..80]);
        bytes[36..40].copy_from_slice(&crc.to_le_bytes());
    });
    let faults = faults_of(&cluster);
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].starts_with("row id|t|∅|∅|row id 2"), "{faults:?}");
    assert!(faults[0].ends_with("is there, and the metapage says that 10 is given next"), "{faults:?}");
    edit(&mut cluster, "t", "", |bytes| bytes[60] ^= 1);
    let says = "the metapage is damaged: its content does not match its checksum";
    assert_eq!(faults_of(&cluster), [format!("metapage|t|∅|0|{says}")]);
}

#[test]
fn a_damaged_visibility_map_is_found() {
    let mut cluster = cluster();
    edit(&mut cluster, "t", "_fsm", |bytes| bytes[60] ^= 1);
    assert_eq!(faults_of(&cluster), ["visibility map|t|∅|∅|the visibility map is damaged; it is not used"]);
}

#[test]
fn a_leaf_with_a_valid_checksum_that_cannot_be_read_is_found() {
    let mut cluster = cluster();
    let block = edit_page(&mut cluster, PageKind::Leaf, |content| content.truncate(100));
    let faults = faults_of(&cluster);
    assert_eq!(faults, [format!("leaf|t|1|{block}|page {} of the segment: leaf is not as long as it says", block - 1)]);
}

#[test]
fn an_inner_page_that_leads_to_one_leaf_twice_is_found() {
    let mut cluster = cluster();
    let block = edit_page(&mut cluster, PageKind::Inner, |content| {
        let (count, common) = (usize::from(content[0]), usize::from(content[4]));
        let children = 6 + common + 2 * count;
        content[children + 4] = content[children];
    });
    let faults = faults_of(&cluster);
    let page = block - 1;
    assert_eq!(faults[0], format!("tree|t|1|{block}|page {page} of the segment: child page 0 is followed by page 0"));
}

#[test]
fn a_filter_that_does_not_admit_a_partition_is_found() {
    let mut cluster = cluster();
    edit_page(&mut cluster, PageKind::Filter, |content| content.fill(0));
    let faults = faults_of(&cluster);
    assert_eq!(faults.len(), 20, "{faults:?}");
    let says = "page 0 of the segment: the filter does not admit partition ";
    assert!(faults[0].starts_with(&format!("filter|t|1|1|{says}")), "{faults:?}");
}

#[test]
fn a_row_id_map_that_leads_elsewhere_is_found() {
    let mut cluster = cluster();
    // The directory of the first group starts with its first id.
    let block = edit_page(&mut cluster, PageKind::RowIds, |content| content[2] ^= 2);
    let faults = faults_of(&cluster);
    assert!(faults[0].starts_with(&format!("row id map|t|1|{block}|")), "{faults:?}");
    assert!(faults[0].contains("the page's directory has another first id than 1"), "{faults:?}");
}

#[test]
fn a_footer_that_cannot_be_read_is_found() {
    let mut cluster = cluster();
    let block = edit_page(&mut cluster, PageKind::Footer, |content| content.truncate(60));
    let page = block - 1;
    let says = format!("page {page} of the segment: footer is not as long as it says");
    assert_eq!(faults_of(&cluster), [format!("footer|t|1|{block}|{says}")]);
}
