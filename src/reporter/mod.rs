//! The reporter.

pub mod message;
