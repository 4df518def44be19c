//! The courier.

pub mod message;
