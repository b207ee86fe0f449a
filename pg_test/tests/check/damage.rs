//! Damaging what a server has stored.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use cass_server_tests::{Cluster, Session, Shutdown};
use cass_storage::page::{self, Page, PageIdentity, PageKind, PAGE_SIZE};

/// A table with its rows in a segment of several leaves, and some of them again in the delta.
pub fn create(session: &mut Session) {
    session.run("CREATE TABLE t (a int, b int, v text, PRIMARY KEY (a, b)) USING cass");
    session
        .run("INSERT INTO t SELECT a, b, md5(a || '.' || b) FROM generate_series(1, 20) a, generate_series(1, 100) b");
    session.flush("t");
    session.run("INSERT INTO t SELECT a, 1, 'again' FROM generate_series(1, 5) a; DELETE FROM t WHERE a = 6 AND b = 6");
}

/// A cluster whose pages PostgreSQL keeps no checksums of, so that they can be changed behind its back, with such a table. Damage is
/// expected.
pub fn cluster() -> Cluster {
    let mut cluster = Cluster::empty(&[]);
    cluster.run_server_tool("pg_checksums", &["--disable"]);
    cluster.start();
    let mut session = cluster.connect();
    session.run("CREATE EXTENSION cass");
    create(&mut session);
    cluster.expect_damage();
    cluster
}

/// The faults of such a table, with all that a check says of each.
pub fn faults_of(cluster: &Cluster) -> Vec<String> {
    cluster.connect().rows("SELECT kind, relation, segment, block, detail FROM cass_check('t')")
}

/// Name of the table's delta.
pub fn delta_of(session: &mut Session, table: &str) -> String {
    session.value(&format!("SELECT 'pg_toast.cass_delta_' || '{table}'::regclass::oid"))
}

/// Makes of a hidden heap a table that statements can write to, for `statements`.
pub fn behind_its_back(session: &mut Session, heap: &str, statements: &str) {
    session.run("SET allow_system_table_mods = on");
    let oid = session.value(&format!("SELECT '{heap}'::regclass::oid"));
    session.run(&format!("UPDATE pg_class SET relkind = 'r' WHERE oid = {oid}"));
    session.run(statements);
    session.run(&format!("UPDATE pg_class SET relkind = 't' WHERE oid = {oid}"));
}

/// Runs statements whose rows get no entries in an index.
pub fn without_index(session: &mut Session, index: &str, statements: &str) {
    marked(session, index, "indisready", statements);
}

/// Runs statements while a column of an index's row of pg_index is false.
pub fn marked(session: &mut Session, index: &str, column: &str, statements: &str) {
    let mark = |value: bool| format!("UPDATE pg_index SET {column} = {value} WHERE indexrelid = '{index}'::regclass");
    session.run("SET allow_system_table_mods = on");
    session.run(&mark(false));
    session.run(statements);
    session.run(&mark(true));
}

/// Path of a file of a relation, `suffix` being that of its fork.
fn path_of(cluster: &Cluster, relation: &str, suffix: &str) -> PathBuf {
    let path = cluster.connect().value(&format!("SELECT pg_relation_filepath('{relation}')"));
    cluster.data().join(path + suffix)
}

/// Stops the server, changes a file of a relation, and starts the server.
pub fn edit(cluster: &mut Cluster, relation: &str, suffix: &str, change: impl FnOnce(&mut [u8])) {
    let path = path_of(cluster, relation, suffix);
    cluster.connect().run("CHECKPOINT");
    cluster.stop(Shutdown::Fast);
    let mut bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    change(&mut bytes);
    let file = OpenOptions::new().write(true).open(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    file.write_all_at(&bytes, 0).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    cluster.start();
}

/// Changes the content of the first page of a kind in the table's segment, and gives the page the checksum that goes with it. The
/// block of the page.
pub fn edit_page(cluster: &mut Cluster, kind: PageKind, change: impl FnOnce(&mut Vec<u8>)) -> usize {
    let mut block = 0;
    edit(cluster, "t", "", |bytes| {
        let pages = bytes.chunks_exact_mut(PAGE_SIZE).enumerate().skip(1);
        let mut found = pages.filter_map(|(number, bytes)| Some((number, <&mut Page>::try_from(bytes).ok()?)));
        let is_of_kind = |page: &Page| page::parse(page).is_ok_and(|(found, _)| found == kind);
        let (number, page) = found.find(|(_, page)| is_of_kind(page)).unwrap_or_else(|| panic!("no page {kind:?}"));
        let number_at = |at: usize| page[at..at + 8].iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte));
        let identity =
            PageIdentity { storage_id: number_at(8160), run_id: number_at(8168), page_no: number_at(8176) as u32 };
        let mut content = page::parse(page).map(|(_, content)| content.to_vec()).unwrap_or_default();
        change(&mut content);
        page::write(page, &identity, kind, &content).unwrap_or_else(|error| panic!("{error}"));
        block = number;
    });
    block
}

/// Finds the only place of some bytes.
pub fn place_of(bytes: &[u8], wanted: &[u8]) -> usize {
    let places: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(wanted)).collect();
    assert_eq!(places.len(), 1, "{places:?}");
    places[0]
}
