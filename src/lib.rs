//! Dragline.

extern crate self as dragline;

#[doc(hidden)]
pub use serde;

pub mod actor;
pub mod api;
pub mod broker;
pub mod collector;
pub mod courier;
pub mod downloader;
pub mod engine;
pub mod parser;
pub mod plane;
pub mod reporter;
pub mod scheduler;
pub mod settings;
pub mod web;
