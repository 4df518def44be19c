//! Dragline.

extern crate self as dragline;

#[doc(hidden)]
pub use serde;

pub mod actor;
pub mod apcloudy;
pub mod api;
pub mod broker;
pub mod collector;
pub mod courier;
pub mod demo;
pub mod downloader;
pub mod engine;
pub mod export;
pub mod parser;
pub mod plane;
pub mod prelude;
pub mod reporter;
pub mod scheduler;
pub mod settings;
pub mod testkit;
pub mod web;
