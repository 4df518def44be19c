//! Leases as the server gives them, prolongs them and takes them back.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::spinneret::Result;
use crate::spinneret::procedure::{Procedure, Rpc};

/// One lease with all that comes with it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AcquireResponse {
    /// The lease.
    pub lease: LeaseInfo,
    /// What the identity puts on a request.
    pub credential: Credential,
    /// The proxy to go through; `None` when the policy assigns none.
    pub proxy: Option<ProxyAssignment>,
    /// Advice.
    pub hints: Hints,
}

/// Several leases of distinct identities.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AcquireBatchResponse {
    /// The leases, perhaps fewer than asked for.
    pub leases: Vec<AcquireResponse>,
    /// How many were asked for.
    pub requested: i32,
}

/// A lease's names and times.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LeaseInfo {
    /// The lease's name; opaque.
    pub lease_id: String,
    /// The identity's name.
    pub identity_id: String,
    /// The identity's type.
    pub identity_type: String,
    /// The endpoint group it counts for.
    pub endpoint_group: String,
    /// When the server takes it back.
    pub expires_at: Option<Timestamp>,
    /// Whether the identity came from the session key.
    pub sticky: bool,
    /// Whether the server tries something out with this lease: its report matters more.
    pub probe: bool,
}

/// What an identity puts on a request. `Debug` shows counts only.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Credential {
    /// Cookies by name.
    pub cookies: BTreeMap<String, String>,
    /// All cookies as one header value.
    pub cookie_header: String,
    /// Headers by name.
    pub headers: BTreeMap<String, String>,
    /// Query parameters by name.
    pub query: BTreeMap<String, String>,
    /// Anything the site's type delivers as JSON.
    pub json: Option<Value>,
    /// Named values; empty when the type delivers none.
    pub values: Map<String, Value>,
}

/// A proxy of a lease. `Debug` does not show the URL.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProxyAssignment {
    /// The proxy's name.
    pub proxy_id: String,
    /// The URL, user and password included; http, https or socks5.
    pub url: String,
    /// `datacenter`, `residential`, `mobile`, `tunnel` or another.
    pub kind: String,
    /// Where it is; may be empty.
    pub region: String,
}

/// Advice that comes with a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Hints {
    /// How long before the expiry to renew, in milliseconds.
    pub renew_before_ms: i32,
}

/// Prolongs a lease.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RenewRequest {
    /// Which lease, 1 to 128 characters.
    pub lease_id: String,
    /// From now, in milliseconds, 0 to 1,800,000; 0 means the policy's own duration.
    pub extend_ms: i32,
}

/// When a prolonged lease ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RenewResponse {
    /// The new expiry.
    pub expires_at: Option<Timestamp>,
}

/// Gives a lease back.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReleaseRequest {
    /// Which lease, 1 to 128 characters.
    pub lease_id: String,
}

/// Whether a lease was given back now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReleaseResponse {
    /// False when it had ended before.
    pub released: bool,
}

impl Rpc for RenewRequest {
    type Answer = RenewResponse;
    const PROCEDURE: Procedure = Procedure::Renew;

    fn validate(&self) -> Result<()> {
        Ok(())
    }
}

impl Rpc for ReleaseRequest {
    type Answer = ReleaseResponse;
    const PROCEDURE: Procedure = Procedure::Release;

    fn validate(&self) -> Result<()> {
        Ok(())
    }
}
