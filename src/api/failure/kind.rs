//! The ways a request can fail.

use std::fmt;

/// Every way a request can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// The host's name has no address.
    Resolve,
    /// The target refused the connection.
    Refused,
    /// No connection within `DOWNLOAD_CONNECT_TIMEOUT`.
    ConnectTimeout,
    /// Not finished within the request's timeout.
    Timeout,
    /// No byte for `DOWNLOAD_IDLE_TIMEOUT`.
    IdleTimeout,
    /// The connection was lost before the response was complete.
    Lost,
    /// The TLS handshake or the certificate failed.
    Tls,
    /// The proxy cannot be reached, or breaks the tunnel.
    Proxy,
    /// The proxy does not take the user or password of the lease (407, or the SOCKS answer that says so).
    ProxyAuth,
    /// The answer is not HTTP.
    BadReply,
    /// The body ended early (`DOWNLOAD_FAIL_ON_DATALOSS`).
    DataLoss,
    /// The decoded body is over `DOWNLOAD_MAXSIZE`.
    TooLarge,
    /// The body does not decode as its `Content-Encoding` says.
    Decode,
    /// The scheme is neither `http` nor `https`.
    UnsupportedScheme,
    /// A status that no callback asked for.
    HttpStatus,
    /// robots.txt forbids the URL.
    RobotsForbidden,
    /// robots.txt could not be read (RFC 9309, 2.3.1.4: then everything is forbidden for now).
    RobotsUnavailable,
    /// More than `REDIRECT_MAX_TIMES` hops.
    RedirectLimit,
    /// A redirect whose `Location` cannot be followed.
    RedirectTarget,
    /// A redirect to a URL that was seen before.
    RedirectDuplicate,
    /// A redirect that leaves the spider's allowed domains.
    Offsite,
    /// An address of the own machine or network (`ALLOW_PRIVATE_ADDRESSES`).
    PrivateAddress,
    /// No grant for this site within `LEASE_GIVE_UP`.
    LeaseUnavailable,
    /// The control plane will never grant this request.
    LeaseRefused,
    /// No rule of `LEASES` covers the host, and `LEASE_UNMATCHED` says that such requests are dropped.
    LeaseUnmatched,
    /// The lease ended while the request was under way.
    LeaseLost,
    /// A middleware refused the request or failed.
    Middleware,
    /// The callback returned an error, panicked, or did not end in time.
    Callback,
    /// The job stopped first.
    Cancelled,
    /// A part of the runtime failed while it held the request.
    Internal,
}

impl FailureKind {
    /// The kind's name in counters and messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::Refused => "refused",
            Self::ConnectTimeout => "connect_timeout",
            Self::Timeout => "timeout",
            Self::IdleTimeout => "idle_timeout",
            Self::Lost => "lost",
            Self::Tls => "tls",
            Self::Proxy => "proxy",
            Self::ProxyAuth => "proxy_auth",
            Self::BadReply => "bad_reply",
            Self::DataLoss => "data_loss",
            Self::TooLarge => "too_large",
            Self::Decode => "decode",
            Self::UnsupportedScheme => "unsupported_scheme",
            Self::HttpStatus => "http_status",
            Self::RobotsForbidden => "robots_forbidden",
            Self::RobotsUnavailable => "robots_unavailable",
            Self::RedirectLimit => "redirect_limit",
            Self::RedirectTarget => "redirect_target",
            Self::RedirectDuplicate => "redirect_duplicate",
            Self::Offsite => "offsite",
            Self::PrivateAddress => "private_address",
            Self::LeaseUnavailable => "lease_unavailable",
            Self::LeaseRefused => "lease_refused",
            Self::LeaseUnmatched => "lease_unmatched",
            Self::LeaseLost => "lease_lost",
            Self::Middleware => "middleware",
            Self::Callback => "callback",
            Self::Cancelled => "cancelled",
            Self::Internal => "internal",
        }
    }

    /// The class name APCloudy's request records carry, as Scrapy 2.19 spells it.
    #[must_use]
    pub fn error_class(self) -> &'static str {
        match self {
            Self::Resolve => "CannotResolveHostError",
            Self::Refused => "DownloadConnectionRefusedError",
            Self::ConnectTimeout | Self::Timeout | Self::IdleTimeout => "DownloadTimeoutError",
            Self::Lost | Self::Tls | Self::BadReply | Self::Decode | Self::Proxy | Self::ProxyAuth | Self::LeaseLost => {
                "DownloadFailedError"
            }
            Self::DataLoss => "ResponseDataLossError",
            Self::TooLarge | Self::Cancelled => "DownloadCancelledError",
            Self::UnsupportedScheme => "NotSupported",
            Self::HttpStatus => "HttpError",
            Self::RobotsForbidden
            | Self::RobotsUnavailable
            | Self::RedirectLimit
            | Self::RedirectTarget
            | Self::RedirectDuplicate
            | Self::Offsite
            | Self::PrivateAddress
            | Self::LeaseUnavailable
            | Self::LeaseRefused
            | Self::LeaseUnmatched
            | Self::Middleware => "IgnoreRequest",
            Self::Callback => "SpiderError",
            Self::Internal => "InternalError",
        }
    }

    /// Whether the failure says that the target could not be reached at all.
    #[must_use]
    pub fn is_unreachable(self) -> bool {
        matches!(
            self,
            Self::Resolve
                | Self::Refused
                | Self::ConnectTimeout
                | Self::Timeout
                | Self::IdleTimeout
                | Self::Lost
                | Self::Tls
                | Self::Proxy
                | Self::ProxyAuth
                | Self::RobotsUnavailable
        )
    }

    /// Whether another attempt may succeed (Scrapy's `RETRY_EXCEPTIONS`, as kinds).
    #[must_use]
    pub fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::Resolve
                | Self::Refused
                | Self::ConnectTimeout
                | Self::Timeout
                | Self::IdleTimeout
                | Self::Lost
                | Self::Tls
                | Self::Proxy
                | Self::ProxyAuth
                | Self::BadReply
                | Self::DataLoss
                | Self::LeaseLost
        )
    }

    /// Whether the request ends as dropped (with a reason) rather than failed.
    #[must_use]
    pub fn is_drop(self) -> bool {
        matches!(self, Self::RobotsForbidden | Self::RedirectDuplicate | Self::Offsite | Self::LeaseUnmatched)
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
