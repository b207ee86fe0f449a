//! Publications that cover cass tables say that they send nothing of them.

use cass_server_tests::Cluster;

/// What psql says when it runs the statements, notices and warnings included.
fn said(cluster: &Cluster, statements: &[&str]) -> String {
    let mut psql = cluster.client("psql");
    psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=1"]);
    for statement in statements {
        psql.args(["-c", statement]);
    }
    let output = psql.output().unwrap_or_else(|error| panic!("psql: {error}"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

#[test]
fn a_publication_that_covers_a_cass_table_warns_and_names_it() {
    let cluster = Cluster::with_settings(&[("wal_level", "logical")]);
    let mut session = cluster.connect();
    session.run(
        "CREATE SCHEMA shop;
         CREATE TABLE shop.\"Orders\" (id int PRIMARY KEY, v int) USING cass;
         CREATE TABLE readings (id int PRIMARY KEY, v int) USING cass;
         CREATE TEMP TABLE passing (id int PRIMARY KEY) USING cass;
         CREATE TABLE plain (id int PRIMARY KEY)",
    );
    assert_eq!(
        said(&cluster, &["CREATE PUBLICATION everything FOR ALL TABLES"]),
        "WARNING:  publication everything does not send changes of cass tables\n\
         DETAIL:  Logical replication does not see the changes of: readings, shop.\"Orders\".\n\
         HINT:  Use streaming replication, which sends everything.\n"
    );
    let of_schema = said(&cluster, &["CREATE PUBLICATION ours FOR TABLES IN SCHEMA shop"]);
    assert!(of_schema.contains("the changes of: shop.\"Orders\".\n"), "{of_schema}");
    assert_eq!(said(&cluster, &["CREATE PUBLICATION other FOR TABLE plain"]), "");
    let added = said(&cluster, &["ALTER PUBLICATION other ADD TABLES IN SCHEMA public"]);
    assert!(added.contains("publication other ") && added.contains("the changes of: readings.\n"), "{added}");
    assert_eq!(said(&cluster, &["ALTER PUBLICATION other SET (publish = 'insert')"]), "");
    assert_eq!(said(&cluster, &["ALTER PUBLICATION other DROP TABLES IN SCHEMA public"]), "");
}

#[test]
fn a_table_that_becomes_cass_under_a_publication_is_warned_of() {
    let cluster = Cluster::with_settings(&[("wal_level", "logical")]);
    let mut session = cluster.connect();
    session.run("CREATE PUBLICATION everything FOR ALL TABLES; CREATE TABLE old (id int PRIMARY KEY)");
    assert_eq!(
        said(&cluster, &["CREATE TABLE young (id int PRIMARY KEY) USING cass"]),
        "WARNING:  changes of cass table young are not sent to subscribers\n\
         DETAIL:  Logical replication does not see the changes of cass tables. Publications that cover it: everything.\n\
         HINT:  Use streaming replication, which sends everything.\n"
    );
    let converted = said(&cluster, &["ALTER TABLE old SET ACCESS METHOD cass"]);
    assert!(converted.contains("changes of cass table old are not sent to subscribers"), "{converted}");
    assert_eq!(said(&cluster, &["CREATE TEMP TABLE passing (id int PRIMARY KEY) USING cass"]), "");
}

#[test]
fn a_table_that_is_moved_into_a_published_schema_is_warned_of() {
    let cluster = Cluster::with_settings(&[("wal_level", "logical")]);
    let mut session = cluster.connect();
    session.run(
        "CREATE SCHEMA shop; CREATE SCHEMA \"Back room\"; CREATE SCHEMA store;
         CREATE TABLE readings (id int PRIMARY KEY) USING cass;
         CREATE TABLE \"Orders\" (id int PRIMARY KEY) USING cass;
         CREATE TABLE plain (id int PRIMARY KEY);
         CREATE VIEW seen AS SELECT * FROM readings;
         CREATE PUBLICATION \"Ours\" FOR TABLES IN SCHEMA shop, \"Back room\";
         CREATE PUBLICATION theirs FOR TABLES IN SCHEMA \"Back room\";
         CREATE PUBLICATION everything FOR ALL TABLES",
    );
    let moved = |statement: &str| said(&cluster, &[statement]);
    assert_eq!(
        moved("ALTER TABLE readings SET SCHEMA shop"),
        "WARNING:  changes of cass table readings are not sent to subscribers\n\
         DETAIL:  Logical replication does not see the changes of cass tables. Publications that cover it: \"Ours\", everything.\n\
         HINT:  Use streaming replication, which sends everything.\n"
    );
    let also = moved("ALTER TABLE IF EXISTS shop.readings SET SCHEMA \"Back room\"");
    assert!(also.contains("Publications that cover it: \"Ours\", everything, theirs.\n"), "{also}");
    for statement in [
        "ALTER TABLE \"Back room\".readings SET SCHEMA \"Back room\"",
        "ALTER TABLE \"Back room\".readings SET SCHEMA shop",
        "ALTER TABLE shop.readings SET SCHEMA store",
        "ALTER TABLE plain SET SCHEMA shop",
        "ALTER VIEW seen SET SCHEMA shop",
    ] {
        assert_eq!(moved(statement), "", "{statement}: no publication covers a cass table that did not before");
    }
    let absent = moved("ALTER TABLE IF EXISTS absent SET SCHEMA shop");
    assert_eq!(absent, "NOTICE:  relation \"absent\" does not exist, skipping\n");
    let quoted = moved("ALTER TABLE \"Orders\" SET SCHEMA shop");
    assert!(quoted.contains("changes of cass table \"Orders\" are not sent"), "{quoted}");
}
