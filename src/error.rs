//! PostgreSQL messages with any SQLSTATE and a cursor position.
//!
//! pgrx raises an error by unwinding with a report whose SQLSTATE must be one of its enumeration, which has no
//! place for our own classes (42K01 ...) nor for a cursor position; and a direct `ThrowErrorData` would jump over
//! Rust frames without running their destructors. So an error that pgrx cannot carry is unwound as an
//! internal error, and an error context callback, which PostgreSQL calls while it finishes the report, sets
//! the SQLSTATE and position (as core's own `pcb_error_callback` does for parse positions).
//!
//! When such an error later passes a `pg_sys` function that Rust called (a hook that calls `standard_planner`,
//! SPI), pgrx converts it once more and forgets both: wrap such calls in [`keeping_sqlstate`].

use std::cell::{Cell, RefCell};
use std::ffi::CString;
use std::panic::{catch_unwind, panic_any, resume_unwind, AssertUnwindSafe};
use std::ptr;

use pgrx::pg_sys::panic::{CaughtError, ErrorReport, ErrorReportWithLevel};
use pgrx::pg_sys::{self, errcodes::PgSqlErrorCode};
use pgrx::PgLogLevel;

/// A message to the user or the log: SQLSTATE, text, and what may go with it.
#[derive(Clone, Debug)]
#[must_use = "a report does nothing until it is raised, warned or logged"]
pub struct Report {
    sqlstate: [u8; 5],
    message: String,
    detail: Option<String>,
    hint: Option<String>,
    position: i32,
}

impl Report {
    /// A report with a five-character SQLSTATE, of digits and capital letters.
    pub fn new(sqlstate: &str, message: impl Into<String>) -> Self {
        let sqlstate = sqlstate.as_bytes().try_into().unwrap_or(*b"XX000");
        Self { sqlstate, message: message.into(), detail: None, hint: None, position: 0 }
    }

    /// Adds the DETAIL.
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Adds the HINT.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the place in the statement's text, in characters from 1; 0 or less is none.
    pub fn position(mut self, position: i32) -> Self {
        self.position = position.max(0);
        self
    }

    /// Adds the place in the statement's text, as parse nodes give it: a byte offset from 0, negative if unknown.
    ///
    /// # Safety
    /// `source` is null or a NUL-terminated string in the database's encoding.
    pub unsafe fn location(self, source: *const std::ffi::c_char, byte_offset: i32) -> Self {
        if source.is_null() || byte_offset < 0 {
            return self;
        }
        // SAFETY: the caller vouches for `source`; the function stops at its end.
        let characters = unsafe { pg_sys::pg_mbstrlen_with_len(source, byte_offset) };
        self.position(characters + 1)
    }

    /// Raises an ERROR, which ends the statement.
    pub fn raise(self) -> ! {
        let sqlstate = self.packed_sqlstate();
        // Any SQLSTATE that pgrx does not know becomes an internal error here.
        let carried = PgSqlErrorCode::from(sqlstate);
        if carried as i32 != sqlstate || self.position > 0 {
            UNFINISHED.set(Some(Unfinished {
                carried: carried as i32,
                sqlstate,
                position: self.position,
                message: self.message.clone(),
            }));
            arm();
        }
        let mut report = ErrorReport::new(carried, self.message, "cass");
        if let Some(detail) = self.detail {
            report = report.set_detail(detail);
        }
        if let Some(hint) = self.hint {
            report = report.set_hint(hint);
        }
        panic_any(report)
    }

    /// Sends a WARNING to client and log.
    pub fn warn(self) {
        self.emit(PgLogLevel::WARNING);
    }

    /// Sends a NOTICE to the client.
    pub fn notice(self) {
        self.emit(PgLogLevel::NOTICE);
    }

    /// Writes to the server's log.
    pub fn log(self) {
        self.emit(PgLogLevel::LOG);
    }

    /// The SQLSTATE as PostgreSQL keeps it: six bits a character (`MAKE_SQLSTATE`).
    fn packed_sqlstate(&self) -> i32 {
        self.sqlstate.iter().rev().fold(0, |packed, byte| packed << 6 | i32::from(byte.wrapping_sub(b'0') & 0x3f))
    }

