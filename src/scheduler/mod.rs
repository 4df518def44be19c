//! The scheduler: frontier, slots and pacing.

pub mod job;
pub mod message;
pub mod store;
