//! Segments of cass tables, without PostgreSQL.
