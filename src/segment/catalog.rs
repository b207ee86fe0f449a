//! The schema `cass_catalog` with the list of segments, as the install script makes them.

use pgrx::prelude::*;

#[pg_schema]
mod cass_catalog {
    use pgrx::prelude::*;

    /// Swallows rows that logical replication applies: they name runs of the publisher's files.
    #[pg_trigger]
    fn ignore_replicated_row<'a>(
        _trigger: &'a PgTrigger<'a>,
    ) -> Result<Option<PgHeapTuple<'a, AllocatedByPostgres>>, std::convert::Infallible> {
        Ok(None)
    }
}

// Both keys fit a page, and stay there (MAIN): a frozen row must not hang on chunks that a rollback takes away.
// The keys of a segment's first and last row are data of the table, so only columns without data are open to everybody.
extension_sql!(
    r#"
CREATE TABLE cass_catalog.segment (
    relation oid NOT NULL,
    storage_id bigint NOT NULL,
    run_id bigint NOT NULL,
    first_block bigint NOT NULL,
    page_count bigint NOT NULL,
    published boolean NOT NULL,
    bulk boolean NOT NULL,
    sequence_low bigint NOT NULL,
    sequence_high bigint NOT NULL,
    row_count bigint NOT NULL,
    tombstone_count bigint NOT NULL,
    min_key bytea NOT NULL,
    max_key bytea NOT NULL,
    PRIMARY KEY (storage_id, run_id)
) USING heap;

ALTER TABLE cass_catalog.segment ALTER COLUMN min_key SET STORAGE MAIN, ALTER COLUMN max_key SET STORAGE MAIN;

COMMENT ON SCHEMA cass_catalog IS 'what extension cass keeps about tables; not to be written by hand';
COMMENT ON TABLE cass_catalog.segment IS 'segments of cass tables and the blocks that their runs occupy';

REVOKE ALL ON SCHEMA cass_catalog FROM PUBLIC;
GRANT USAGE ON SCHEMA cass_catalog TO PUBLIC;
REVOKE ALL ON cass_catalog.segment FROM PUBLIC;
GRANT SELECT (relation, storage_id, run_id, first_block, page_count, published, bulk, sequence_low, sequence_high, row_count,
              tombstone_count) ON cass_catalog.segment TO PUBLIC;

CREATE TRIGGER ignore_replicated_row BEFORE INSERT OR UPDATE OR DELETE ON cass_catalog.segment
    FOR EACH ROW EXECUTE FUNCTION cass_catalog.ignore_replicated_row();
ALTER TABLE cass_catalog.segment ENABLE REPLICA TRIGGER ignore_replicated_row;
"#,
    name = "segment_list",
    requires = [cass_catalog::ignore_replicated_row]
);
