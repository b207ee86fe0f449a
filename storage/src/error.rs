//! What can go wrong below PostgreSQL.

/// An error of this crate. Bytes that cannot be what was written are an error, never a panic.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// Bytes that this crate did not write, or that were damaged since.
    #[error("damaged data{}: {what}", page_no.map_or_else(String::new, |page| format!(" in page {page}")))]
    Damaged {
        /// Page of the run, where known.
        page_no: Option<u32>,
        /// What was found wrong.
        what: &'static str,
    },
    /// A format newer than this build reads.
    #[error("format version {version} is not supported")]
    Unsupported {
        /// The version found.
        version: u16,
    },
    /// Something exceeds a limit of the format.
    #[error("{what} of {bytes} bytes exceeds the limit of {limit}")]
    TooLarge {
        /// What was too large.
        what: &'static str,
        /// Its size in bytes.
        bytes: u64,
        /// The most that is allowed, in bytes.
        limit: u64,
    },
    /// A file operation of a sort or a sink failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The source of pages failed; its own words.
    #[error("{0}")]
    Source(String),
}

impl StorageError {
    /// Damage found where no page is known.
    #[must_use]
    pub fn damaged(what: &'static str) -> Self {
        Self::Damaged {
            page_no: None,
            what,
        }
    }
}

/// Result of this crate.
pub type Result<T> = std::result::Result<T, StorageError>;
