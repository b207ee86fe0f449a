//! How a visibility map lies in its page: a standard page whose content is a magic number, the map's version, a CRC32C, a
//! length and as many bytes of bincode.
//!
//! A map only spares work. A page that is not one, is damaged or has another version's layout counts as no map.

use std::rc::Rc;

use pgrx::pg_sys;
use serde::{Deserialize, Serialize};

use crate::segment::entry::SegmentEntry;

pub(super) const PAGE_SIZE: usize = pg_sys::BLCKSZ as usize;
pub(super) type Page = [u8; PAGE_SIZE];

const MAGIC: u64 = u64::from_le_bytes(*b"cassvis1");
/// Where PostgreSQL's page header has the start of the free space.
const PD_LOWER_AT: usize = 12;
/// Bytes of PostgreSQL's page header, behind which the content starts.
const MAGIC_AT: usize = 24;
const VERSION_AT: usize = MAGIC_AT + 8;
const CRC_AT: usize = VERSION_AT + 8;
const LENGTH_AT: usize = CRC_AT + 4;
const BODY_AT: usize = LENGTH_AT + 4;
const MAX_BODY: usize = PAGE_SIZE - BODY_AT;

/// What is known about recent snapshots of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Map {
    /// The life of the table that this is about.
    pub storage_id: u64,
    /// A snapshot whose `xmin` is not before this sees no row in the delta.
    pub delta_empty_since: Option<u32>,
    pub segments: Option<KnownSegments>,
}

/// The table's part of the list of segments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KnownSegments {
    /// A snapshot whose `xmin` is not before this sees these segments and no others.
    pub since: u32,
    pub entries: Rc<[SegmentEntry]>,
}

/// The version of the map on a page, 0 where there is none. A new version is a random number, so that none comes again.
pub(super) fn version(page: &Page) -> u64 {
    if number(page, MAGIC_AT) == MAGIC {
        number(page, VERSION_AT)
    } else {
        0
    }
}

/// The map on a page.
pub(super) fn decode(page: &Page) -> Option<Map> {
    if version(page) == 0 {
        return None;
    }
    let sizes = number(page, CRC_AT);
    let (crc, length) = (sizes as u32, (sizes >> 32) as usize);
    let body = page.get(BODY_AT..BODY_AT.checked_add(length)?)?;
    if crc32c::crc32c(body) != crc {
        return None;
    }
    let config = bincode::config::standard().with_limit::<{ 4 * PAGE_SIZE }>();
    bincode::serde::decode_from_slice(body, config).ok().map(|(map, _)| map)
}

/// Whether a page is neither a map nor empty, as one is that has just been made.
pub(super) fn is_damaged(page: &Page) -> bool {
    decode(page).is_none() && page[MAGIC_AT..].iter().any(|byte| *byte != 0)
}

/// Writes a map to a page that has PostgreSQL's header. One that does not fit is written without its segments.
pub(super) fn encode(map: &Map, version: u64, page: &mut Page) {
    let body = encode_body(map).or_else(|| encode_body(&Map { segments: None, ..map.clone() })).unwrap_or_default();
    let sizes = u64::from(crc32c::crc32c(&body)) | (body.len() as u64) << 32;
    for (at, number) in [(MAGIC_AT, MAGIC), (VERSION_AT, version), (CRC_AT, sizes)] {
        page[at..at + 8].copy_from_slice(&number.to_le_bytes());
    }
    let end = BODY_AT + body.len();
    page[BODY_AT..end].copy_from_slice(&body);
    // What lies behind this is not logged.
    page[PD_LOWER_AT..PD_LOWER_AT + 2].copy_from_slice(&(end as u16).to_ne_bytes());
}

fn encode_body(map: &Map) -> Option<Vec<u8>> {
    let body = bincode::serde::encode_to_vec(map, bincode::config::standard()).ok()?;
    (body.len() <= MAX_BODY).then_some(body)
}

/// The eight bytes at `at`; `at` is one of this file's constants, all far inside the page.
fn number(page: &Page, at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&page[at..at + 8]);
    u64::from_le_bytes(bytes)
}
