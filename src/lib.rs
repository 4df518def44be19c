//! Dragline.

pub mod apcloudy;
pub mod collector;
