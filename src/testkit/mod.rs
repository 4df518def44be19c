//! Fakes for tests of spiders and of the engine: a transport without a socket and in virtual time, and on loopback ports a
//! webhook, a control plane and proxies that follow a script.

pub mod hostile;
pub mod hosts;
mod kept;
mod loopback;
pub mod pages;
pub mod plane;
mod plane_wire;
pub mod proxy;
pub mod transport;
pub mod webhook;
mod webhook_wire;

pub(crate) use kept::Watched;
pub use kept::on_kept;
pub use plane::ScriptedPlane;
pub use proxy::{Passed, ProxyFault, ProxyKind, ScriptedProxy, Way};
#[cfg(test)]
pub(crate) use transport::Free;
pub use transport::{Answer, ScriptedTransport};
pub use webhook::{Received, Records, ScriptedWebhook, Step};
