//! Going on after an error: work in a subtransaction of its own, which is rolled back if the work fails.

use std::panic::AssertUnwindSafe;

use pgrx::pg_sys;
use pgrx::pg_sys::panic::{CaughtError, ErrorReportWithLevel};
use pgrx::pg_sys::PgTryBuilder;

/// An error that was caught.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caught {
    /// Its message, with the DETAIL in parentheses if there is one.
    pub text: String,
}

/// Classes of SQLSTATEs that say nothing of the data: transaction rollback, insufficient resources, object not in prerequisite
/// state (so lock timeouts), operator intervention (so cancelling).
const PASSED_ON: [&str; 4] = ["40", "53", "55", "57"];

/// Runs `work` and gives its result, or the error that it ended in. What the work holds of PostgreSQL is then given back, as by
/// EXCEPTION in PL/pgSQL. Errors that say nothing of the data are raised on.
pub fn caught<R>(work: impl FnOnce() -> R) -> Result<R, Caught> {
    // SAFETY: an internal subtransaction around the work, begun and ended here; memory context and resource owner are put back as
    // they were, and so is the error context stack, which an error leaves as it was inside.
    unsafe {
        let (owner, context) = (pg_sys::CurrentResourceOwner, pg_sys::CurrentMemoryContext);
        let stack = pg_sys::error_context_stack;
        pg_sys::BeginInternalSubTransaction(std::ptr::null());
        pg_sys::MemoryContextSwitchTo(context);
        let result = PgTryBuilder::new(AssertUnwindSafe(|| Ok(work())))
            .catch_rust_panic(|error| Err(Box::new(error)))
            .catch_others(|error| Err(Box::new(error)))
            .execute();
        pg_sys::error_context_stack = stack;
        pg_sys::MemoryContextSwitchTo(context);
        match &result {
            Ok(_) => pg_sys::ReleaseCurrentSubTransaction(),
            Err(_) => pg_sys::RollbackAndReleaseCurrentSubTransaction(),
        }
        pg_sys::MemoryContextSwitchTo(context);
        pg_sys::CurrentResourceOwner = owner;
        match result {
            Ok(result) => Ok(result),
            Err(error) if is_passed_on(report_of(&error)) => error.rethrow(),
            Err(error) => Err(Caught { text: describe(report_of(&error)) }),
        }
    }
}

fn report_of(error: &CaughtError) -> &ErrorReportWithLevel {
    match error {
        CaughtError::PostgresError(report) | CaughtError::ErrorReport(report) => report,
        CaughtError::RustPanic { ereport, .. } => ereport,
    }
}

fn is_passed_on(report: &ErrorReportWithLevel) -> bool {
    // Six bits a character, the first one lowest (`MAKE_SQLSTATE`).
    let code = report.sql_error_code() as i32;
    let class = [code, code >> 6].map(|bits| char::from((bits & 0x3f) as u8 + b'0'));
    PASSED_ON.iter().any(|passed_on| passed_on.chars().eq(class))
}

fn describe(report: &ErrorReportWithLevel) -> String {
    match report.detail() {
        Some(detail) => format!("{} ({})", report.message(), detail.trim_end_matches('.')),
        None => report.message().to_owned(),
    }
}
