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
mod intake;
pub mod layer;
pub mod leftovers;
pub mod log;
pub mod logring;
pub mod message;
mod numbers;
mod open;
mod outbox;
mod stamp;
mod state;
#[cfg(test)]
mod tests;
mod written;

pub use actor::Collector;
pub use config::{CARD, COURIER_BOUND, CollectorConfig, Ends, Tidy, spool_dir};
pub use numbers::IndexStore;
pub use open::{Delivery, Outlets, Seeds, Standing, open, open_at};
pub use stamp::stamp;
pub use state::CollectorState;
