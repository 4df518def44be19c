//! The courier: hands batches to a sink, one at a time and in order, until each is settled.
//!
//! A sink takes whole batches and knows a batch it has seen by its id. Retrying, backing off, taking apart and putting
//! aside what is refused are the courier's; the sinks are here as well: APCloudy over HTTP, the
//! embedded one, and a scripted one for tests.

mod actor;
mod delivery;
mod http;
pub(crate) mod intake;
mod lines;
mod lists;
mod memory;
pub mod message;
mod prune;
mod records;
pub(crate) mod rejected;
pub(crate) mod split;
pub(crate) mod store;
mod store_error;
mod summary;
#[cfg(test)]
pub(crate) mod testing;
mod webhook;

pub use actor::Courier;
pub use delivery::{CourierOptions, CourierState};
pub use http::HttpWebhook;
pub use memory::MemorySink;
pub use prune::Pruned;
pub use store::{JobStore, StoreError, Stored};
pub use summary::{JobLine, JobRow, JobSummary, TopError};
pub use webhook::{Pending, Webhook};
