//! Random numbers that nobody can foresee.

use crate::error::Report;
use pgrx::pg_sys;

/// A random number.
///
/// # Errors
/// XX000 where the operating system gives none.
pub fn random_u64() -> u64 {
    let mut bytes = [0_u8; 8];
    // SAFETY: the buffer has the length that is passed.
    if !unsafe { pg_sys::pg_strong_random(bytes.as_mut_ptr().cast(), bytes.len()) } {
        Report::new("XX000", "could not make a random number").raise();
    }
    u64::from_le_bytes(bytes)
}
