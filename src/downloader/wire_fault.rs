//! What an error of the HTTP client means: one kind of failure, and a text that holds no secret.
//!
//! Looks through the chain of causes for the first thing that says how it went wrong. Texts follow the words
//! of request records; no text of the client itself is used, since it names the URL.

use std::io;
use std::time::Duration;

use http::Method;
use rustls::CertificateError;
use url::Url;

use super::decode::DecodeError;
use super::resolver::NameError;
use crate::api::failure::{FailureKind, Fault};
use crate::causes::{Said, cause};
use crate::reach::out_of_reach;

/// What an exchange was about, for messages.
pub(crate) struct Target {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) is_proxied: bool,
    /// The request is the proxy's to answer, not that of a target behind a tunnel: connection and TLS are the proxy's.
    pub(crate) is_to_proxy: bool,
}

/// How the reading of a body ended when it did not end well.
pub(crate) enum BodyEnd {
    /// The connection was closed before all of it had come.
    Early,
    /// It failed.
    Fault(Fault),
}

/// Which limit of time was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Late {
    Total(Duration),
    Idle(Duration),
}

impl Target {
    /// The URL without user, query and fragment: a lease's credential may be in each of them.
    fn shown(&self) -> String {
        let port = self.url.port().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}://{}{port}{}", self.url.scheme(), self.host(), self.url.path())
    }

    fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// The fault of a limit of time.
    pub(crate) fn late(&self, late: Late) -> Fault {
        match late {
            Late::Total(limit) => {
                let message = format!("Getting {} took longer than {:?} seconds.", self.shown(), limit.as_secs_f64());
                Fault::new(FailureKind::Timeout, message)
            }
            Late::Idle(limit) => {
                let message = format!("Getting {} brought no byte for {:?} seconds.", self.shown(), limit.as_secs_f64());
                Fault::new(FailureKind::IdleTimeout, message)
            }
        }
    }

    /// The fault of a body that announces more than is allowed.
    pub(crate) fn announced(&self, bytes: u64, limit: usize) -> Fault {
        self.too_large(&format!("Expected to receive {bytes} bytes"), limit)
    }

    /// The fault of a body that brings more than is allowed.
    pub(crate) fn received(&self, bytes: usize, limit: usize) -> Fault {
        self.too_large(&format!("Received {bytes} bytes"), limit)
    }

    /// The fault of a body that ended early.
    pub(crate) fn data_loss(&self, received: u64, announced: Option<u64>) -> Fault {
        let of = announced.map(|bytes| format!(" of {bytes}")).unwrap_or_default();
        Fault::new(FailureKind::DataLoss, format!("the body ended early: {received}{of} bytes came"))
    }

    /// The fault of a body that does not decode.
    pub(crate) fn undecodable(&self, error: DecodeError) -> Fault {
        match error {
            DecodeError::TooLarge { limit } => self.received(limit.saturating_add(1), limit),
            error => Fault::new(FailureKind::Decode, error.to_string()),
        }
    }

    /// The fault of a proxy that does not take the credential in its URL; `how` it says so.
    pub(crate) fn proxy_auth(&self, how: &str) -> Fault {
        Fault::new(FailureKind::ProxyAuth, format!("the proxy does not accept the user or password of the lease ({how})"))
    }

    /// What an error before the head of the answer means.
    pub(crate) fn before_head(&self, error: &reqwest::Error) -> Fault {
        let said = Said::of(error);
        if let Some(text) = &said.tunnel {
            return match text.as_str() {
                "proxy authorization required" => self.proxy_auth("407"),
                // What a SOCKS proxy says of methods and words of authentication.
                "credentials not accepted"
                | "server does not support user/pass authentication"
                | "server implements authentication incorrectly" => self.proxy_auth("SOCKS"),
                text => match said.tls {
                    Some(error) => proxy_tls(error),
                    None => Fault::new(FailureKind::Proxy, format!("the proxy opened no tunnel to {}: {text}", self.host())),
                },
            };
        }
        if error.is_connect() {
            return self.connecting(error, &said);
        }
        if error.is_builder() {
            return Fault::new(FailureKind::Internal, format!("a request for {} cannot be written as HTTP", self.shown()));
        }
        match fault(&said) {
            // A proxy that takes requests itself answers for its targets, or it has failed itself.
            lost if self.is_to_proxy && lost.kind == FailureKind::Lost => {
                Fault::new(FailureKind::Proxy, "the connection to the proxy was lost before an answer")
            }
            other => other,
        }
    }

    /// What an error in the body means.
    pub(crate) fn in_body(&self, error: &reqwest::Error) -> BodyEnd {
        let said = Said::of(error);
        if said.io == Some(io::ErrorKind::UnexpectedEof) || said.is_incomplete {
            return BodyEnd::Early;
        }
        if matches!(said.io, Some(io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput)) {
            return BodyEnd::Fault(match said.tls {
                Some(_) => fault(&said),
                None => Fault::new(FailureKind::BadReply, "the answer is not HTTP: its chunks are not framed as they must be"),
            });
        }
        BodyEnd::Fault(fault(&said))
    }

    fn connecting(&self, error: &reqwest::Error, said: &Said<'_>) -> Fault {
        if error.is_timeout() {
            let whom = if self.is_proxied { "the proxy" } else { self.host() };
            let message = format!("no connection to {whom} within DOWNLOAD_CONNECT_TIMEOUT");
            return Fault::new(FailureKind::ConnectTimeout, message);
        }
        if let (Some(error), true) = (said.tls, self.is_to_proxy) {
            return proxy_tls(error);
        }
        // Within a tunnel TLS is that of the target, but an end of the connection is more likely the tunnel's.
        if said.tls.is_some() || (said.is_tls_eof && !self.is_proxied) {
            return fault(said);
        }
        if self.is_proxied {
            let how = said.io.map_or("failed", |kind| match kind {
                io::ErrorKind::ConnectionRefused => "was refused",
                io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof => "was lost",
                _ => "failed",
            });
            return Fault::new(FailureKind::Proxy, format!("the connection to the proxy {how}"));
        }
        match cause::<NameError>(error) {
            Some(NameError::Private(_)) => return out_of_reach(self.host()),
            Some(NameError::Late(limit)) => {
                let message = format!("no address of {} within DNS_TIMEOUT ({:?} seconds)", self.host(), limit.as_secs_f64());
                return Fault::new(FailureKind::Resolve, message);
            }
            _ => {}
        }
        if error.is_dns() {
            let message = format!("DNS lookup failed: no results for hostname lookup: {}.", self.host());
            return Fault::new(FailureKind::Resolve, message);
        }
        match said.io {
            Some(io::ErrorKind::ConnectionRefused) => {
                Fault::new(FailureKind::Refused, "Connection was refused by other side: 111: Connection refused.")
            }
            Some(io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable) => {
                Fault::new(FailureKind::Refused, format!("there is no route to {}", self.host()))
            }
            _ => fault(said),
        }
    }

    fn too_large(&self, what: &str, limit: usize) -> Fault {
        let message =
            format!("{what} which is larger than download max size ({limit}) in request <{} {}>.", self.method, self.shown());
        Fault::new(FailureKind::TooLarge, message)
    }
}

