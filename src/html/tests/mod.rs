//! Tests of the engine as a whole: conformance tables, comparison with other engines, hostile pages.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod attacks;
mod css;
mod differential;
mod engines;
mod fragment;
mod fuzz;
mod markup;
mod mixing;
mod mutate;
mod oracle;
mod order;
mod properties;
mod rules;
mod selection;
mod selectors;
mod serialize;
mod shrink;
mod soup;
mod tokenizer;
mod tree;
mod words;
mod xpath;
