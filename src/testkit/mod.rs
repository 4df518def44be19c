//! Fakes for tests of spiders and of the engine: a transport without a socket and in virtual time, and a webhook on a
//! loopback port that follows a script.

pub mod transport;
pub mod webhook;
mod webhook_wire;

#[cfg(test)]
pub(crate) use transport::Free;
pub use transport::{Answer, ScriptedTransport};
pub use webhook::{Received, Records, ScriptedWebhook, Step};
