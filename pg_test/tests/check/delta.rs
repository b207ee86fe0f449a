//! Rows of the delta, its indexes, and values that were moved out of their rows.

use super::damage::{behind_its_back, cluster, create, delta_of, edit, place_of, without_index};
use cass_server_tests::{Cluster, Random, Session};

fn delta_faults(session: &mut Session) -> Vec<String> {
    let oid = session.value("SELECT 't'::regclass::oid");
    let faults = session.rows("SELECT kind, relation, block, detail FROM cass_check('t')");
    faults.into_iter().map(|fault| fault.replace(&format!("cass_delta_{oid}"), "delta")).collect()
}

#[test]
fn a_row_whose_columns_contradict_each_other_is_found() {
    let cluster = cluster();
    let mut session = cluster.connect();
    let delta = delta_of(&mut session, "t");
    let one = format!("(SELECT ctid FROM {delta} WHERE kind = 1 ORDER BY row_id LIMIT 1)");
    behind_its_back(&mut session, &delta, &format!("UPDATE {delta} SET kind = 2 WHERE ctid = {one}"));
    let faults = delta_faults(&mut session);
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].starts_with("row|pg_toast.delta|0|row "), "{faults:?}");
    assert!(faults[0].contains("(a=1, b=1): column kind is 2, and the row says Row"), "{faults:?}");
    behind_its_back(&mut session, &delta, &format!("UPDATE {delta} SET kind = 1, row_id = row_id + 100 WHERE kind = 2 AND key = (SELECT key FROM {delta} ORDER BY row_id LIMIT 1)"));
    behind_its_back(
        &mut session,
        &delta,
        &format!("UPDATE {delta} SET row = '\\xff' WHERE key = (SELECT key FROM {delta} ORDER BY row_id LIMIT 1)"),
    );
    let faults = delta_faults(&mut session);
    assert!(faults.iter().any(|fault| fault.contains("format version 255 is not supported")), "{faults:?}");
}

#[test]
fn a_row_under_a_key_that_its_values_do_not_have_is_found() {
    let cluster = cluster();
    let mut session = cluster.connect();
    let delta = delta_of(&mut session, "t");
    // The token, the key's first eight bytes, is another one; the columns behind it are as they were.
    let key = "'\\x8000000000000001'::bytea || substr(key, 9)";
    let one = format!("(SELECT ctid FROM {delta} WHERE kind = 1 ORDER BY row_id LIMIT 1)");
    behind_its_back(&mut session, &delta, &format!("UPDATE {delta} SET key = {key} WHERE ctid = {one}"));
    let faults = delta_faults(&mut session);
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].contains("(a=1, b=1): its values have key "), "{faults:?}");
    behind_its_back(&mut session, &delta, &format!("UPDATE {delta} SET key = substr(key, 1, 10) WHERE key < '\\x8000000000000002'::bytea AND key > '\\x80'::bytea"));
    let faults = delta_faults(&mut session);
    assert!(faults[0].contains("its key does not consist of a token and the columns of the primary key"), "{faults:?}");
}

#[test]
fn a_row_that_an_index_of_the_delta_does_not_lead_to_is_found() {
    let cluster = cluster();
    let mut session = cluster.connect();
    let delta = delta_of(&mut session, "t");
    for (index, told) in [(format!("{delta}_key"), "delta_key"), (format!("{delta}_row"), "delta_row")] {
        // A row that is written behind the back of one index, in the place of another of its key.
        session.run("SET allow_system_table_mods = on");
        session.run(&format!("UPDATE pg_class SET relkind = 'r' WHERE oid = '{delta}'::regclass"));
        let replace = format!(
            "WITH old AS (DELETE FROM {delta} WHERE kind = 1 AND row_id = (SELECT min(row_id) FROM {delta}) RETURNING *)
             INSERT INTO {delta} SELECT * FROM old"
        );
        without_index(&mut session, &index, &replace);
        session.run(&format!("UPDATE pg_class SET relkind = 't' WHERE oid = '{delta}'::regclass"));
        let faults = delta_faults(&mut session);
        assert_eq!(faults.len(), 1, "{faults:?}");
        let start = format!("delta index|pg_toast.{told}|∅|there is no entry that leads to row (");
        assert!(faults[0].starts_with(&start) && faults[0].ends_with("(a=1, b=1)"), "{faults:?}");
        session.run(&format!("SET allow_system_table_mods = on; REINDEX INDEX {index}"));
        session.assert_sound("t");
    }
}

