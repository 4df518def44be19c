//! Dragline.

pub mod apcloudy;
pub mod collector;
pub mod courier;
