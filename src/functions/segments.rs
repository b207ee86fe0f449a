//! Looking into segments: `cass_segments` lists those of a table, `cass_segment_rows` the row versions in one of them.

use std::ops::Bound;
use std::rc::Rc;

use cass_storage::key::get_token;
use cass_storage::merge::{Cursor, Direction};
use cass_storage::row::{RowHeader, RowKind, RowView};
use cass_storage::segment::SegmentCursor;
use pgrx::prelude::*;
use pgrx::{pg_sys, PgRelation};

use crate::catalog::{is_cass_oid, TableKey};
use crate::error::Report;
use crate::read::TableState;
use crate::segment::list::{self, SegmentEntry};
use crate::segment::{relation, source, RunSource};

/// Microseconds from the Unix epoch to PostgreSQL's (2000-01-01).
const EPOCH_MICROSECONDS: i64 = 946_684_800_000_000;
const MICROSECONDS: i64 = 1_000_000;

/// Segments of a table that the query's snapshot sees, the newest first.
#[pg_extern(stable, parallel_restricted, strict)]
#[allow(clippy::type_complexity)]
fn cass_segments(
    table: PgRelation,
) -> TableIterator<
    'static,
    (
        name!(run_id, i64),
        name!(first_block, i64),
        name!(page_count, i64),
        name!(sequence_low, i64),
        name!(sequence_high, i64),
        name!(rows, i64),
        name!(tombstones, i64),
        name!(bytes, i64),
        name!(bulk, bool),
        name!(min_token, Option<i64>),
        name!(max_token, Option<i64>),
    ),
> {
    let rel = open(table.oid());
    let state = TableState::of(rel);
    let placed = state.key.is_some();
    let token = move |key: &[u8]| placed.then(|| get_token(key).ok()).flatten();
    let rows: Vec<_> = visible(&state)
        .iter()
        .map(|segment| {
            (
                segment.run_id as i64,
                i64::from(segment.first_block),
                i64::from(segment.page_count),
                segment.sequence_low as i64,
                segment.sequence_high as i64,
                segment.row_count as i64,
                segment.tombstone_count as i64,
                segment.bytes() as i64,
                segment.bulk,
                token(&segment.min_key),
                token(&segment.max_key),
            )
        })
        .collect();
    close(rel);
    TableIterator::new(rows)
}

