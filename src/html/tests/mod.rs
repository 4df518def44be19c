//! Tests of the whole engine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod properties;
mod selection;
mod serialize;
