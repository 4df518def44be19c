//! What an attempt without an answer means: how it failed, and how far it came.
//!
//! The HTTP client's own texts are not used: they name URLs, and a proxy's URL may hold a password.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::{Fault, Phase};
use crate::causes::{Said, tls_words};
use crate::spinneret::classify::look;
use crate::spinneret::error_kind::ErrorKind;
use crate::spinneret::retry::Timeouts;
use crate::upload::Late;

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
        let found = look(&error);
        let phase = match found.phase {
            Phase::Ambiguous if !has_begun => Phase::Unsent,
            phase => phase,
        };
        let message = self.words(&error);
        Fault { kind: found.kind, phase, message, source: Some(Arc::new(error.without_url())) }
    }

    /// An attempt for which there was no time left.
    pub(super) fn late(&self, late: Late, read: Duration) -> Fault {
        let (phase, message) = match late {
            Late::Connect => (Phase::Unsent, self.unconnected()),
            Late::Write => {
                let limit = seconds(self.timeouts.write);
                (Phase::Ambiguous, format!("{} took no byte of the request for {limit}", self.authority))
            }
            Late::Whole(limit) => {
                (Phase::Ambiguous, format!("{} did not take the whole request within {}", self.authority, seconds(limit)))
            }
            Late::Read => (Phase::Ambiguous, format!("no answer from {} within {}", self.authority, seconds(read))),
        };
        Fault { kind: ErrorKind::Timeout, phase, message, source: None }
    }

    /// An attempt that never got a connection, since other calls had all of them.
    pub(super) fn crowded(&self) -> Fault {
        let message = format!(
            "no connection to {} became free within {}: too many calls are under way for ClientBuilder::max_connections",
            self.authority,
            seconds(self.timeouts.pool)
        );
        Fault { kind: ErrorKind::Timeout, phase: Phase::Unsent, message, source: None }
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

    fn words(&self, error: &reqwest::Error) -> String {
        if error.is_builder() || error.is_redirect() {
            return "the HTTP client refuses the request; look at the settings of the client that was given".to_owned();
        }
        let (said, is_connecting) = (Said::of(error), error.is_connect());
        if let Some(text) = said.tunnel.as_deref().filter(|text| !is_lost(text)) {
            return format!("the proxy {} opened no connection to {}: {text}", self.whom(), self.authority);
        }
        if let Some(error) = said.tls {
            return format!("{} ({})", tls_words(error, "SPINNERET_CA_FILE"), self.authority);
        }
        if said.is_tls_eof {
            return format!("TLS failed: the connection was closed in the handshake ({})", self.authority);
        }
        if error.is_timeout() {
            return if is_connecting { self.unconnected() } else { format!("no answer from {} in time", self.authority) };
        }
        if error.is_dns() {
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
            _ if said.parse.is_some() => "the answer is not HTTP",
            _ if said.is_canceled => "connection was closed before the request was sent",
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

/// Whether a proxy's words only say that it was not reached, or got lost: its causes say more.
fn is_lost(words: &str) -> bool {
    words == "failed to create underlying connection" || words.starts_with("io error")
}

/// `10 s`, `0.25 s`
pub(crate) fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}
