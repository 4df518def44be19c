//! Fakes for tests of spiders and of the engine: no socket, virtual time.

pub mod transport;

#[cfg(test)]
pub(crate) use transport::Free;
pub use transport::{Answer, ScriptedTransport};
