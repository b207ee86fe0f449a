//! Stand-in.
use crate::read::TableState;
use pgrx::pg_sys;
pub struct BulkLoad {}
impl BulkLoad {
    pub fn new(_s: &TableState) -> Self { BulkLoad {} }
    pub fn next_position(&self) -> u64 { 0 }
    pub fn push(&mut self, _k: &[u8], _p: usize, _r: &[u8]) {}
    pub fn finish(self, _rel: pg_sys::Relation) -> u64 { 0 }
}
pub unsafe fn vacuum(_r: pg_sys::Relation, _p: *mut pg_sys::VacuumParams, _s: pg_sys::BufferAccessStrategy) {}
