//! What can go wrong while reading or writing segments.

use thiserror::Error;

/// Result of everything in this crate.
pub type Result<T> = std::result::Result<T, StorageError>;

/// An error of the storage crate. The extension turns it into a PostgreSQL error with an SQLSTATE.
#[derive(Debug, Error)]
pub enum StorageError {
    /// Bytes that no writer of this crate can have written.
    #[error("damaged data{}: {what}", page_no.map(|n| format!(" in page {n} of the run")).unwrap_or_default())]
    Damaged {
        /// Page within the run, where one is known.
        page_no: Option<u32>,
        /// What does not hold.
        what: &'static str,
    },
    /// A format version this build does not know.
    #[error("format version {version} is not supported")]
    Unsupported {
        /// The version found.
        version: u16,
    },
    /// A value larger than the format can hold.
    #[error("{what} of {size} exceeds the limit of {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its size, in bytes unless `what` names another unit.
        size: u64,
        /// The largest size allowed.
        limit: u64,
    },
    /// A row that may not be written: keys not strictly ascending, or a value that does not fit its column.
    #[error("row refused: {what}")]
    Refused {
        /// The rule that was broken.
        what: &'static str,
    },
    /// An error of the operating system.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// An error of a page source or sink, in its own words.
    #[error("{0}")]
    Source(String),
}

impl StorageError {
    /// Damage in bytes whose page is not known here; see [`StorageError::on_page`].
    pub fn damaged(what: &'static str) -> Self {
        StorageError::Damaged { page_no: None, what }
    }

    /// Damage in page `page_no` of the run.
    pub(crate) fn damaged_at(page_no: u32, what: &'static str) -> Self {
        StorageError::Damaged { page_no: Some(page_no), what }
    }

    /// Names the page in a damage report that does not name one yet.
    pub(crate) fn on_page(self, page_no: u32) -> Self {
        match self {
            StorageError::Damaged { page_no: None, what } => StorageError::Damaged { page_no: Some(page_no), what },
            other => other,
        }
    }
}
