//! The server's model of leases, in memory: who gets which identity, what a report does to it.
//!
//! Pure: no I/O, no task, no clock of its own. Times are milliseconds since the Unix epoch and come in as arguments, chance
//! comes in as [`Dice`](crate::dice::Dice); so a run can be repeated exactly.

pub(crate) mod action;
pub(crate) mod authority;
pub(crate) mod breaker;
pub(crate) mod config_center;
pub(crate) mod counts;
pub(crate) mod cross;
pub(crate) mod gate;
pub(crate) mod glob;
pub(crate) mod groups;
pub(crate) mod identity_type;
pub(crate) mod import;
pub(crate) mod lease;
pub(crate) mod lease_id;
mod outcome;
pub(crate) mod policy;
pub(crate) mod proxy_pool;
pub(crate) mod proxy_url;
pub(crate) mod quota;
pub(crate) mod ready;
pub(crate) mod refusal;
pub(crate) mod render;
pub(crate) mod runtime_items;
pub(crate) mod scope;
pub(crate) mod score;
pub(crate) mod secrets;
pub(crate) mod signal;
pub(crate) mod sticky;
pub(crate) mod strategy;
pub(crate) mod streak;
pub(crate) mod token;

pub(crate) use authority::Plane;
pub(crate) use outcome::{Blame, Outcome};

/// A moment, in milliseconds since the Unix epoch.
pub(crate) type Ms = u64;
