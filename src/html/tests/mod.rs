//! Tests of the engine as a whole.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod attacks;
mod css;
mod differential;
mod fragment;
mod fuzz;
mod mutate;
mod oracle;
mod order;
mod selectors;
mod shrink;
mod soup;
mod tokenizer;
mod tree;
mod words;
mod xpath;
