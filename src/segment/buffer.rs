//! Where a run's pages wait until their number is known: memory, then a temporary file.

use std::fs::{self, DirBuilder};
use std::io::{BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use cass_storage::page::{Page, PAGE_SIZE};
use cass_storage::segment::PageSink;
use cass_storage::StorageError;
use tempfile::SpooledTempFile;

/// Bytes kept in memory; a flush mostly stays below.
const MEMORY: usize = 8 << 20;
/// Bytes written or read at a time.
const CHUNK: usize = 64 * PAGE_SIZE;

/// Folder for temporary files: the one whose content PostgreSQL itself removes at server start, made where it is missing.
/// Relative to the data directory, every backend's working directory.
///
/// # Errors
/// Whatever making the folder fails with.
pub fn temp_directory() -> std::io::Result<PathBuf> {
    let directory = PathBuf::from("base/pgsql_tmp");
    if !fs::exists(&directory)? {
        match DirBuilder::new().mode(0o700).create(&directory) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    Ok(directory)
}

/// Takes the pages of a run.
pub struct RunBuffer {
    file: BufWriter<SpooledTempFile>,
    pages: u32,
}

impl RunBuffer {
    /// An empty buffer.
    ///
    /// # Errors
    /// Whatever making the folder for temporary files fails with.
    pub fn new() -> std::io::Result<RunBuffer> {
        let file = tempfile::spooled_tempfile_in(MEMORY, temp_directory()?);
        Ok(RunBuffer { file: BufWriter::with_capacity(CHUNK, file), pages: 0 })
    }

    /// Number of pages taken.
    pub fn page_count(&self) -> u32 {
        self.pages
    }

    /// Gives the pages back, first to last.
    ///
    /// # Errors
    /// Whatever writing or reading the temporary file fails with.
    pub(super) fn into_pages(self) -> std::io::Result<Pages> {
        let mut file = self.file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        file.seek(SeekFrom::Start(0))?;
        Ok(Pages { file: BufReader::with_capacity(CHUNK, file) })
    }
}

impl PageSink for RunBuffer {
    fn put(&mut self, page: &Page) -> Result<(), StorageError> {
        self.file.write_all(page)?;
        self.pages = self.pages.checked_add(1).ok_or(StorageError::TooLarge {
            what: "pages of a run",
            size: u64::from(u32::MAX) + 1,
            limit: u64::from(u32::MAX),
        })?;
        Ok(())
    }
}

/// The pages of a run, first to last.
pub(super) struct Pages {
    file: BufReader<SpooledTempFile>,
}

impl Pages {
    /// Reads the next page.
    pub(super) fn next(&mut self, page: &mut Page) -> std::io::Result<()> {
        self.file.read_exact(page)
    }
}
