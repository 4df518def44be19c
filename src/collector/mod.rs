//! The collector: everything that must reach the sink goes through here.
//!
//! A record is accepted when it is written to the record log; a batch is a range of that log. Nothing here sends
//! anything to the sink: that is the courier's.

mod actor;
pub mod batch;
mod closing;
mod config;
mod feeds;
mod hold;
pub mod layer;
pub mod log;
pub mod logring;
pub mod message;
mod open;
mod outbox;
mod outcome;
mod stamp;
mod state;
#[cfg(test)]
mod tests;
mod written;

pub use actor::Collector;
pub use config::{COURIER_BOUND, CollectorConfig, Ends, Tidy, spool_dir};
pub use open::{Delivery, Outlets, Seeds, open, open_at};
pub use stamp::stamp;
pub use state::CollectorState;
