//! What a try without an answer means, in plain words.
//!
//! Looks through the chain of causes for the first thing that says how it went wrong. The client's own texts are not
//! used: they name URLs, and a proxy's URL may hold a password.

use std::io;
use std::time::Duration;

use super::answer::Answer;
use crate::causes::{self, Said};

/// What a try was about.
#[derive(Debug)]
pub(super) struct About {
    /// Host and port of the backend.
    pub(super) authority: String,
    /// Host and port of the proxy in between.
    pub(super) proxy: Option<String>,
    pub(super) connect_timeout: Duration,
    pub(super) idle_timeout: Duration,
}

impl About {
    /// The answer of a try that ended with an error of the client.
    pub(super) fn answer(&self, error: &reqwest::Error) -> Answer {
        let said = Said::of(error);
        if said.tunnel.as_deref() == Some("proxy authorization required") {
            return Answer::Fatal { why: format!("the proxy {} does not accept the user or password (407)", self.whom()) };
        }
        Answer::retry(self.words(error, &said))
    }

    /// The answer of a try that brought nothing in time.
    pub(super) fn silent(&self, is_connected: bool) -> Answer {
        Answer::retry(if is_connected { format!("no answer within {}", seconds(self.idle_timeout)) } else { self.unconnected() })
    }

    fn words(&self, error: &reqwest::Error, said: &Said<'_>) -> String {
        if let Some(text) = &said.tunnel {
            return format!("the proxy {} opened no connection to {}: {text}", self.whom(), self.authority);
        }
        if let Some(text) = tls_words(said) {
            return format!("{text} ({})", self.authority);
        }
        let is_connecting = error.is_connect();
        if is_connecting && error.is_timeout() {
            return self.unconnected();
        }
        if is_connecting && error.is_dns() {
            return format!("the name of {} cannot be resolved", self.to());
        }
        let what = match said.io {
            Some(io::ErrorKind::ConnectionRefused) => "connection refused",
            Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) => "connection was reset",
            Some(io::ErrorKind::ConnectionAborted) => "connection was aborted",
            Some(io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable) => "no route",
            Some(io::ErrorKind::UnexpectedEof) if is_connecting => "connection was closed while it was being set up",
            Some(io::ErrorKind::TimedOut) => "connection was lost",
            _ if is_connecting => "no connection",
            _ if is_not_http(said) => return format!("the answer is not HTTP ({})", self.authority),
            _ => "connection was closed before the answer was complete",
        };
        if is_connecting { format!("{what} ({})", self.to()) } else { what.to_owned() }
    }

    fn unconnected(&self) -> String {
        format!("no connection to {} within {}", self.to(), seconds(self.connect_timeout))
    }

    /// Where the connection goes: to the proxy, if there is one.
    fn to(&self) -> String {
        self.proxy.as_ref().map_or_else(|| self.authority.clone(), |proxy| format!("the proxy {proxy}"))
    }

    fn whom(&self) -> &str {
        self.proxy.as_deref().unwrap_or_default()
    }
}

/// Why TLS failed, if it did.
fn tls_words(said: &Said<'_>) -> Option<String> {
    let closed = || said.is_tls_eof.then(|| "TLS failed: the connection was closed in the handshake".to_owned());
    said.tls.map(|error| causes::tls_words(error, "APCLOUDY_CA_FILE")).or_else(closed)
}

fn is_not_http(said: &Said<'_>) -> bool {
    said.parse.is_some() || said.h2.is_some_and(|error| !(error.is_io() || error.is_go_away() || error.is_remote()))
}

/// `10 s`, `0.25 s`
fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}
