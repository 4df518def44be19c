//! The engine.

pub mod message;
pub mod ticket;
pub(crate) mod window;
