//! The control plane: the contract every part of the crawl leases and reports through, and the embedded
//! plane that keeps the server's model in memory. Knows no actor and no engine.

mod contract;
pub mod embedded;
pub(crate) mod face;
pub mod identities;
mod model;
mod seed;
#[cfg(test)]
pub(crate) mod scripted;
mod seed;

pub use contract::*;
