//! Memory for one step: what PostgreSQL allocates in it is given back at its end.

use pgrx::pg_sys;

struct Scratch {
    context: pg_sys::MemoryContext,
    outer: pg_sys::MemoryContext,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: both contexts are alive: `context` was made by `enter` and is deleted only here; `outer` was current
        // then and outlives the step. Dropping runs on errors too, since pgrx turns them into unwinding.
        unsafe {
            pg_sys::CurrentMemoryContext = self.outer;
            pg_sys::MemoryContextDelete(self.context);
        }
    }
}

fn enter() -> Scratch {
    // SAFETY: CurrentMemoryContext is always a live context inside a backend.
    unsafe {
        let outer = pg_sys::CurrentMemoryContext;
        let context = pg_sys::AllocSetContextCreateInternal(
            outer,
            c"cass scratch".as_ptr(),
            0,
            pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
            pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
        );
        pg_sys::CurrentMemoryContext = context;
        Scratch { context, outer }
    }
}

/// Runs `work` in a memory context of its own, which is deleted afterwards, also when `work` raises an error.
/// Nothing allocated by PostgreSQL inside may outlive the call.
pub fn in_scratch<R>(work: impl FnOnce() -> R) -> R {
    let _scratch = enter();
    work()
}
