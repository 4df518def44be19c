//! Dragline.
pub mod demo;
