//! Cursors, prepared transactions and long reads see the same rows to their end, whatever VACUUM moves meanwhile.

use cass_server_tests::{Cluster, Session, Shutdown};

fn cluster() -> Cluster {
    Cluster::with_settings(&[("cass.enforcement", "off"), ("max_prepared_transactions", "5")])
}

/// Rows (p, c, v = c) of two partitions, c from 1 to `count`; the first half in a segment.
fn create(session: &mut Session, count: u32) {
    session
        .run("CREATE TABLE t (p text, c int, v int, PRIMARY KEY (p, c)) USING cass WITH (clustering_order = 'c DESC')");
    let insert = "INSERT INTO t SELECT p, c, c FROM unnest('{a,b}'::text[]) p, generate_series";
    session.run(&format!("{insert} (1, {count} / 2) c"));
    session.flush("t");
    session.run(&format!("{insert} ({count} / 2 + 1, {count}) c"));
}

/// Changes all rows, and moves them.
fn change_and_vacuum(session: &mut Session, round: u32) {
    session.run(&format!("UPDATE t SET v = v + 1000 WHERE c % 2 = 0; DELETE FROM t WHERE c % 7 = {round} % 7"));
    session.run(&format!("INSERT INTO t SELECT 'a', c, -c FROM generate_series(500 + {round}, 520 + {round}) c"));
    session.run("VACUUM t");
}

#[test]
fn a_cursor_shows_the_rows_of_its_snapshot_in_both_directions_while_vacuum_moves_them() {
    let cluster = cluster();
    let (mut session, mut writer) = (cluster.connect(), cluster.connect());
    create(&mut session, 40);
    let query = "SELECT c, v FROM t WHERE p = 'a'";
    let rows = session.rows(query);
    assert_eq!((rows.len(), rows[0].as_str()), (40, "40|40"));
    session
        .run(&format!("BEGIN; DECLARE scrolled SCROLL CURSOR FOR {query}; DECLARE held CURSOR WITH HOLD FOR {query}"));
    assert_eq!(session.rows("FETCH 10 FROM scrolled"), rows[..10]);
    assert_eq!(session.rows("FETCH 5 FROM held"), rows[..5]);
    for round in 1..=4 {
        change_and_vacuum(&mut writer, round);
        let (last, first) = (session.rows("FETCH LAST FROM scrolled"), session.rows("FETCH FIRST FROM scrolled"));
        assert_eq!([last, first], [[rows[39].clone()], [rows[0].clone()]], "round {round}");
        assert_eq!(session.rows("FETCH ABSOLUTE 20 FROM scrolled"), rows[19..20]);
        assert_eq!(
            session.rows("FETCH BACKWARD 3 FROM scrolled"),
            [&rows[18..19], &rows[17..18], &rows[16..17]].concat()
        );
        assert_eq!(session.rows("FETCH 5 FROM scrolled"), rows[17..22]);
    }
    session.run("COMMIT");
    change_and_vacuum(&mut writer, 5);
    assert_eq!(session.rows("FETCH ALL FROM held"), rows[5..]);
    assert_ne!(session.rows(query), rows);
}

#[test]
fn an_update_at_a_cursor_changes_the_row_the_cursor_is_on_though_vacuum_has_moved_it() {
    let cluster = cluster();
    let (mut session, mut writer) = (cluster.connect(), cluster.connect());
    create(&mut session, 10);
    session.run("BEGIN; DECLARE at CURSOR FOR SELECT c, v FROM t WHERE p = 'b'");
    assert_eq!(session.rows("FETCH 3 FROM at"), ["10|10", "9|9", "8|8"]);
    writer.run("VACUUM t");
    session.run("UPDATE t SET v = 88 WHERE CURRENT OF at");
    assert_eq!(session.rows("FETCH 4 FROM at"), ["7|7", "6|6", "5|5", "4|4"]);
    writer.run("VACUUM t");
    session.run("DELETE FROM t WHERE CURRENT OF at; COMMIT");
    let rows = ["10|10", "9|9", "8|88", "7|7", "6|6", "5|5", "3|3", "2|2", "1|1"];
    assert_eq!(writer.rows("SELECT c, v FROM t WHERE p = 'b'"), rows);
}

#[test]
fn what_a_prepared_transaction_wrote_is_seen_when_it_is_committed_also_after_a_crash() {
    let mut cluster = cluster();
    let mut session = cluster.connect();
    create(&mut session, 4);
    let before = session.rows("SELECT * FROM t ORDER BY p, c");
    let change = "UPDATE t SET v = 100 WHERE p = 'a' AND c IN (1, 4); DELETE FROM t WHERE p = 'b' AND c = 2; INSERT INTO t VALUES ('c', 1, 1)";
    session.run(&format!("BEGIN; {change}; PREPARE TRANSACTION 'kept'"));
    for _ in 0..2 {
        assert_eq!(session.rows("SELECT * FROM t ORDER BY p, c"), before);
        session.run("VACUUM t");
        assert_eq!(session.rows("SELECT * FROM t ORDER BY p, c"), before);
        let wait = cluster.connect().in_background("UPDATE t SET v = v + 1 WHERE p = 'a' AND c = 1");
        wait.wait_until_blocked(&mut session);
        wait.cancel();
        assert!(wait.join().1.is_err_and(|error| error.starts_with("57014")));
        drop(session);
        cluster.restart(Shutdown::Immediate);
        session = cluster.connect();
    }
    session.run("COMMIT PREPARED 'kept'");
    let after = ["a|4|100", "a|3|3", "a|2|2", "a|1|100", "b|4|4", "b|3|3", "b|1|1", "c|1|1"];
    let order = "SELECT * FROM t ORDER BY p, c DESC";
    assert_eq!(session.rows(order), after);
    session.run("BEGIN; DELETE FROM t; INSERT INTO t VALUES ('x', 1, 1); PREPARE TRANSACTION 'undone'");
    session.run("VACUUM t");
    session.run("ROLLBACK PREPARED 'undone'");
    assert_eq!(session.rows(order), after);
    session.flush("t");
    assert_eq!(session.rows(order), after);
}

#[test]
fn a_long_reader_sees_its_rows_while_vacuum_flushes_and_merges_again_and_again() {
    let cluster = cluster();
    let (mut reader, mut writer) = (cluster.connect(), cluster.connect());
    create(&mut reader, 100);
    writer.run("SET cass.eager_merge_size = '4MB'");
    let queries = [
        "SELECT * FROM t ORDER BY p, c",
        "SELECT c, v FROM t WHERE p = 'b' AND c > 20 LIMIT 30",
        "SELECT sum(v) FROM t WHERE c % 2 = 0",
    ];
    reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
    let expected = queries.map(|query| reader.rows(query));
    for round in 1..=12 {
        change_and_vacuum(&mut writer, round);
        for (query, expected) in queries.iter().zip(&expected) {
            assert_eq!(&reader.rows(query), expected, "round {round}: {query}");
        }
    }
    let now = writer.rows(queries[0]);
    reader.run("COMMIT");
    writer.flush("t");
    assert_eq!(reader.rows(queries[0]), now);
}
