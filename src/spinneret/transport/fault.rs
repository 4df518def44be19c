//! What an attempt without an answer means: how it failed, and how far it came.
//!
//! Looks through the causes for the first thing that says how it went wrong. The HTTP client's own texts are not used:
//! they name URLs, and a proxy's URL may hold a password.

use std::error::Error as StdError;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::CertificateError;

use super::upload::Late;
use super::{Fault, Phase};
use crate::causes::{causes, is_tls_eof, no_tunnel};
use crate::spinneret::error_kind::ErrorKind;
use crate::spinneret::retry::Timeouts;

/// What attempts are about, for messages.
#[derive(Debug, Clone)]
pub(super) struct About {
    /// Host and port of the server.
    pub(super) authority: String,
    /// Host and port of the proxy in between.
    pub(super) proxy: Option<String>,
    pub(super) timeouts: Timeouts,
}

impl About {
    /// An attempt that ended with an error of the HTTP client. A body that no connection asked for (`has_begun` is
    /// false) was not sent, and without it no call can have been served.
    pub(super) fn fault(&self, error: reqwest::Error, has_begun: bool) -> Fault {
        let found = Found::of(&error);
        let is_connecting = error.is_connect();
        let kind = found.kind(&error);
        let phase = if error.is_builder() || error.is_redirect() || found.is_permanent() {
            Phase::Permanent
        } else if found.is_unsent || is_connecting || !has_begun {
            Phase::Unsent
        } else {
            Phase::Ambiguous
        };
        let message = if error.is_builder() || error.is_redirect() {
            "the HTTP client refuses the request: look at the settings of the client that was given".to_owned()
        } else {
            self.words(&error, &found, is_connecting)
        };
        Fault { kind, phase, message, source: Some(Arc::new(error.without_url())) }
    }

    /// An attempt for which there was no time left.
    pub(super) fn late(&self, late: Late, read: Duration) -> Fault {
        let (phase, message) = match late {
            Late::Connect => (Phase::Unsent, self.unconnected()),
            Late::Write => {
                let limit = seconds(self.timeouts.write);
                (Phase::Ambiguous, format!("{} took no byte of the request for {limit}", self.authority))
            }
            Late::Read => (Phase::Ambiguous, format!("no answer from {} within {}", self.authority, seconds(read))),
        };
        Fault { kind: ErrorKind::Timeout, phase, message, source: None }
    }

    /// An answer that stopped in the middle.
    pub(super) fn stalled(&self, limit: Duration) -> Fault {
        let message = format!("the answer of {} did not come to its end within {}", self.authority, seconds(limit));
        Fault { kind: ErrorKind::Timeout, phase: Phase::Ambiguous, message, source: None }
    }

    /// An answer that cannot be used, whatever is asked.
    pub(super) fn useless(&self, why: &str) -> Fault {
        let message = format!("{why} ({})", self.authority);
        Fault { kind: ErrorKind::Other, phase: Phase::Permanent, message, source: None }
    }

    fn words(&self, error: &reqwest::Error, found: &Found, is_connecting: bool) -> String {
        if let Some(text) = found.refusal() {
            return format!("the proxy {} opened no connection to {}: {text}", self.whom(), self.authority);
        }
        if let Some(text) = &found.tls {
            return format!("{text} ({})", self.authority);
        }
        if error.is_timeout() {
            return if is_connecting { self.unconnected() } else { format!("no answer from {} in time", self.authority) };
        }
        if error.is_dns() {
            return format!("the name of {} cannot be resolved", self.to());
        }
        let what = match found.io {
            Some(io::ErrorKind::ConnectionRefused) => "connection refused",
            Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) => "connection was reset",
            Some(io::ErrorKind::ConnectionAborted) => "connection was aborted",
            Some(io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable) => "no route",
            Some(io::ErrorKind::UnexpectedEof) if is_connecting => "connection was closed while it was being set up",
            Some(io::ErrorKind::TimedOut) => "connection was lost",
            _ if is_connecting => "no connection",
            _ if found.is_parse => "the answer is not HTTP",
            _ if found.is_gone => "the runtime that drives the connection has ended",
            _ if found.is_unsent => "connection was closed before the request was sent",
            _ => "connection was closed before the answer was complete",
        };
        format!("{what} ({})", self.to())
    }

    fn unconnected(&self) -> String {
        format!("no connection to {} within {}", self.to(), seconds(self.timeouts.connect))
    }

    /// Where the connection goes: to the proxy, if there is one.
    fn to(&self) -> String {
        self.proxy.as_ref().map_or_else(|| self.authority.clone(), |proxy| format!("the proxy {proxy}"))
    }

    fn whom(&self) -> &str {
        self.proxy.as_deref().unwrap_or("in between")
    }
}