#[test]
fn an_entry_that_leads_to_another_row_is_found() {
    let mut cluster = cluster();
    let mut session = cluster.connect();
    let delta = delta_of(&mut session, "t");
    let row_id = session.count(&format!("SELECT min(row_id) FROM {delta}"));
    drop(session);
    let last_three = |id: u64| id.to_le_bytes().to_vec();
    edit(&mut cluster, &format!("{delta}_row"), "", |bytes| {
        let at = place_of(bytes, &last_three(row_id));
        bytes[at] ^= 0x40;
    });
    let faults = delta_faults(&mut cluster.connect());
    let led = format!("delta index|pg_toast.delta_row|∅|the entry of row id {} leads to row (0,", row_id ^ 0x40);
    assert!(faults.iter().any(|fault| fault.starts_with(&led)), "{faults:?}");
    assert!(faults.iter().any(|fault| fault.contains("there is no entry that leads to row")), "{faults:?}");
}

#[test]
fn two_rows_of_one_key_are_found() {
    let cluster = cluster();
    let mut session = cluster.connect();
    let delta = delta_of(&mut session, "t");
    let twice = format!("INSERT INTO {delta} SELECT * FROM {delta} WHERE row_id = (SELECT min(row_id) FROM {delta})");
    session.run("SET allow_system_table_mods = on");
    session.run(&format!("UPDATE pg_index SET indisunique = false WHERE indexrelid = '{delta}_key'::regclass"));
    behind_its_back(&mut session, &delta, &twice);
    session.run(&format!("UPDATE pg_index SET indisunique = true WHERE indexrelid = '{delta}_key'::regclass"));
    let faults = delta_faults(&mut session);
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].contains("there are two rows of one key (a=1, b=1)"), "{faults:?}");
}

#[test]
fn a_row_id_that_two_keys_have_is_found() {
    let cluster = cluster();
    let mut session = cluster.connect();
    session
        .run("CREATE TABLE o (a int, b int, v text, PRIMARY KEY (a, b)) USING cass; INSERT INTO o VALUES (99, 1, 'o')");
    let (delta, other) = (delta_of(&mut session, "t"), delta_of(&mut session, "o"));
    let copy = format!(
        "INSERT INTO {delta} SELECT (SELECT max(storage_id) FROM {delta}), key, row_id, kind, row FROM {other}"
    );
    behind_its_back(&mut session, &delta, &copy);
    let faults = delta_faults(&mut session);
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].starts_with("row id|t|∅|row id 1 names rows of two keys, in "), "{faults:?}");
}

#[test]
fn a_damaged_heap_page_of_the_delta_is_found_and_the_server_lives() {
    let mut cluster = cluster();
    let mut session = cluster.connect();
    let delta = delta_of(&mut session, "t");
    drop(session);
    // Bytes 24 to 27 are the first line pointer: 15 bits of its place in the page, two of its state, 15 of its length.
    edit(&mut cluster, &delta, "", |bytes| {
        bytes[24..28].copy_from_slice(&(8184_u32 | 1 << 15 | 400 << 17).to_le_bytes())
    });
    let faults = delta_faults(&mut cluster.connect());
    assert!(faults.contains(&"delta|pg_toast.delta|0|line pointer 1 leads out of the page".to_owned()), "{faults:?}");
    // The length of a key, of a row that is whole otherwise: the header is 24 bytes long, the storage id 8.
    edit(&mut cluster, &delta, "", |bytes| {
        let pointer = u32::from_le_bytes([bytes[28], bytes[29], bytes[30], bytes[31]]);
        let at = (pointer & 0x7fff) as usize;
        bytes[at + 32..at + 36].copy_from_slice(&(1_000_000_u32 << 2).to_le_bytes());
    });
    let faults = delta_faults(&mut cluster.connect());
    let says = "delta|pg_toast.delta|0|row 2 of the block does not have the columns of a delta";
    assert!(faults.contains(&says.to_owned()), "{faults:?}");
}

