//! Rows of the list of segments that say what is not so.

use super::damage::{cluster, without_index};
use cass_server_tests::Session;

/// Faults after a change of the list's row of the table, but for those of the visibility map, which the change passed by.
fn faults_after(session: &mut Session, change: &str) -> Vec<String> {
    session.run(change);
    let faults = session.faults_of("t");
    faults.into_iter().filter(|fault| !fault.starts_with("visibility map")).collect()
}

#[test]
fn a_list_that_says_something_else_than_the_footer_is_found() {
    let cluster = cluster();
    let mut session = cluster.connect();
    session.assert_sound("t");
    assert_eq!(
        faults_after(&mut session, "UPDATE cass_catalog.segment SET row_count = 5, tombstone_count = 1"),
        [
            "segment list|1|the list says 5 rows of it, and its footer 2000",
            "segment list|1|the list says 1 tombstones of it, and its footer 0",
        ]
    );
    let map = session.rows("SELECT kind, block, detail FROM cass_check('t') WHERE kind = 'visibility map'");
    let says = "the visibility map has segments 1, and the list has 1, or what they say differs";
    assert_eq!(map, [format!("visibility map|0|{says}")]);
    session.run("UPDATE cass_catalog.segment SET row_count = 2000, tombstone_count = 0");
    session.assert_sound("t");
    let faults = faults_after(&mut session, "UPDATE cass_catalog.segment SET min_key = '\\x00'");
    assert!(faults.len() == 1 && faults[0].contains("the list says that 00 is its smallest key"), "{faults:?}");
}

#[test]
fn a_segment_outside_its_file_or_on_the_blocks_of_another_is_found() {
    let cluster = cluster();
    let mut session = cluster.connect();
    session.run("VACUUM t");
    assert_eq!(session.segments_of("t"), 2);
    session.assert_sound("t");
    let blocks = session.count("SELECT pg_relation_size('t', 'main') / 8192");
    let pages = session.count("SELECT page_count FROM cass_segments('t') WHERE run_id = 2");
    session.run("CREATE TABLE kept AS TABLE cass_catalog.segment");
    let faults = faults_after(&mut session, "UPDATE cass_catalog.segment SET first_block = 1000 WHERE run_id = 2");
    assert_eq!(
        faults,
        [format!(
            "segment list|2|the list says blocks 1000 to {} of it, and the file has {blocks} blocks",
            999 + pages
        )]
    );
    let faults = faults_after(&mut session, "UPDATE cass_catalog.segment SET first_block = 2 WHERE run_id = 2");
    assert_eq!(faults[0], "segment list|2|its blocks from 2 on are those of segment 1 too");
    assert!(faults[1].starts_with("page|2|page 0 of the segment: the page is another one than expected"), "{faults:?}");
    session.run("DELETE FROM cass_catalog.segment; INSERT INTO cass_catalog.segment TABLE kept");
    let sequence = "UPDATE cass_catalog.segment SET sequence_low = 1 WHERE run_id = 2";
    assert_eq!(
        faults_after(&mut session, sequence),
        ["segment list|2|its places 1 to 2 in the order of segments are those of segment 1 too"]
    );
    session.run("UPDATE cass_catalog.segment SET sequence_low = 2 WHERE run_id = 2");
    let later = "UPDATE cass_catalog.segment SET sequence_high = 77 WHERE run_id = 2";
    assert_eq!(
        faults_after(&mut session, later),
        ["metapage|2|the segment has place in the order of segments 77, and the metapage says that 3 is given next"]
    );
}

#[test]
fn a_segment_that_is_not_listed_is_missed_by_the_visibility_map() {
    let cluster = cluster();
    let mut session = cluster.connect();
    session.run("DELETE FROM cass_catalog.segment");
    let says = "the visibility map has segments 1, and the list has none, or what they say differs";
    assert_eq!(session.faults_of("t"), [format!("visibility map|∅|{says}")]);
}

#[test]
fn a_row_that_the_index_of_the_list_does_not_lead_to_is_found() {
    let cluster = cluster();
    let mut session = cluster.connect();
    session.run("CREATE TABLE kept AS TABLE cass_catalog.segment");
    without_index(
        &mut session,
        "cass_catalog.segment_pkey",
        "DELETE FROM cass_catalog.segment; INSERT INTO cass_catalog.segment TABLE kept",
    );
    let faults = session.faults_of("t");
    assert_eq!(faults[0], "segment list|1|the index of the list does not lead to the segment's row");
    session.run("REINDEX TABLE cass_catalog.segment");
    session.assert_sound("t");
}

#[test]
fn a_segment_that_the_list_gives_to_another_table_is_found() {
    let cluster = cluster();
    let mut session = cluster.connect();
    session.run("UPDATE cass_catalog.segment SET relation = 1259");
    assert_eq!(session.faults_of("t"), ["segment list|1|the list says that it is of table 1259"]);
}
