//! Dragline.

pub mod actor;
