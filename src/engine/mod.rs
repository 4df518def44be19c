//! The engine.

pub mod message;
pub mod ticket;
