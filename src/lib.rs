//! Dragline.

pub mod api;
pub mod export;
