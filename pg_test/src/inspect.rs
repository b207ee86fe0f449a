//! Where the rows of a table are.

use crate::session::Session;

impl Session {
    /// How many segments a table has.
    pub fn segments_of(&mut self, table: &str) -> u64 {
        self.count(&format!(
            "SELECT count(*) FROM cass_catalog.segment WHERE relation = '{table}'::regclass AND published"
        ))
    }

    /// How many rows that this session sees wait in a table's delta, tombstones and locked rows' anchors included.
    pub fn delta_rows_of(&mut self, table: &str) -> u64 {
        let delta = self.value(&format!("SELECT 'pg_toast.cass_delta_' || '{table}'::regclass::oid"));
        self.count(&format!("SELECT count(*) FROM {delta}"))
    }

    /// VACUUM, after which all rows must lie in segments.
    pub fn flush(&mut self, table: &str) {
        self.run(&format!("VACUUM {table}"));
        assert_eq!(self.delta_rows_of(table), 0, "rows of {table} are left in the delta");
    }

    /// The number that a query returns.
    pub fn count(&mut self, sql: &str) -> u64 {
        let value = self.value(sql);
        value.parse().unwrap_or_else(|error| panic!("{sql} returns {value}: {error}"))
    }
}
