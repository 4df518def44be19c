//! Tests against a real server, started for each test on a port of its own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod server;
mod shared;
