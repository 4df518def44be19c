//! Tests of the engine as a whole: conformance tables, comparison with other engines, hostile pages.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod css;
mod engines;
mod mixing;
mod properties;
mod selection;
mod serialize;
//! The engine against data: conformance, properties, attacks.

mod xpath;
//! Tests of the whole engine, by what they compare it with.

mod fragment;
mod tokenizer;
mod tree;
