//! Dragline.
