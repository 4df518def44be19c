//! The lease broker.

pub mod message;
