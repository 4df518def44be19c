//! The binary from end to end: real processes, real loopback servers, everything they leave behind.
//!
//! Nothing here goes to another machine, and each test has a folder of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, missing_docs)]

mod apcloudy;
mod apcloudy_settings;
mod asked_for;
mod books_of_a_job;
mod bookshop;
mod cases;
mod deliver;
mod demo;
mod disk_trouble;
mod faults;
mod feeds;
mod fleet;
mod harness;
mod html;
mod http_cache;
mod job_store;
mod kill_loop;
mod killed;
mod leased;
mod leased_faults;
mod leased_kept;
mod leased_killed;
mod live_settings;
mod memory;
mod plane;
mod projects;
mod quotes;
mod records_of_a_run;
mod redis;
mod resumable;
mod resume;
mod secrets;
mod serve;
mod server;
mod signals;
mod small_disk;
mod spool;
mod usage;
mod user_crate;
mod watched_config;
