//! Tests of the whole engine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod engines;
mod mixing;
mod properties;
mod selection;
mod serialize;
