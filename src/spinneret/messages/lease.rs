//! Leases as the server gives them.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{timestamp, tolerant};

/// One lease with all that comes with it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AcquireResponse {
    /// The lease.
    #[serde(deserialize_with = "tolerant::message")]
    pub lease: LeaseInfo,
    /// What the identity puts on a request.
    #[serde(deserialize_with = "tolerant::message")]
    pub credential: Credential,
    /// The proxy to go through; `None` when the policy assigns none.
    #[serde(deserialize_with = "tolerant::optional_message")]
    pub proxy: Option<ProxyAssignment>,
    /// Advice.
    #[serde(deserialize_with = "tolerant::message")]
    pub hints: Hints,
}

/// Several leases of distinct identities.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AcquireBatchResponse {
    /// The leases, perhaps fewer than asked for.
    #[serde(deserialize_with = "tolerant::messages")]
    pub leases: Vec<AcquireResponse>,
    /// How many were asked for.
    #[serde(deserialize_with = "tolerant::integer")]
    pub requested: i32,
}

/// A lease's names and times.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LeaseInfo {
    /// The lease's name; opaque.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub lease_id: String,
    /// The identity's name.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub identity_id: String,
    /// The identity's type.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub identity_type: String,
    /// The endpoint group it counts for.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub endpoint_group: String,
    /// When the server takes it back.
    #[serde(serialize_with = "timestamp::write_optional", deserialize_with = "timestamp::read_optional")]
    pub expires_at: Option<Timestamp>,
    /// Whether the identity came from the session key.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub sticky: bool,
    /// Whether the server tries something out with this lease: its report matters more.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub probe: bool,
}

/// What an identity puts on a request. `Debug` shows counts only.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Credential {
    /// Cookies by name.
    #[serde(deserialize_with = "tolerant::texts")]
    pub cookies: BTreeMap<String, String>,
    /// All cookies as one header value.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub cookie_header: String,
    /// Headers by name.
    #[serde(deserialize_with = "tolerant::texts")]
    pub headers: BTreeMap<String, String>,
    /// Query parameters by name.
    #[serde(deserialize_with = "tolerant::texts")]
    pub query: BTreeMap<String, String>,
    /// Anything the identity's type delivers as JSON; [`Self::json_as`] reads it.
    pub json: Option<Value>,
    /// Named values; empty when the type delivers none. [`Self::values_as`] reads them.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub values: Map<String, Value>,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential")
            .field("cookies", &self.cookies.len())
            .field("has_cookie_header", &!self.cookie_header.is_empty())
            .field("headers", &self.headers.len())
            .field("query", &self.query.len())
            .field("has_json", &self.json.is_some())
            .field("values", &self.values.len())
            .finish()
    }
}

/// A proxy of a lease. `Debug` does not show the URL.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProxyAssignment {
    /// The proxy's name.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub proxy_id: String,
    /// The URL, user and password included; http, https or socks5.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub url: String,
    /// `datacenter`, `residential`, `mobile`, `tunnel` or another.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub kind: String,
    /// Where it is; may be empty.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub region: String,
}

impl fmt::Debug for ProxyAssignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyAssignment")
            .field("proxy_id", &self.proxy_id)
            .field("kind", &self.kind)
            .field("region", &self.region)
            .finish_non_exhaustive()
    }
}

/// Advice that comes with a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Hints {
    /// How long before the expiry to renew, in milliseconds.
    #[serde(deserialize_with = "tolerant::integer")]
    pub renew_before_ms: i32,
}
