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
