//! Tests of the engine as a whole: conformance tables, comparison with other engines, hostile pages.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod css;
mod engines;
mod fragment;
mod mixing;
mod properties;
mod selection;
mod serialize;
mod tokenizer;
mod tree;
mod xpath;
