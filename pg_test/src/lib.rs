//! Server tests: each starts its own cluster.