/// Row versions of a segment in key order, with the page of the run and the place in its leaf where each lies.
///
/// # Errors
/// 22023 where the query's snapshot sees no segment of this number.
#[pg_extern(stable, parallel_restricted, strict)]
#[allow(clippy::type_complexity)]
fn cass_segment_rows(
    table: PgRelation,
    segment: i64,
) -> TableIterator<
    'static,
    (
        name!(page, i64),
        name!(position, i64),
        name!(token, Option<i64>),
        name!(key, String),
        name!(write_time, Option<TimestampWithTimeZone>),
        name!(expiry, Option<TimestampWithTimeZone>),
        name!(tombstone, bool),
        name!(kind, &'static str),
        name!(row_id, i64),
    ),
> {
    let rel = open(table.oid());
    let state = TableState::of(rel);
    let table = relation::name(rel);
    let segments = visible(&state);
    let entry = segments.iter().find(|entry| entry.run_id as i64 == segment).unwrap_or_else(|| {
        Report::new("22023", format!("table \"{table}\" has no segment {segment}"))
            .hint(format!("SELECT run_id FROM cass_segments('{table}') lists them."))
            .raise()
    });
    let cursor = source::open_segment(rel, entry)
        .cursor(Bound::Unbounded, Bound::Unbounded, Direction::Forward)
        .unwrap_or_else(|error| source::raise(&table, &error));
    // The lock stays to the transaction's end, so the rows can be read one by one after the table is closed.
    close(rel);
    let rows = SegmentRows { cursor, key: state.key.clone(), table, started: false };
    TableIterator::new(rows.map(|row| {
        (
            i64::from(row.page),
            row.position as i64,
            row.token,
            row.key,
            timestamp(Some(row.header.write_time)),
            timestamp(row.header.expiry.and_then(|seconds| seconds.checked_mul(MICROSECONDS))),
            row.header.kind.is_tombstone(),
            kind_name(row.header.kind),
            row.header.row_id as i64,
        )
    }))
}

/// One version as it lies in a segment.
struct SegmentRow {
    page: u32,
    position: usize,
    token: Option<i64>,
    key: String,
    header: RowHeader,
}

/// The versions of a segment, read as they are asked for.
struct SegmentRows {
    cursor: SegmentCursor<RunSource>,
    key: Option<Rc<TableKey>>,
    table: String,
    started: bool,
}

impl Iterator for SegmentRows {
    type Item = SegmentRow;

    fn next(&mut self) -> Option<SegmentRow> {
        if std::mem::replace(&mut self.started, true) {
            if let Err(error) = self.cursor.advance() {
                source::raise(&self.table, &error);
            }
        }
        let key = self.cursor.key()?;
        Some(SegmentRow {
            page: self.cursor.page_no()?,
            position: self.cursor.position(),
            token: self.key.as_ref().and_then(|_| get_token(key).ok()),
            key: match &self.key {
                Some(described) => described.describe(key),
                None => format!("row {}", hex(key)),
            },
            header: *self.cursor.header(),
        })
    }
}

/// Bytes of a key that no primary key describes.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn kind_name(kind: RowKind) -> &'static str {
    match kind {
        RowKind::Row => "row",
        RowKind::RowTombstone | RowKind::Moved => "row tombstone",
        RowKind::Anchor => "anchor",
        RowKind::RangeTombstone => "range tombstone",
        RowKind::PartitionTombstone => "partition tombstone",
        RowKind::Static => "static row",
    }
}

/// A time in microseconds since the Unix epoch; null outside PostgreSQL's range.
fn timestamp(microseconds: Option<i64>) -> Option<TimestampWithTimeZone> {
    let since_2000 = microseconds?.checked_sub(EPOCH_MICROSECONDS)?;
    TimestampWithTimeZone::try_from(since_2000).ok()
}

/// Opens a table whose rows the user may read.
///
/// # Errors
/// 42809 where it is no cass table, 42501 where the user may not read all of it.
fn open(table: pg_sys::Oid) -> pg_sys::Relation {
    // SAFETY: opened by OID, which raises where there is no such relation; rights are looked up by OID.
    unsafe {
        let rel = pg_sys::relation_open(table, pg_sys::AccessShareLock as pg_sys::LOCKMODE);
        let name = relation::name(rel);
        if !is_cass_oid(table) {
            Report::new("42809", format!("\"{name}\" is not a table of access method cass")).raise();
        }
        let user = pg_sys::GetUserId();
        if pg_sys::pg_class_aclcheck(table, user, pg_sys::ACL_SELECT as pg_sys::AclMode)
            != pg_sys::AclResult::ACLCHECK_OK
        {
            Report::new("42501", format!("permission denied for table {name}")).raise();
        }
        if pg_sys::check_enable_rls(table, pg_sys::InvalidOid, true) == pg_sys::CheckEnableRlsResult::RLS_ENABLED as i32
        {
            Report::new("42501", format!("permission denied for table {name}"))
                .detail("Row-level security hides some of its rows from you, and segments show all of them.")
                .raise();
        }
        rel
    }
}

fn close(rel: pg_sys::Relation) {
    // SAFETY: opened by `open` and closed once; the lock is kept.
    unsafe { pg_sys::relation_close(rel, pg_sys::NoLock as pg_sys::LOCKMODE) }
}

/// The segments that the query's snapshot sees.
fn visible(state: &TableState) -> Rc<[SegmentEntry]> {
    // SAFETY: a query that calls a function has an active snapshot.
    let snapshot = unsafe { pg_sys::GetActiveSnapshot() };
    list::visible(state.rel, snapshot)
}
