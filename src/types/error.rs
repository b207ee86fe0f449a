//! A value or type that cannot be part of a key.

use cass_storage::error::StorageError;

use crate::error::Report;

/// Why a value cannot be serialised or encoded; becomes a [`Report`] with [`TypeError::report`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeError {
    /// SQLSTATE.
    pub sqlstate: &'static str,
    /// What is wrong, without a name for the value.
    pub message: String,
    /// Why, where that is not plain.
    pub detail: Option<&'static str>,
    /// What to do about it.
    pub hint: Option<&'static str>,
}

impl TypeError {
    /// An error without detail and hint.
    pub fn new(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self { sqlstate, message: message.into(), detail: None, hint: None }
    }

    /// Adds the DETAIL.
    #[must_use]
    pub fn detail(mut self, detail: &'static str) -> Self {
        self.detail = Some(detail);
        self
    }

    /// Adds the HINT.
    #[must_use]
    pub fn hint(mut self, hint: &'static str) -> Self {
        self.hint = Some(hint);
        self
    }

    /// The report to raise.
    pub fn report(self) -> Report {
        let mut report = Report::new(self.sqlstate, self.message);
        if let Some(detail) = self.detail {
            report = report.detail(detail);
        }
        if let Some(hint) = self.hint {
            report = report.hint(hint);
        }
        report
    }
}

impl From<StorageError> for TypeError {
    fn from(error: StorageError) -> Self {
        let sqlstate = match error {
            StorageError::TooLarge { .. } | StorageError::Refused { .. } => "54000",
            StorageError::Unsupported { .. } => "0A000",
            StorageError::Damaged { .. } => "XX001",
            StorageError::Io(_) | StorageError::Source(_) => "58030",
        };
        Self::new(sqlstate, error.to_string())
    }
}
