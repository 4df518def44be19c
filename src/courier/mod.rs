//! The courier's plain parts: what a sink is, the embedded sink, and a scripted one for tests.
//!
//! A sink takes whole batches, one at a time, and knows a batch it has seen by its id. Retrying, backing off and
//! quarantine are decided by whoever calls it.

mod memory;
pub mod message;
pub(crate) mod store;
mod summary;
mod webhook;

pub use memory::MemorySink;
pub use store::{JobStore, StoreError};
pub use summary::{JobRow, JobSummary, TopError};
pub use webhook::{Delivery, SinkError, Webhook};
