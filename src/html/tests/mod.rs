//! Tests of the whole engine, by what they compare it with.

mod fragment;
mod tokenizer;
mod tree;
