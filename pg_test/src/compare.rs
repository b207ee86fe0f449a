//! Comparison of rows, with a message that says what differs.

use std::collections::BTreeMap;

/// Asserts that two lists of rows are equal, order included. Otherwise panics with the rows that only one of them has.
pub fn assert_same_rows(context: &str, actual: &[String], expected: &[String]) {
    if actual == expected {
        return;
    }
    let mut balance: BTreeMap<&str, i64> = BTreeMap::new();
    actual.iter().for_each(|row| *balance.entry(row).or_default() += 1);
    expected.iter().for_each(|row| *balance.entry(row).or_default() -= 1);
    let side = |sign: i64| {
        let rows: Vec<&str> = balance.iter().filter(|(_, n)| **n * sign > 0).map(|(row, _)| *row).take(20).collect();
        rows.join("\n    ")
    };
    let order = actual.iter().zip(expected).position(|(left, right)| left != right);
    panic!(
        "{context}\n  {} rows instead of {}; first difference at {order:?}\n  too many:\n    {}\n  missing:\n    {}",
        actual.len(),
        expected.len(),
        side(1),
        side(-1),
    );
}
