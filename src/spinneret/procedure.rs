//! The nine calls of a node.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Result;
use super::retry::Timeouts;

/// A call of the node API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Procedure {
    Acquire,
    AcquireBatch,
    Renew,
    Release,
    Report,
    GetConfig,
    BatchGetConfig,
    WatchConfig,
    GetSecret,
}

impl Procedure {
    /// All of them, in the order of their discriminants.
    pub(crate) const ALL: [Self; 9] = [
        Self::Acquire,
        Self::AcquireBatch,
        Self::Renew,
        Self::Release,
        Self::Report,
        Self::GetConfig,
        Self::BatchGetConfig,
        Self::WatchConfig,
        Self::GetSecret,
    ];

    /// Service and method, `spinneret.v1.LeaseService/Acquire`: the path after the base URL.
    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::Acquire => "spinneret.v1.LeaseService/Acquire",
            Self::AcquireBatch => "spinneret.v1.LeaseService/AcquireBatch",
            Self::Renew => "spinneret.v1.LeaseService/Renew",
            Self::Release => "spinneret.v1.LeaseService/Release",
            Self::Report => "spinneret.v1.ReportService/Report",
            Self::GetConfig => "spinneret.v1.ConfigService/GetConfig",
            Self::BatchGetConfig => "spinneret.v1.ConfigService/BatchGetConfig",
            Self::WatchConfig => "spinneret.v1.ConfigService/WatchConfig",
            Self::GetSecret => "spinneret.v1.SecretService/GetSecret",
        }
    }

    /// Whether the call may be made again when nobody knows whether it was served.
    pub(crate) const fn is_idempotent(self) -> bool {
        !matches!(self, Self::Acquire | Self::AcquireBatch)
    }
}

impl fmt::Display for Procedure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.path())
    }
}

/// A request of the node API: what is called, what is answered, what is checked before.
pub(crate) trait Rpc: Serialize + Send + Sync {
    /// What the server answers.
    type Answer: DeserializeOwned;

    /// Which call it is.
    const PROCEDURE: Procedure;

    /// Checks every bound of the wire contract, before any I/O.
    fn validate(&self) -> Result<()>;

    /// Checks what the server must say for an answer to be of use, and says what is missing.
    fn check(_answer: &Self::Answer) -> Result<(), &'static str> {
        Ok(())
    }

    /// How long the answer may take: the silence a client bears.
    fn read_timeout(&self, timeouts: &Timeouts) -> Duration {
        timeouts.read
    }
}
