//! Named points at which a test can end the server, raise an error or wait. They exist with the cargo feature `injection_points`
//! only; without it a point is nothing at all.
//!
//! With it, the setting `cass.injection_point` names one and what happens there: `flush-deleted=kill`. `kill` ends the process with
//! SIGKILL, as the kernel would when memory runs out; `error` is an ERROR; `wait` waits for the advisory lock [`LOCK`].

/// What the setting asks for is done if it names this point. Called where no lock on a page is held.
#[cfg(not(feature = "injection_points"))]
#[inline(always)]
pub fn point(_name: &str) {}

#[cfg(not(feature = "injection_points"))]
pub fn init() {}

#[cfg(feature = "injection_points")]
pub use enabled::{init, point};

#[cfg(feature = "injection_points")]
mod enabled {
    use crate::error::Report;
    use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting};
    use pgrx::pg_sys;
    use pgrx::prelude::*;
    use rustix::process::{getpid, kill_process, Signal};
    use std::ffi::{c_void, CString};

    /// The advisory lock that `wait` waits for.
    const LOCK: i64 = 4711;

    static POINT: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(None);

    /// Defines the setting. Called once a process from `_PG_init`.
    pub fn init() {
        GucRegistry::define_string_guc(
            c"cass.injection_point",
            c"A point in the code and what happens there: kill, error or wait. For tests.",
            c"",
            &POINT,
            GucContext::Suset,
            GucFlags::default(),
        );
        // SAFETY: the callback lives as long as the process.
        unsafe { pg_sys::RegisterXactCallback(Some(transaction_ended), std::ptr::null_mut()) };
    }

    /// A transaction that snapshots see as committed, of which other sessions' caches have not heard yet.
    #[pg_guard]
    unsafe extern "C-unwind" fn transaction_ended(event: pg_sys::XactEvent::Type, _argument: *mut c_void) {
        if event == pg_sys::XactEvent::XACT_EVENT_COMMIT {
            point("transaction-committed");
        }
    }

    /// See the other one.
    pub fn point(name: &str) {
        let Some(setting) = POINT.get() else { return };
        let Some((wanted, action)) = setting.to_str().ok().and_then(|text| text.split_once('=')) else { return };
        if wanted != name {
            return;
        }
        match action {
            "kill" => {
                let _ = kill_process(getpid(), Signal::KILL);
            }
            "wait" => {
                // SAFETY: the function takes the key of a lock and waits for it; it is called in a transaction.
                unsafe {
                    pgrx::direct_function_call::<()>(
                        pg_sys::pg_advisory_xact_lock_int8,
                        &[Some(pg_sys::Datum::from(LOCK))],
                    );
                }
            }
            _ => Report::new("XX000", format!("injection point {name}")).raise(),
        }
    }
}
