//! The client of the control plane as its users see it: the public interface over real sockets.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod books;
mod log;
mod server;
mod session;
