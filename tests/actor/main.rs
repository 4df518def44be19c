//! What the seam over actix promises, one sentence a test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a failing test is the report")]

mod drain;
mod failure;
mod links;
mod player;
mod threads;
mod turns;
