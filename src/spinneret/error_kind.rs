//! How an attempt without a response ended, in the words of the control plane.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A transport failure as reports name it (wire contract, `Report.error_kind`). An empty text on the wire is no kind:
/// there was a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// A limit of time was reached.
    Timeout,
    /// The connection was lost.
    ConnReset,
    /// No connection came about.
    ConnRefused,
    /// The proxy wants another user or password.
    ProxyAuth,
    /// TLS failed; the certificate is not trusted, for one.
    Tls,
    /// The name could not be resolved.
    Dns,
    /// Anything else.
    Other,
}

impl ErrorKind {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Timeout, Self::ConnReset, Self::ConnRefused, Self::ProxyAuth, Self::Tls, Self::Dns, Self::Other];

    /// The wire's spelling.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::ConnReset => "conn_reset",
            Self::ConnRefused => "conn_refused",
            Self::ProxyAuth => "proxy_auth",
            Self::Tls => "tls",
            Self::Dns => "dns",
            Self::Other => "other",
        }
    }

    /// The kind of exactly this spelling.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
