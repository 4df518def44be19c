//! The control plane: the contract every part of the crawl leases and reports through, and the embedded
//! plane that keeps the server's model in memory. Knows no actor and no engine.

mod contract;
mod desk;
pub mod embedded;
pub(crate) mod face;
mod follow;
pub(crate) mod grants;
pub(crate) mod model;
pub mod remote;
#[cfg(test)]
pub(crate) mod scripted;
pub(crate) mod seed;
pub(crate) mod simulate;

pub use contract::*;
pub use follow::{ConfigFeed, Configured};
pub use seed::SeedError;
