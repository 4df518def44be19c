//! Fakes for tests of spiders and of the engine: no socket, virtual time.

pub mod transport;

pub use transport::{Answer, ScriptedTransport};
