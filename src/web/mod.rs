//! tmp
pub mod robots;