/// What the chain of causes says.
#[derive(Debug, Default)]
struct Found {
    io: Option<io::ErrorKind>,
    tls: Option<String>,
    is_untrusted: bool,
    is_parse: bool,
    is_incomplete: bool,
    /// The connection gave the request back untouched.
    is_unsent: bool,
    /// The task of the connection is gone.
    is_gone: bool,
    /// Words of a proxy that opened no tunnel.
    tunnel: Option<String>,
}

impl Found {
    fn of(error: &reqwest::Error) -> Self {
        let mut all = Self::default();
        causes(error).for_each(|cause| all.look(cause));
        all
    }

    fn look(&mut self, cause: &(dyn StdError + 'static)) {
        if let Some(error) = cause.downcast_ref::<io::Error>() {
            if is_tls_eof(error) {
                self.tls.get_or_insert_with(|| "TLS failed: the connection was closed in the handshake".to_owned());
            }
            match error.get_ref() {
                Some(_) => _ = self.io.get_or_insert(error.kind()),
                None => self.io = Some(error.kind()),
            }
        } else if let Some(error) = cause.downcast_ref::<hyper::Error>() {
            self.is_parse |= error.is_parse();
            self.is_incomplete |= error.is_incomplete_message();
            // Hyper gives a request back, or refuses it, before its connection took it.
            self.is_unsent |= error.is_canceled() || error.is_closed();
            self.is_gone |= error.is_user();
        } else if let Some(error) = cause.downcast_ref::<h2::Error>() {
            self.is_parse |= !(error.is_io() || error.is_go_away() || error.is_remote());
        } else if let Some(error) = cause.downcast_ref::<rustls::Error>() {
            self.is_untrusted |= matches!(error, rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented);
            self.tls = Some(tls(error));
        } else if self.tunnel.is_none() {
            self.tunnel = no_tunnel(cause);
        }
    }

    /// What a proxy says that was reached and does not do what it is asked for.
    fn refusal(&self) -> Option<&str> {
        self.tunnel.as_deref().filter(|text| *text != "failed to create underlying connection" && !text.starts_with("io error"))
    }

    fn is_permanent(&self) -> bool {
        self.is_untrusted || self.refusal().is_some()
    }

    fn kind(&self, error: &reqwest::Error) -> ErrorKind {
        const ACCOUNT: [&str; 3] =
            ["proxy authorization required", "credentials not accepted", "server does not support user/pass authentication"];
        if let Some(text) = self.refusal() {
            return if ACCOUNT.contains(&text) { ErrorKind::ProxyAuth } else { ErrorKind::Other };
        }
        if error.is_timeout() {
            return ErrorKind::Timeout;
        }
        if error.is_dns() {
            return ErrorKind::Dns;
        }
        if self.tls.is_some() {
            return ErrorKind::Tls;
        }
        match self.io {
            Some(io::ErrorKind::TimedOut) => ErrorKind::Timeout,
            Some(io::ErrorKind::ConnectionRefused | io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable) => {
                ErrorKind::ConnRefused
            }
            Some(
                io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::UnexpectedEof,
            ) => ErrorKind::ConnReset,
            _ if error.is_builder() || error.is_redirect() => ErrorKind::Other,
            _ if error.is_connect() => ErrorKind::ConnRefused,
            _ => ErrorKind::ConnReset,
        }
    }
}

/// What a TLS error means and what to do about it.
fn tls(error: &rustls::Error) -> String {
    const TRUST: &str = "name the file with its CA's certificate in SPINNERET_CA_FILE";
    let rustls::Error::InvalidCertificate(error) = error else {
        return format!("TLS failed: {error}");
    };
    match error {
        CertificateError::UnknownIssuer => format!("certificate not trusted: unknown issuer; {TRUST}"),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "certificate not trusted: it has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "certificate not trusted: it is not valid yet; is this machine's clock right?".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "certificate not trusted: it is for another name".to_owned()
        }
        CertificateError::BadSignature => format!("certificate not trusted: its signature is not its issuer's; {TRUST}"),
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            "certificate not trusted: it is a CA's own; give the server one that the CA signed".to_owned()
        }
        other => format!("certificate not trusted: {other}"),
    }
}

/// `10 s`, `0.25 s`
pub(crate) fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}
