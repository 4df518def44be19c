//! What a spider author touches.

pub mod failure;
pub mod request;
pub mod signal;
pub mod stats;
pub mod step;
