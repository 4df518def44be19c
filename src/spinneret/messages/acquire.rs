//! Asking for leases.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::bounds::{self, Broken};
use super::hidden::PathOnly;
use super::{AcquireBatchResponse, AcquireResponse, milliseconds, tolerant};
use crate::spinneret::Result;
use crate::spinneret::procedure::{Procedure, Rpc};
use crate::spinneret::retry::Timeouts;

/// Asks for one lease. `Debug` shows neither the session key nor a query.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AcquireRequest {
    /// The site's name in the token's namespace, 1 to 64 characters.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub site: String,
    /// A client type the site declares (`web`, `app`), 1 to 32 characters.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub client: String,
    /// A path, query allowed, or an absolute http(s) URL, at most 2048 characters: picks the endpoint group.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub uri: String,
    /// An explicit endpoint group, at most 64 characters; wins over `uri`.
    #[serde(alias = "endpointGroup", deserialize_with = "tolerant::or_default")]
    pub endpoint_group: String,
    /// The same key gets the same identity where the site's policy allows it; at most 256 characters.
    #[serde(alias = "sessionKey", deserialize_with = "tolerant::or_default")]
    pub session_key: String,
    /// How long the server may wait for an identity, in milliseconds, 0 to 5000.
    #[serde(alias = "waitMs", deserialize_with = "tolerant::integer")]
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
        self.wait_ms = milliseconds(wait);
        self
    }

    fn check_bounds(&self) -> Result<(), Broken> {
        bounds::text("site", &self.site, 1..=64)?;
        bounds::text("client", &self.client, 1..=32)?;
        bounds::text("uri", &self.uri, 0..=2048)?;
        bounds::text("endpoint_group", &self.endpoint_group, 0..=64)?;
        bounds::text("session_key", &self.session_key, 0..=256)?;
        bounds::number("wait_ms", self.wait_ms, 0..=5000)
    }
}

impl fmt::Debug for AcquireRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcquireRequest")
            .field("site", &self.site)
            .field("client", &self.client)
            .field("uri", &PathOnly(&self.uri))
            .field("endpoint_group", &self.endpoint_group)
            .field("has_session_key", &!self.session_key.is_empty())
            .field("wait_ms", &self.wait_ms)
            .finish()
    }
}

impl Rpc for AcquireRequest {
    type Answer = AcquireResponse;
    const PROCEDURE: Procedure = Procedure::Acquire;

    fn validate(&self) -> Result<()> {
        Ok(self.check_bounds()?)
    }

    fn check(answer: &AcquireResponse) -> Result<(), &'static str> {
        if answer.lease.lease_id.is_empty() { Err("it has no lease id") } else { Ok(()) }
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
    #[serde(deserialize_with = "tolerant::integer")]
    pub count: i32,
}

impl AcquireBatchRequest {
    /// Asks for so many leases, 1 to 50. A session key only acts when it is one.
    #[must_use]
    pub const fn new(each: AcquireRequest, count: i32) -> Self {
        Self { each, count }
    }
}

impl Rpc for AcquireBatchRequest {
    type Answer = AcquireBatchResponse;
    const PROCEDURE: Procedure = Procedure::AcquireBatch;

    fn validate(&self) -> Result<()> {
        self.each.check_bounds()?;
        Ok(bounds::number("count", self.count, 1..=50)?)
    }

    fn read_timeout(&self, timeouts: &Timeouts) -> Duration {
        self.each.read_timeout(timeouts)
    }
}
