//! One exchange on the wire: the only thing the downloader needs from an HTTP client.
//!
//! A fake transport answers from memory in tests; the real one is `reqwest`.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, StatusCode, Version};
use url::Url;

use crate::api::failure::Fault;
use crate::html::Exceeded;
use crate::plane::{IdentityKey, ProxyUrl};

/// Sends one request and reads its whole answer. Never follows a redirect, never retries.
pub trait Transport: Send + Sync + 'static {
    /// Makes the exchange. Dropping the future ends it and closes its connection.
    fn exchange<'a>(&'a self, outgoing: Outgoing, meter: &'a dyn Meter) -> BoxFuture<'a, Result<Reply, Fault>>;

    /// Drops what has been idle for too long. Called every few seconds.
    fn tidy(&self) {}
}

/// Charges decoded bytes to the window; the future resolves when there is room.
pub trait Meter: Send + Sync + std::fmt::Debug {
    /// Charges `bytes`, at once if there is room.
    fn charge(&self, bytes: usize) -> BoxFuture<'_, ()>;

    /// Charges `bytes` if there is room now; false: use [`Meter::charge`].
    fn try_charge(&self, bytes: usize) -> bool;

    /// Hears that the head of an answer came, and the length of body it announces.
    fn answered(&self, status: StatusCode, announced: Option<u64>) {
        let _ = (status, announced);
    }
}

/// A request as it goes out, everything merged.
#[derive(Clone)]
pub struct Outgoing {
    /// The method.
    pub method: Method,
    /// The URL; the fragment is not sent.
    pub url: Url,
    /// All headers but `Host`, `Content-Length`, `Connection` and `Proxy-Authorization`, which the client sets.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// The proxy.
    pub proxy: Option<ProxyUrl>,
    /// Whose connections may be used: never shared between identities.
    pub identity: IdentityKey,
    /// Time and size limits.
    pub limits: Limits,
}

/// Limits of one exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From send to last byte.
    pub total: Duration,
    /// Between two bytes.
    pub idle: Duration,
    /// Decoded body bytes.
    pub max_bytes: usize,
    /// What becomes of a body that has more.
    pub excess: Excess,
    /// Whether a body that ends early is a failure or is kept and flagged.
    pub fail_on_data_loss: bool,
    /// Whether to decode `Content-Encoding`.
    pub decode: bool,
}

/// What becomes of a body that is larger than its limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Excess {
    /// The exchange fails.
    #[default]
    Fails,
    /// What came up to the limit is the body, and nothing more is read: robots.txt (RFC 9309, 2.5).
    IsCut,
}

/// A whole answer. `Debug` shows sizes: headers and body may hold cookies, or repeat a credential.
#[derive(Clone)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The protocol version.
    pub version: Version,
    /// The headers as received, `Content-Encoding` included.
    pub headers: HeaderMap,
    /// The decoded body.
    pub body: Bytes,
    /// Body bytes as they came over the wire.
    pub wire_bytes: u64,
    /// What was odd about the body.
    pub flags: BodyFlags,
}

/// What was odd about a body that was kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BodyFlags {
    /// It ended early.
    pub data_loss: bool,
    /// It was not encoded as its headers said and is kept as it came.
    pub not_as_labelled: bool,
    /// It was decoded from a content coding.
    pub decoded: bool,
    /// Which bounds its tree has met; none as long as nobody asked for the tree.
    pub html: Exceeded,
}

impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outgoing")
            .field("method", &self.method)
            .field("host", &self.url.host_str())
            .field("path", &self.url.path())
            .field("headers", &self.headers.len())
            .field("proxy", &self.proxy)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("status", &self.status.as_u16())
            .field("version", &self.version)
            .field("headers", &self.headers.len())
            .field("body_bytes", &self.body.len())
            .field("wire_bytes", &self.wire_bytes)
            .field("flags", &self.flags)
            .finish()
    }
}
