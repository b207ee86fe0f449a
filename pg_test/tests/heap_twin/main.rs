//! A cass table and a heap table that go through the same statements hold the same rows after each of them.
//!
//! Each run is random, from a seed that it prints; `CASS_TEST_SEED` sets it, `CASS_TEST_STEPS` the count of statements.

mod schemas;
mod workload;

use schemas::Schema;
use workload::Workload;

fn agree(schema: Schema, seed: u64) {
    let steps = std::env::var("CASS_TEST_STEPS").ok().and_then(|text| text.parse().ok()).unwrap_or(150);
    Workload::new(schema, seed).run(steps);
}

#[test]
fn tables_keyed_by_text_and_date_with_times_newest_first_agree() {
    agree(schemas::readings(), 1);
}

#[test]
fn tables_keyed_by_int_and_uuid_agree() {
    agree(schemas::members(), 2);
}

#[test]
fn tables_without_a_primary_key_agree() {
    agree(schemas::unplaced(), 3);
}

#[test]
fn tables_with_secondary_indexes_agree() {
    agree(schemas::indexed(), 4);
}

#[test]
fn tables_keyed_by_numeric_agree() {
    agree(schemas::ledger(), 5);
}
