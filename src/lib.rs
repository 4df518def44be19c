#![doc = include_str!("front.md")]

extern crate self as dragline;

#[doc(hidden)]
pub use serde;

pub use app::App;

pub mod apcloudy;
pub mod api;
mod app;
mod backoff;
mod causes;
mod cli;
mod config;
pub mod demo;
mod dice;
mod event;
pub mod export;
pub mod html;
mod http_server;
mod later;
mod nearest;
mod permissions;
pub mod plane;
pub mod prelude;
mod reach;
mod roots;
mod run;
mod serve;
pub mod settings;
pub mod spinneret;
mod upload;
mod via;
pub mod web;

// The runtime's own parts: no signature of the spider API names a type of theirs.
#[doc(hidden)]
pub mod actor;
#[doc(hidden)]
pub mod broker;
#[doc(hidden)]
pub mod collector;
#[doc(hidden)]
pub mod courier;
#[doc(hidden)]
pub mod downloader;
#[doc(hidden)]
pub mod engine;
#[doc(hidden)]
pub mod parser;
#[doc(hidden)]
pub mod reporter;
#[doc(hidden)]
pub mod scheduler;
#[doc(hidden)]
pub mod testkit;
