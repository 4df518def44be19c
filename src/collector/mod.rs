//! The collector.

pub mod message;
