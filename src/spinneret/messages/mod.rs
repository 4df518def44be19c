//! The messages of the node API, as they are on the wire (wire contract, sections 2, 4 and 8).
//!
//! Plain values with public fields. Read tolerantly: unknown members are passed over, missing ones and `null` are the
//! default, integers may be decimal texts. Written in full, with the names of the protocol. `Debug` never shows what a
//! credential, a proxy's URL, a configuration item, a session key or a secret holds.

mod acquire;
mod bounds;
mod config;
mod config_key;
mod config_request;
mod hidden;
mod lease;
mod lease_call;
mod report;
mod secret;
#[cfg(test)]
mod tests;
mod timestamp;
pub(crate) mod tolerant;
mod typed;

use std::time::Duration;

pub use acquire::{AcquireBatchRequest, AcquireRequest};
pub use config::{BatchGetConfigResponse, ConfigItem, GetConfigResponse, WatchConfigResponse};
pub use config_key::ConfigKey;
pub use config_request::{BatchGetConfigRequest, GetConfigRequest, WatchConfigRequest, WatchItem};
pub use lease::{AcquireBatchResponse, AcquireResponse, Credential, Hints, LeaseInfo, ProxyAssignment};
pub use lease_call::{ReleaseRequest, ReleaseResponse, RenewRequest, RenewResponse};
pub use report::{RejectedReport, Report, ReportRequest, ReportResponse};
pub use secret::{GetSecretRequest, Secret};

/// A duration as the wire has it: whole milliseconds, rounded up, because zero often means another duration. What does not
/// fit becomes a number that no bound allows.
fn milliseconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX)
}
