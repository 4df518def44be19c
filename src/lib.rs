//! Dragline.

pub mod apcloudy;
