//! ANALYZE gives the planner what it gives of a heap with the same rows, wherever they lie.

use cass_server_tests::{Cluster, Session};

/// A table of cass and one of heap with the same rows: 40,000 of a key, a value that takes 100 values, one that is skewed, one that
/// follows the key, and one that is mostly null.
fn twins() -> (Cluster, Session) {
    let cluster = Cluster::with_settings(&[("cass.enforcement", "off"), ("autovacuum", "off")]);
    let mut session = cluster.connect();
    for (table, access_method) in [("c", "cass"), ("h", "heap")] {
        session.run(&format!(
            "CREATE TABLE {table} (k int, c int, hundred int, skewed text, same int, rare int, PRIMARY KEY (k, c)) USING {access_method}"
        ));
    }
    fill(&mut session, 1, 40_000);
    (cluster, session)
}

fn fill(session: &mut Session, from: u32, to: u32) {
    for table in ["c", "h"] {
        session.run(&format!(
            "INSERT INTO {table} SELECT i / 400, i % 400, i % 100, CASE WHEN i % 10 < 7 THEN 'usual' ELSE 'v' || i % 50 END,
                    i, CASE WHEN i % 20 = 0 THEN i END FROM generate_series({from}, {to}) i"
        ));
    }
}

fn statistic(session: &mut Session, table: &str, column: &str, what: &str) -> f64 {
    let sql = format!("SELECT {what} FROM pg_stats WHERE tablename = '{table}' AND attname = '{column}'");
    session.value(&sql).parse().unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// How far statistics of the same rows may be apart if three of four rows are sampled: over ten standard deviations.
const ALMOST_ALL_SAMPLED: f64 = 0.02;

/// Asserts that the statistics of the cass table are right, and as close to those of the heap as `apart` allows: a fraction, or
/// a difference for what is below 1.
fn assert_right(session: &mut Session, rows: f64, apart: f64) {
    session.run("ANALYZE c, h");
    let counted: f64 = session.value("SELECT reltuples FROM pg_class WHERE relname = 'c'").parse().expect("a number");
    assert!((counted / rows - 1.0).abs() < 0.001, "{counted} of {rows}");
    for (column, what) in [
        ("hundred", "n_distinct"),
        ("skewed", "n_distinct"),
        ("skewed", "most_common_freqs[1]"),
        ("rare", "n_distinct"),
        ("rare", "null_frac"),
        ("hundred", "avg_width"),
        ("skewed", "avg_width"),
    ] {
        let (ours, heaps) = (statistic(session, "c", column, what), statistic(session, "h", column, what));
        assert!((ours - heaps).abs() <= apart * heaps.abs().max(1.0), "{column}.{what}: {ours}, of a heap {heaps}");
    }
    let common =
        "SELECT (most_common_vals::text::text[])[1] FROM pg_stats WHERE tablename = 'c' AND attname = 'skewed'";
    assert_eq!(session.value(common), "usual");
    assert_eq!(statistic(session, "c", "same", "n_distinct"), -1.0);
    let bounds = "SELECT min(b), max(b) FROM (SELECT unnest(histogram_bounds::text::int[]) AS b FROM pg_stats \
                  WHERE tablename = 'TABLE' AND attname = 'same') s";
    let of = |session: &mut Session, table: &str| session.rows(&bounds.replace("TABLE", table));
    let (ours, heaps) = (of(session, "c"), of(session, "h"));
    let numbers = |row: &[String]| row[0].split('|').map(|n| n.parse::<f64>().expect("a number")).collect::<Vec<_>>();
    for (ours, heaps) in numbers(&ours).into_iter().zip(numbers(&heaps)) {
        assert!((ours - heaps).abs() < rows / 100.0, "{ours}, of a heap {heaps}");
    }
}

#[test]
fn statistics_of_rows_in_the_delta_in_segments_and_in_both_are_right() {
    let (_cluster, mut session) = twins();
    assert_right(&mut session, 40_000.0, ALMOST_ALL_SAMPLED);
    session.flush("c");
    assert_right(&mut session, 40_000.0, ALMOST_ALL_SAMPLED);
    // Overwritten rows and deleted ones count once, and not at all.
    for table in ["c", "h"] {
        session.run(&format!("UPDATE {table} SET rare = rare WHERE k < 20; DELETE FROM {table} WHERE k >= 90"));
    }
    let left: f64 = session.value("SELECT count(*) FROM h").parse().expect("a number");
    assert_right(&mut session, left, ALMOST_ALL_SAMPLED);
    session.flush("c");
    assert_right(&mut session, left, ALMOST_ALL_SAMPLED);
}

#[test]
fn statistics_of_a_table_larger_than_the_sample_are_right() {
    let (_cluster, mut session) = twins();
    fill(&mut session, 40_001, 400_000);
    session.flush("c");
    session.run("SET default_statistics_target = 20");
    // 6000 rows are sampled: a frequency of 0.7 has a standard deviation of 0.006, the difference of two samples one of 0.0084.
    assert_right(&mut session, 400_000.0, 6.0 * 0.0084);
}

#[test]
fn correlation_is_that_of_the_order_of_reading() {
    let (_cluster, mut session) = twins();
    session.run("CREATE TABLE single (k int, c int, down int, PRIMARY KEY (k, c)) USING cass");
    session.run("INSERT INTO single SELECT 1, i, -i FROM generate_series(1, 10000) i");
    session.flush("single");
    session.run("ANALYZE single; ANALYZE c");
    assert_eq!(statistic(&mut session, "single", "c", "correlation"), 1.0);
    assert_eq!(statistic(&mut session, "single", "down", "correlation"), -1.0);
    // Token order is none of the values'.
    assert!(statistic(&mut session, "c", "same", "correlation").abs() < 0.4);
}

#[test]
fn row_estimates_follow_the_statistics() {
    let (_cluster, mut session) = twins();
    session.flush("c");
    session.run("ANALYZE c, h");
    for condition in ["hundred = 7", "skewed = 'usual'", "same < 4000", "rare IS NOT NULL", "k = 3", "k = 3 AND c < 40"]
    {
        let mut estimate = |table: &str| -> f64 {
            let plan = session.rows(&format!("EXPLAIN SELECT * FROM {table} WHERE {condition}")).join(" ");
            let rows = plan.split("rows=").nth(1).and_then(|rest| rest.split(' ').next()).expect("an estimate");
            rows.parse().expect("a number")
        };
        let (ours, heaps) = (estimate("c"), estimate("h"));
        assert!(ours / heaps < 1.15 && heaps / ours < 1.15, "{condition}: {ours}, of a heap {heaps}");
    }
}
