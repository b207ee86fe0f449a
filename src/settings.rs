//! Settings `cass.*`.

use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting, PostgresGucEnum};
use pgrx::pg_sys;
use pgrx::prelude::*;

/// Which queries are at fault: setting `cass.enforcement`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PostgresGucEnum)]
pub enum Enforcement {
    /// A condition without the whole partition key.
    #[name = c"partition_key"]
    PartitionKey,
    /// Also a read of a whole table without any condition.
    #[name = c"strict"]
    Strict,
    /// What Cassandra refuses.
    #[name = c"cql"]
    Cql,
    /// None.
    #[name = c"off"]
    Off,
}

/// What happens to a query at fault: setting `cass.on_refusal`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PostgresGucEnum)]
pub enum OnRefusal {
    /// It fails.
    #[name = c"error"]
    Error,
    /// It runs, with a WARNING.
    #[name = c"warning"]
    Warning,
    /// It runs, with a line in the server's log.
    #[name = c"log"]
    Log,
}

static ENFORCEMENT: GucSetting<Enforcement> = GucSetting::<Enforcement>::new(Enforcement::PartitionKey);
static ON_REFUSAL: GucSetting<OnRefusal> = GucSetting::<OnRefusal>::new(OnRefusal::Error);
static ALLOW_FILTERING: GucSetting<bool> = GucSetting::<bool>::new(false);
static EAGER_MERGE_SIZE: GucSetting<i32> = GucSetting::<i32>::new(4096);

/// Which queries are at fault.
pub fn enforcement() -> Enforcement {
    ENFORCEMENT.get()
}

/// What happens to a query at fault.
pub fn on_refusal() -> OnRefusal {
    ON_REFUSAL.get()
}

/// Whether the session allows what `cass_allow_filtering()` would.
pub fn allow_filtering() -> bool {
    ALLOW_FILTERING.get()
}

/// How large segments may be together that VACUUM always merges, in bytes.
pub fn eager_merge_size() -> u64 {
    u64::from(EAGER_MERGE_SIZE.get().unsigned_abs()) * 1024
}

/// Defines the settings. Called once a process from `_PG_init`.
pub fn init() {
    // SAFETY: the hooks are static functions of the types that PostgreSQL calls.
    unsafe {
        GucRegistry::define_enum_guc_with_hooks(
            c"cass.enforcement",
            c"Which queries of cass tables are refused.",
            c"partition_key: a condition without the whole partition key; strict: also an unconditional read; \
              cql: what Cassandra refuses; off: none.",
            &ENFORCEMENT,
            GucContext::Userset,
            GucFlags::default(),
            None,
            Some(enum_assigned),
            None,
        );
        GucRegistry::define_enum_guc_with_hooks(
            c"cass.on_refusal",
            c"What happens to a refused query.",
            c"error: it fails; warning: it runs with a warning; log: it runs with a line in the server's log.",
            &ON_REFUSAL,
            GucContext::Userset,
            GucFlags::default(),
            None,
            Some(enum_assigned),
            None,
        );
        GucRegistry::define_bool_guc_with_hooks(
            c"cass.allow_filtering",
            c"Allows the session what cass_allow_filtering() allows a statement.",
            c"As ALLOW FILTERING in CQL.",
            &ALLOW_FILTERING,
            GucContext::Userset,
            GucFlags::default(),
            None,
            Some(bool_assigned),
            None,
        );
        GucRegistry::define_int_guc(
            c"cass.eager_merge_size",
            c"Size up to which VACUUM merges segments however few they are.",
            c"Reads get quicker, and each VACUUM may write this much more. 0 merges only what the size tiers ask for.",
            &EAGER_MERGE_SIZE,
            0,
            1024 * 1024,
            GucContext::Userset,
            GucFlags::UNIT_KB,
        );
        pg_sys::MarkGUCPrefixReserved(c"cass".as_ptr());
    }
}

/// Has cached plans made anew: whether a query is refused is decided when it is planned.
#[pg_guard]
unsafe extern "C-unwind" fn enum_assigned(_new: i32, _extra: *mut std::ffi::c_void) {
    // SAFETY: only marks plans as invalid; no catalog is read.
    unsafe { pg_sys::ResetPlanCache() };
}

/// As [`enum_assigned`].
#[pg_guard]
unsafe extern "C-unwind" fn bool_assigned(_new: bool, _extra: *mut std::ffi::c_void) {
    // SAFETY: only marks plans as invalid; no catalog is read.
    unsafe { pg_sys::ResetPlanCache() };
}
