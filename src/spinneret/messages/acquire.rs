//! Asking for leases.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{AcquireBatchResponse, AcquireResponse};
use crate::spinneret::Result;
use crate::spinneret::procedure::{Procedure, Rpc};
use crate::spinneret::retry::Timeouts;

/// Asks for one lease.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AcquireRequest {
    /// The site's name in the token's namespace, 1 to 64 characters.
    pub site: String,
    /// A client type the site declares (`web`, `app`), 1 to 32 characters.
    pub client: String,
    /// A path, query allowed, or an absolute http(s) URL, at most 2048 characters: picks the endpoint group.
    pub uri: String,
    /// An explicit endpoint group, at most 64 characters; wins over `uri`.
    pub endpoint_group: String,
    /// The same key gets the same identity where the site's policy allows it; at most 256 characters.
    pub session_key: String,
    /// How long the server may wait for an identity, in milliseconds, 0 to 5000.
    pub wait_ms: i32,
}

impl AcquireRequest {
    /// Asks for a lease of this site and client type.
    #[must_use]
    pub fn new(site: impl Into<String>, client: impl Into<String>) -> Self {
        Self { site: site.into(), client: client.into(), ..Self::default() }
    }

    /// Picks the endpoint group by path or URL.
    #[must_use]
    pub fn uri(mut self, uri: impl Into<String>) -> Self {
        self.uri = uri.into();
        self
    }

    /// Names the endpoint group.
    #[must_use]
    pub fn endpoint_group(mut self, group: impl Into<String>) -> Self {
        self.endpoint_group = group.into();
        self
    }

    /// Asks for the identity that this key had before.
    #[must_use]
    pub fn session_key(mut self, key: impl Into<String>) -> Self {
        self.session_key = key.into();
        self
    }

    /// Lets the server wait for an identity, at most 5 s.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait_ms = i32::try_from(wait.as_millis()).unwrap_or(i32::MAX);
        self
    }
}

impl Rpc for AcquireRequest {
    type Answer = AcquireResponse;
    const PROCEDURE: Procedure = Procedure::Acquire;

    fn validate(&self) -> Result<()> {
        Ok(())
    }

    fn read_timeout(&self, timeouts: &Timeouts) -> Duration {
        timeouts.read + Duration::from_millis(u64::try_from(self.wait_ms).unwrap_or(0))
    }
}

/// Asks for several leases of distinct identities; fewer may come.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AcquireBatchRequest {
    /// What is asked for.
    #[serde(flatten)]
    pub each: AcquireRequest,
    /// How many, 1 to 50.
    pub count: i32,
}

impl Rpc for AcquireBatchRequest {
    type Answer = AcquireBatchResponse;
    const PROCEDURE: Procedure = Procedure::AcquireBatch;

    fn validate(&self) -> Result<()> {
        Ok(())
    }

    fn read_timeout(&self, timeouts: &Timeouts) -> Duration {
        self.each.read_timeout(timeouts)
    }
}
