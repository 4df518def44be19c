//! Dragline.

extern crate self as dragline;

#[doc(hidden)]
pub use serde;

pub use app::App;

pub mod actor;
pub mod apcloudy;
pub mod api;
mod app;
pub mod broker;
pub mod collector;
pub mod courier;
