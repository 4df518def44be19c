//! The engine against data: conformance, properties, attacks.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod xpath;
