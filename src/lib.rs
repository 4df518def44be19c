//! Dragline.

pub mod settings;