#[test]
fn a_delta_that_is_missing_or_said_to_be_empty_is_found() {
    let cluster = cluster();
    let mut session = cluster.connect();
    let delta = delta_of(&mut session, "t");
    session.run("SET allow_system_table_mods = on");
    session.run(&format!("UPDATE pg_class SET relname = 'hidden' WHERE oid = '{delta}'::regclass"));
    let says = "the delta of table \"t\" is missing (It held rows that no segment has)";
    assert_eq!(session.faults_of("t"), [format!("delta|∅|{says}")]);
    let table = session.value("SELECT 't'::regclass::oid");
    session.run(&format!("UPDATE pg_class SET relname = 'cass_delta_{table}' WHERE relname = 'hidden'"));
    session.assert_sound("t");
    // Rows that come behind the back of the map.
    session
        .run("CREATE TABLE o (a int, b int, v text, PRIMARY KEY (a, b)) USING cass; INSERT INTO o VALUES (99, 1, 'o')");
    session.run("CREATE TABLE kept AS SELECT * FROM cass_check('t')");
    let other = delta_of(&mut session, "o");
    session.run(&format!("CREATE TABLE rows AS SELECT * FROM {delta}"));
    session.run("VACUUM t");
    session.run("VACUUM t");
    behind_its_back(
        &mut session,
        &delta,
        &format!("INSERT INTO {delta} SELECT storage_id, key, row_id, kind, row FROM rows"),
    );
    let faults = session.faults_of("t");
    assert!(
        faults.contains(
            &"visibility map|∅|the visibility map says that the delta is empty, and it holds 6 rows".to_owned()
        ),
        "{faults:?} {other}"
    );
}

#[test]
fn a_moved_out_value_that_is_gone_is_found() {
    let cluster = Cluster::new();
    let mut session = cluster.connect();
    create(&mut session);
    cluster.expect_damage();
    session.run("INSERT INTO t SELECT 77, 1, string_agg(md5(n::text), '') FROM generate_series(1, 1000) n");
    session.run("INSERT INTO t SELECT 78, 1, string_agg(md5(n::text), '') FROM generate_series(1, 1000) n");
    session.assert_sound("t");
    let toast = session.value("SELECT reltoastrelid::regclass FROM pg_class WHERE oid = 't'::regclass");
    let delete = format!("DELETE FROM {toast} WHERE chunk_id = (SELECT min(chunk_id) FROM {toast}) AND chunk_seq = 3");
    behind_its_back(&mut session, &toast, &delete);
    session.run(&format!("VACUUM {toast}"));
    let faults = session.rows("SELECT kind, relation, detail FROM cass_check('t')");
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].starts_with(&format!("toast|{toast}|column 3 of row id ")), "{faults:?}");
    assert!(faults[0].contains("unexpected chunk number 4 (expected 3) for toast value"), "{faults:?}");
}

/// Bytes of the delta's rows change at random; each time the check ends, and the server lives.
#[test]
fn a_check_ends_whatever_bytes_of_the_delta_change() {
    let mut cluster = cluster();
    let delta = delta_of(&mut cluster.connect(), "t");
    let mut random = Random::seeded(2_026);
    let mut told = 0;
    for _ in 0..12 {
        edit(&mut cluster, &delta, "", |bytes| {
            // Rows lie at the end of the page.
            for _ in 0..6 {
                let at = 8192 - 1 - random.below(700) as usize;
                bytes[at] ^= 1 << random.below(8);
            }
        });
        let mut session = cluster.connect();
        told += delta_faults(&mut session).len();
        assert_eq!(session.value("SELECT 1"), "1");
    }
    assert!(told > 12, "{told}");
}
