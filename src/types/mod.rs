//! Types that key columns may have: their values as Cassandra serialises them for tokens, and as
//! order-preserving key bytes.

mod error;
mod inet;
mod key_type;
mod numeric;
mod own;
mod text;
mod timeuuid;
mod tinyint;
mod varint;
mod varlena;

pub use error::TypeError;
pub use key_type::KeyType;

pgrx::extension_sql_file!("../../sql/types.sql", name = "cass_types");
