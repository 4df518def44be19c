//! The courier: hands batches to a sink, one at a time and in order, until each is settled.
//!
//! A sink takes whole batches and knows a batch it has seen by its id. Retrying, backing off and quarantine are the
//! courier's; the embedded sink and a scripted one for tests are here as well.

mod actor;
mod delivery;
pub(crate) mod intake;
mod memory;
pub mod message;
mod prune;
mod records;
mod split;
pub(crate) mod store;
mod summary;
#[cfg(test)]
pub(crate) mod testing;
mod webhook;

pub use actor::Courier;
pub use delivery::{CourierOptions, CourierState};
pub use memory::MemorySink;
pub use prune::Pruned;
pub use store::{JobStore, StoreError};
pub use summary::{JobLine, JobRow, JobSummary, TopError};
pub use webhook::{Delivery, SinkError, Webhook};
