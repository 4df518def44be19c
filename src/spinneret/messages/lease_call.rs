//! Prolonging leases and giving them back.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{bounds, milliseconds, timestamp, tolerant};
use crate::spinneret::Result;
use crate::spinneret::procedure::{Procedure, Rpc};

/// Prolongs a lease.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RenewRequest {
    /// Which lease, 1 to 128 characters.
    #[serde(alias = "leaseId", deserialize_with = "tolerant::or_default")]
    pub lease_id: String,
    /// From now, in milliseconds, 0 to 1,800,000; 0 means the policy's own duration.
    #[serde(alias = "extendMs", deserialize_with = "tolerant::integer")]
    pub extend_ms: i32,
}

impl RenewRequest {
    /// Prolongs this lease by so much from now on, at most 30 min; zero means the policy's own duration.
    #[must_use]
    pub fn new(lease_id: impl Into<String>, extend: Duration) -> Self {
        Self { lease_id: lease_id.into(), extend_ms: milliseconds(extend) }
    }
}

/// When a prolonged lease ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RenewResponse {
    /// The new expiry.
    #[serde(serialize_with = "timestamp::write_optional", deserialize_with = "timestamp::read_optional")]
    pub expires_at: Option<Timestamp>,
}

/// Gives a lease back.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReleaseRequest {
    /// Which lease, 1 to 128 characters.
    #[serde(alias = "leaseId", deserialize_with = "tolerant::or_default")]
    pub lease_id: String,
}

impl ReleaseRequest {
    /// Gives this lease back.
    #[must_use]
    pub fn new(lease_id: impl Into<String>) -> Self {
        Self { lease_id: lease_id.into() }
    }
}

/// Whether a lease was given back now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReleaseResponse {
    /// False when it had ended before.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub released: bool,
}

impl Rpc for RenewRequest {
    type Answer = RenewResponse;
    const PROCEDURE: Procedure = Procedure::Renew;

    fn validate(&self) -> Result<()> {
        bounds::text("lease_id", &self.lease_id, 1..=128)?;
        Ok(bounds::number("extend_ms", self.extend_ms, 0..=1_800_000)?)
    }
}

impl Rpc for ReleaseRequest {
    type Answer = ReleaseResponse;
    const PROCEDURE: Procedure = Procedure::Release;

    fn validate(&self) -> Result<()> {
        Ok(bounds::text("lease_id", &self.lease_id, 1..=128)?)
    }
}
