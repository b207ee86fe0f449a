//! Whether tables are sound, as `cass_check` sees it.

use crate::cluster::Cluster;
use crate::session::Session;

impl Session {
    /// The faults of a table, each as kind, segment and detail.
    pub fn faults_of(&mut self, table: &str) -> Vec<String> {
        self.rows(&format!("SELECT kind, segment, detail FROM cass_check('{table}')"))
    }

    /// Asserts that a table has no fault.
    pub fn assert_sound(&mut self, table: &str) {
        let faults = self.faults_of(table);
        assert!(faults.is_empty(), "table {table} has faults:\n  {}", faults.join("\n  "));
    }
}

impl Cluster {
    /// Asserts that no cass table of any database has a fault, but for temporary ones of sessions that have not ended.
    pub fn assert_sound(&self) {
        const DATABASES: &str = "SELECT datname FROM pg_database WHERE datallowconn ORDER BY datname";
        const TABLES: &str = "SELECT c.oid::regclass FROM pg_class c JOIN pg_am a ON a.oid = c.relam
            WHERE a.amname = 'cass' AND c.relkind IN ('r', 'm') AND c.relpersistence <> 't' ORDER BY c.oid";
        for database in self.connect().rows(DATABASES) {
            let mut session = self.connect_to(&database);
            let has_check = session.value("SELECT to_regproc('cass_check') IS NOT NULL") == "t";
            for table in session.rows(TABLES) {
                assert!(has_check, "database {database} has no function cass_check in its search_path");
                session.assert_sound(&table.replace('\'', "''"));
            }
        }
    }
}