    fn emit(self, level: PgLogLevel) {
        let text = |text: Option<&str>| text.map(to_c_string);
        let (message, detail, hint) =
            (to_c_string(&self.message), text(self.detail.as_deref()), text(self.hint.as_deref()));
        let pointer = |text: &Option<CString>| text.as_ref().map_or(ptr::null(), |text| text.as_ptr()).cast_mut();
        let mut data = pg_sys::ErrorData {
            elevel: level as i32,
            filename: c"error.rs".as_ptr(),
            funcname: c"emit".as_ptr(),
            sqlerrcode: self.packed_sqlstate(),
            message: message.as_ptr().cast_mut(),
            detail: pointer(&detail),
            hint: pointer(&hint),
            cursorpos: self.position,
            ..Default::default()
        };
        // SAFETY: the strings outlive the call, which copies them; below ERROR the call returns.
        unsafe { pg_sys::ThrowErrorData(&raw mut data) };
    }
}

/// The text without zero bytes, which no PostgreSQL message can hold.
fn to_c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}

/// What pgrx could not carry of the last such error.
struct Unfinished {
    /// The SQLSTATE under which pgrx carries the error.
    carried: i32,
    sqlstate: i32,
    position: i32,
    message: String,
}

thread_local! {
    static UNFINISHED: RefCell<Option<Unfinished>> = const { RefCell::new(None) };
    /// Whether the error in `UNFINISHED` is on its way to PostgreSQL.
    static ARMED: Cell<bool> = const { Cell::new(false) };
    /// Node of the callback; its address must outlive every error context stack.
    static CALLBACK: Cell<*mut pg_sys::ErrorContextCallback> = const { Cell::new(ptr::null_mut()) };
}

extern "C-unwind" {
    // Left out of pgrx's bindings; none of them raises an error when called from an error context callback.
    fn errcode(sqlerrcode: i32) -> i32;
    fn errposition(cursorpos: i32) -> i32;
    fn geterrcode() -> i32;
}

/// Puts the callback on the error context stack, once. Whoever catches the error restores the stack.
fn arm() {
    ARMED.set(true);
    let mut node = CALLBACK.get();
    if node.is_null() {
        node = Box::into_raw(Box::<pg_sys::ErrorContextCallback>::default());
        CALLBACK.set(node);
    }
    // SAFETY: the backend has one thread, and the stack is a chain of live nodes; ours is never freed.
    unsafe {
        let mut other = pg_sys::error_context_stack;
        while !other.is_null() {
            if other == node {
                return;
            }
            other = (*other).previous;
        }
        *node = pg_sys::ErrorContextCallback {
            previous: pg_sys::error_context_stack,
            callback: Some(finish_report),
            arg: ptr::null_mut(),
        };
        pg_sys::error_context_stack = node;
    }
}

/// Error context callback: gives the error in progress the SQLSTATE and position it was raised with.
unsafe extern "C-unwind" fn finish_report(_arg: *mut std::ffi::c_void) {
    UNFINISHED.with_borrow(|unfinished| {
        let Some(unfinished) = unfinished.as_ref().filter(|_| ARMED.get()) else {
            return;
        };
        // SAFETY: called while PostgreSQL finishes a report, the one state these functions may be called in.
        unsafe {
            if geterrcode() == unfinished.carried {
                ARMED.set(false);
                errcode(unfinished.sqlstate);
                errposition(unfinished.position);
            }
        }
    });
}

/// Runs `call`, and lets an error of [`Report::raise`] that comes out of it keep its SQLSTATE.
///
/// For calls that run another statement, by SPI; a position in that one means nothing in the client's.
pub fn keeping_sqlstate<R>(call: impl FnOnce() -> R) -> R {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result,
        Err(payload) => {
            if let Some(CaughtError::PostgresError(report)) = payload.downcast_ref::<CaughtError>() {
                if is_unfinished(report) {
                    UNFINISHED.with_borrow_mut(|last| {
                        if let Some(last) = last {
                            last.position = 0;
                        }
                    });
                    arm();
                }
            }
            resume_unwind(payload)
        }
    }
}

/// Whether this is what pgrx has made of our last error.
fn is_unfinished(report: &ErrorReportWithLevel) -> bool {
    UNFINISHED.with_borrow(|last| {
        last.as_ref()
            .is_some_and(|last| last.carried == report.sql_error_code() as i32 && last.message == report.message())
    })
}
