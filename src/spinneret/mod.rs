#![doc = include_str!("front.md")]

mod answer;
mod backoff;
pub mod blocking;
#[cfg(test)]
mod canary;
mod classify;
mod client;
mod code;
mod draft;
mod error;
mod error_kind;
mod lease;
mod merge;
pub mod messages;
mod procedure;
mod reporter;
mod retry;
mod snapshot;
#[cfg(test)]
pub(crate) mod testing;
mod transport;
mod watcher;
mod wire;

pub use crate::via::ProxyChoice;
pub use classify::{carried_status, classify, classify_response, is_bad_certificate};
pub use client::{Client, ClientBuilder};
pub use code::Code;
pub(crate) use draft::path_of;
pub use draft::{BusinessCode, ReportDraft, Stopwatch};
pub use error::{Details, Error, Result};
pub use error_kind::ErrorKind;
pub(crate) use lease::Expiry;
pub use lease::{Lease, NewLease};
pub(crate) use merge::parse_cookies;
pub use merge::{Explicit, Parts, parts};
pub use messages::{
    AcquireBatchRequest, AcquireBatchResponse, AcquireRequest, AcquireResponse, BatchGetConfigRequest, BatchGetConfigResponse,
    ConfigItem, ConfigKey, Credential, GetConfigRequest, GetSecretRequest, Hints, LeaseInfo, ProxyAssignment, RejectedReport,
    ReleaseResponse, RenewResponse, Report, ReportResponse, Secret, WatchConfigRequest, WatchItem,
};
pub(crate) use messages::{ReleaseRequest, ReportRequest};
pub(crate) use procedure::{Procedure, Rpc};
pub use reporter::{OnRejected, Reporter, ReporterOptions, ReporterStats};
/// The version of reqwest whose requests and responses the methods here speak of.
pub use reqwest;
pub use retry::{RetryPolicy, Timeouts};
pub use watcher::{ChangeFilter, Changes, ConfigWatcher, ListenerId, WatcherOptions};