/// The fault of TLS to a proxy, in words of our own: those of the library name the proxy's host.
fn proxy_tls(error: &rustls::Error) -> Fault {
    let why = match error {
        rustls::Error::InvalidCertificate(error) => match error {
            CertificateError::UnknownIssuer => "its certificate has an unknown issuer",
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => "its certificate has expired",
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => "its certificate is not valid yet",
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "its certificate is for another name"
            }
            _ => "its certificate cannot be trusted",
        },
        _ => "the handshake failed",
    };
    let message = format!("TLS to the proxy failed: {why}; certificates of proxies are verified by DOWNLOAD_VERIFY_CERTIFICATES");
    Fault::new(FailureKind::Proxy, message)
}

/// The fault by causes alone.
fn fault(said: &Said<'_>) -> Fault {
    if let Some(error) = said.tls {
        return Fault::new(FailureKind::Tls, format!("TLS failed: {error}"));
    }
    if said.is_tls_eof {
        return Fault::new(FailureKind::Tls, "TLS failed: the connection was closed in the handshake");
    }
    if let Some(error) = said.parse {
        return Fault::new(FailureKind::BadReply, format!("the answer is not HTTP: {error}"));
    }
    if said.h2.is_some_and(|error| !is_lost(error)) {
        return Fault::new(FailureKind::BadReply, "the answer breaks the rules of HTTP/2");
    }
    Fault::new(FailureKind::Lost, "Connection to the other side was lost in a non-clean fashion.")
}

fn is_lost(error: &h2::Error) -> bool {
    error.is_io()
        || error.is_go_away()
        || matches!(error.reason(), Some(h2::Reason::REFUSED_STREAM | h2::Reason::CANCEL | h2::Reason::INTERNAL_ERROR))
}

/// The fault of a scheme that is not spoken.
pub(crate) fn unsupported(scheme: &str) -> Fault {
    let message = format!("Unsupported URL scheme '{scheme}': no handler available for that scheme");
    Fault::new(FailureKind::UnsupportedScheme, message)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use rustls::pki_types::ServerName;

    use super::*;

    #[test]
    fn a_proxys_certificate_is_told_of_without_its_name() {
        let expected = ServerName::try_from("canary.proxy.example").unwrap();
        let presented = vec!["canary.example".to_owned()];
        let other_name = CertificateError::NotValidForNameContext { expected, presented };
        for (error, words) in [
            (rustls::Error::InvalidCertificate(other_name), "for another name"),
            (rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer), "unknown issuer"),
            (rustls::Error::General("canary".to_owned()), "handshake failed"),
        ] {
            let fault = proxy_tls(&error);
            assert_eq!(fault.kind, FailureKind::Proxy);
            assert!(fault.message.contains(words) && !fault.message.contains("canary"), "{fault}");
        }
    }
}
