//! Fakes for tests of spiders and of the engine: no socket, virtual time.

mod kept;
pub mod transport;

pub(crate) use kept::Watched;
pub use kept::on_kept;
#[cfg(test)]
pub(crate) use transport::Free;
pub use transport::{Answer, ScriptedTransport};
