//! The parsers.

pub mod message;
