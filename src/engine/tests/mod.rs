//! The hub against a simulated world, and the whole engine in one thread on the paused clock.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod alone;
mod simulated;
mod whole;
mod world;
