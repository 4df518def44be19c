//! The messages of the node API, as they are on the wire (wire contract, sections 2, 4 and 8).
//!
//! Plain values with public fields. `Debug` never shows what a credential, a proxy's URL, a configuration item or a
//! secret holds.

mod acquire;
mod config;
mod lease;
mod report;
mod secret;

pub use acquire::{AcquireBatchRequest, AcquireRequest};
pub use config::{
    BatchGetConfigRequest, BatchGetConfigResponse, ConfigItem, ConfigKey, GetConfigRequest, GetConfigResponse,
    WatchConfigRequest, WatchConfigResponse, WatchItem,
};
pub use lease::{
    AcquireBatchResponse, AcquireResponse, Credential, Hints, LeaseInfo, ProxyAssignment, ReleaseRequest, ReleaseResponse,
    RenewRequest, RenewResponse,
};
pub use report::{RejectedReport, Report, ReportRequest, ReportResponse};
pub use secret::{GetSecretRequest, Secret};
