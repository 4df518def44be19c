#![doc = include_str!("front.md")]

extern crate self as dragline;

#[doc(hidden)]
pub use serde;

pub use app::App;

pub mod actor;
pub mod apcloudy;
pub mod api;
mod app;
pub mod broker;
mod cli;
pub mod collector;
mod config;
pub mod courier;
pub mod demo;
pub mod downloader;
pub mod engine;
pub mod export;
pub mod parser;
pub mod plane;
pub mod prelude;
pub mod reporter;
mod run;
pub mod scheduler;
pub mod settings;
pub mod web;
