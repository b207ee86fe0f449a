//! ALTER EXTENSION cass UPDATE: what an older version has made goes on, and the extension ends as a new one.

use cass_server_tests::{Cluster, Installation, Session};
use std::fs;
use std::path::PathBuf;

/// Version 0.1.0's script, put where PostgreSQL looks for it while the test runs.
struct OldScript(PathBuf);

impl OldScript {
    fn install() -> OldScript {
        let output = Installation::default().command("pg_config").arg("--sharedir").output().expect("pg_config");
        let folder = String::from_utf8(output.stdout).expect("a path");
        let path = PathBuf::from(folder.trim()).join("extension/cass--0.1.0.sql");
        fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/data/cass--0.1.0.sql"), &path).expect("the script is copied");
        OldScript(path)
    }
}

impl Drop for OldScript {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// What belongs to the extension, with what each object is made of.
fn objects(session: &mut Session) -> Vec<String> {
    session.rows(
        "SELECT pg_describe_object(d.classid, d.objid, 0),
                CASE WHEN p.prokind IN ('f', 'p') THEN pg_get_functiondef(p.oid) END, obj_description(d.objid, d.classid::regclass::name)
         FROM pg_depend d LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
         WHERE d.deptype = 'e' AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'cass') ORDER BY 1",
    )
}

#[test]
fn an_updated_extension_keeps_all_rows_and_is_as_a_new_one() {
    let cluster = Cluster::new();
    let mut session = cluster.connect();
    session.run("CREATE DATABASE old");
    let of_new = objects(&mut session);
    let mut old = cluster.connect_to("old");
    let script = OldScript::install();
    old.run("CREATE EXTENSION cass VERSION '0.1.0'");
    old.run(
        "CREATE TABLE t (sensor text, ts int, v float8, PRIMARY KEY (sensor, ts)) USING cass WITH (clustering_order = 'ts DESC');
         INSERT INTO t SELECT 's' || i % 7, i, i / 3.0 FROM generate_series(1, 2000) i",
    );
    old.flush("t");
    old.run("CREATE INDEX ON t (v); UPDATE t SET v = -1 WHERE sensor = 's3'; DELETE FROM t WHERE sensor = 's4'");
    let all = "SELECT * FROM t ORDER BY sensor, ts";
    let rows = old.rows(all);
    assert!(old.error("SELECT * FROM cass_check('t')").starts_with("42883"), "0.1.0 has no cass_check");

    old.run("ALTER EXTENSION cass UPDATE");
    drop(script);

    assert_eq!(objects(&mut old), of_new);
    assert_eq!(
        old.rows("SELECT extversion, extversion = default_version FROM pg_extension e JOIN pg_available_extensions a ON a.name = e.extname WHERE extname = 'cass'"),
        ["0.2.0|t"]
    );
    for mut session in [old, cluster.connect_to("old")] {
        assert_eq!(session.rows(all), rows);
        assert_eq!(session.rows("SELECT * FROM cass_check('t')"), [""; 0]);
        session.run("INSERT INTO t VALUES ('s1', 1, 5)");
        session.flush("t");
        session.run("DELETE FROM t WHERE sensor = 's1' AND ts = 1; INSERT INTO t VALUES ('s1', 1, 1 / 3.0::float8)");
    }
    assert!(cluster.connect_to("old").error("ALTER EXTENSION cass UPDATE TO '9.9.9'").starts_with("22023"));
}
