//! What a metapage says, and how it lies in the page.

use pgrx::pg_sys;

use crate::error::Report;

/// Version of the layout of metapage and segments.
pub const FORMAT: u16 = 1;

const MAGIC: u64 = u64::from_le_bytes(*b"cassmeta");
pub(super) const PAGE_SIZE: usize = pg_sys::BLCKSZ as usize;
/// Bytes of PostgreSQL's page header, behind which the content starts.
const CONTENT: usize = 24;
const FORMAT_AT: usize = CONTENT + 8;
const FLAGS_AT: usize = CONTENT + 10;
const CRC_AT: usize = CONTENT + 12;
const NUMBERS_AT: usize = CONTENT + 16;
/// End of the content.
pub(super) const CONTENT_END: usize = NUMBERS_AT + 5 * 8;
const FLAG_DELTA_DIRTY: u16 = 1;

/// Content of a metapage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metapage {
    /// Names one life of the table: new at CREATE, TRUNCATE and rewrite. Positive as a signed number, never 0.
    pub storage_id: u64,
    /// Version of the layout of metapage and segments.
    pub format: u16,
    /// Fingerprint of the key that the rows are stored by; 0 while the table has no primary key.
    pub layout: u64,
    /// The next row id to be given; never 0.
    pub next_row_id: u64,
    /// The next run id to be given; never 0.
    pub next_run_id: u64,
    /// The next place in the order of segments to be given; never 0.
    pub next_sequence: u64,
    /// Whether the delta may hold rows. pg_upgrade does not carry the delta: a set flag stops it, and makes a missing delta an
    /// error. Not set by the transaction that makes a missing delta.
    pub delta_dirty: bool,
}

impl Metapage {
    /// The first metapage of a new life of a table.
    pub(super) fn new() -> Self {
        Self {
            storage_id: random_storage_id(),
            format: FORMAT,
            layout: 0,
            next_row_id: 1,
            next_run_id: 1,
            next_sequence: 1,
            delta_dirty: false,
        }
    }

    /// Writes the content into a page that has PostgreSQL's header.
    pub fn encode(&self, page: &mut [u8; PAGE_SIZE]) {
        let flags = if self.delta_dirty { FLAG_DELTA_DIRTY } else { 0 };
        page[CONTENT..CONTENT + 8].copy_from_slice(&MAGIC.to_le_bytes());
        page[FORMAT_AT..FORMAT_AT + 2].copy_from_slice(&self.format.to_le_bytes());
        page[FLAGS_AT..FLAGS_AT + 2].copy_from_slice(&flags.to_le_bytes());
        let numbers = [self.storage_id, self.layout, self.next_row_id, self.next_run_id, self.next_sequence];
        for (index, number) in numbers.iter().enumerate() {
            let at = NUMBERS_AT + index * 8;
            page[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        let crc = checksum(page);
        page[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
    }

    /// Reads the content of a page, or says what is wrong with it.
    pub fn decode(page: &[u8; PAGE_SIZE]) -> Result<Self, Fault> {
        if number(page, CONTENT) != MAGIC {
            return Err(Fault::Damaged("it does not start as a metapage of cass does"));
        }
        let format = u16::from_le_bytes([page[FORMAT_AT], page[FORMAT_AT + 1]]);
        if format != FORMAT {
            return Err(Fault::Format(format));
        }
        let crc = u32::from_le_bytes([page[CRC_AT], page[CRC_AT + 1], page[CRC_AT + 2], page[CRC_AT + 3]]);
        if crc != checksum(page) {
            return Err(Fault::Damaged("its content does not match its checksum"));
        }
        let flags = u16::from_le_bytes([page[FLAGS_AT], page[FLAGS_AT + 1]]);
        Ok(Self {
            storage_id: number(page, NUMBERS_AT),
            format,
            layout: number(page, NUMBERS_AT + 8),
            next_row_id: number(page, NUMBERS_AT + 16),
            next_run_id: number(page, NUMBERS_AT + 24),
            next_sequence: number(page, NUMBERS_AT + 32),
            delta_dirty: flags & FLAG_DELTA_DIRTY != 0,
        })
    }
}

/// What is wrong with a metapage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Damaged(&'static str),
    /// Written by a version of the extension that this one does not know.
    Format(u16),
}

/// The eight bytes at `at`; `at` is one of this file's constants, all far inside the page.
fn number(page: &[u8; PAGE_SIZE], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&page[at..at + 8]);
    u64::from_le_bytes(bytes)
}

/// CRC32C of the content without the checksum itself.
fn checksum(page: &[u8; PAGE_SIZE]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&page[CONTENT..CRC_AT]), &page[NUMBERS_AT..CONTENT_END])
}

fn random_storage_id() -> u64 {
    loop {
        let mut bytes = [0_u8; 8];
        // SAFETY: the buffer has the length that is passed.
        if !unsafe { pg_sys::pg_strong_random(bytes.as_mut_ptr().cast(), bytes.len()) } {
            Report::new("XX000", "could not make a random storage id").raise();
        }
        let id = u64::from_le_bytes(bytes) >> 1;
        if id != 0 {
            return id;
        }
    }
}
