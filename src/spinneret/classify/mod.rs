//! How a request that got no response is named in a report: one word for any error of any HTTP library.
//!
//! Looks at types first, at words only when no type says anything. Nothing of an error's text is kept.

mod words;

#[cfg(test)]
mod tests;

use std::error::Error as StdError;
use std::io;

use super::error::Error;
use super::error_kind::ErrorKind;
use super::transport::Phase;
use crate::causes::{Said, chain, is_tls_eof, no_tunnel};

/// The word for an error (wire contract, section 13).
///
/// The error may be one of `reqwest`, `hyper`, `h2`, `rustls`, `std::io` or this crate, or any other with one of these
/// among its causes, of which the first 16 are looked at. What no type tells is taken from the words of the chain.
///
/// An error that carries a response ([`carried_status`]) is no failure of the transport: 407 gives
/// [`ErrorKind::ProxyAuth`], any other status gives [`ErrorKind::Other`]. Report such a response as one instead.
///
/// ```
/// use dragline::spinneret::{ErrorKind, classify};
///
/// let error = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
/// assert_eq!(classify(&error), ErrorKind::ConnReset);
/// ```
#[must_use]
pub fn classify(error: &(dyn StdError + 'static)) -> ErrorKind {
    if let Some(status) = carried_status(error) {
        return classify_response(status).unwrap_or(ErrorKind::Other);
    }
    let mut library = None;
    for link in chain(error) {
        match hear(link) {
            Heard::Kind(kind) => return kind,
            Heard::Library(class) => library = Some(class),
            Heard::Nothing => {}
        }
    }
    let text = words::of(error);
    match library {
        Some(class) => words::transport(&text).unwrap_or(class),
        None => words::proxy(&text).or_else(|| words::transport(&text)).unwrap_or(ErrorKind::Other),
    }
}

/// The word for a response: 407 is the proxy's, and counts as a failure to get through it. Every other status is no
/// failure of the transport and has no word.
#[must_use]
pub const fn classify_response(status: u16) -> Option<ErrorKind> {
    if status == 407 { Some(ErrorKind::ProxyAuth) } else { None }
}

/// The status of the response an error carries, as the one of `reqwest::Response::error_for_status` does. `None` when
/// there was no response.
#[must_use]
pub fn carried_status(error: &(dyn StdError + 'static)) -> Option<u16> {
    chain(error).find_map(|link| link.downcast_ref::<reqwest::Error>()?.status()).map(|status| status.as_u16())
}

/// Whether the other side showed a certificate that is not trusted: by an unknown issuer, expired, for another name.
/// Trying again does not help; a person must look at it, or `SPINNERET_CA_FILE` must name the issuer.
#[must_use]
pub fn is_bad_certificate(error: &(dyn StdError + 'static)) -> bool {
    Said::of(error).tls.is_some_and(is_untrusted)
}

/// What an attempt that ended without an answer comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) kind: ErrorKind,
    pub(crate) phase: Phase,
}

/// How an exchange of the client's own transport ended.
pub(crate) fn look(error: &reqwest::Error) -> Found {
    Found { kind: classify(error), phase: phase(error) }
}

/// How far it came.
fn phase(error: &reqwest::Error) -> Phase {
    let said = Said::of(error);
    let is_refused = said.tunnel.as_deref().is_some_and(|words| matches!(Tunnel::of(words), Tunnel::Auth | Tunnel::Refused));
    if error.is_builder() || error.is_redirect() || is_refused || said.tls.is_some_and(is_untrusted) {
        return Phase::Permanent;
    }
    if error.is_connect() || error.is_dns() || said.is_canceled || said.h2.is_some_and(is_unprocessed) {
        return Phase::Unsent;
    }
    Phase::Ambiguous
}

fn is_untrusted(error: &rustls::Error) -> bool {
    use rustls::Error as Tls;
    matches!(error, Tls::InvalidCertificate(_) | Tls::NoCertificatesPresented)
}

/// The server says that it did not begin with the request (RFC 9113, sections 6.8 and 8.7).
fn is_unprocessed(error: &h2::Error) -> bool {
    let is_farewell = error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR);
    let is_refused = error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
    error.is_remote() && (is_farewell || is_refused)
}

/// What one error of a chain says.
enum Heard {
    /// What it was.
    Kind(ErrorKind),
    /// An HTTP library's error: what it is if none of its causes says more.
    Library(ErrorKind),
    Nothing,
}

fn hear(link: &(dyn StdError + 'static)) -> Heard {
    let kind = |kind: Option<ErrorKind>| kind.map_or(Heard::Nothing, Heard::Kind);
    if let Some(error) = link.downcast_ref::<Error>() {
        kind(error.error_kind())
    } else if let Some(error) = link.downcast_ref::<reqwest::Error>() {
        of_reqwest(error)
    } else if let Some(error) = link.downcast_ref::<io::Error>() {
        kind(of_io(error))
    } else if link.is::<rustls::Error>() {
        Heard::Kind(ErrorKind::Tls)
    } else if let Some(error) = link.downcast_ref::<h2::Error>() {
        of_h2(error)
    } else if let Some(error) = link.downcast_ref::<hyper::Error>() {
        of_hyper(error)
    } else if link.is::<tokio::time::error::Elapsed>() {
        Heard::Kind(ErrorKind::Timeout)
    } else {
        no_tunnel(link).map_or(Heard::Nothing, |words| Tunnel::of(&words).heard())
    }
}

fn of_reqwest(error: &reqwest::Error) -> Heard {
    if error.is_timeout() {
        Heard::Kind(ErrorKind::Timeout)
    } else if error.is_dns() {
        Heard::Kind(ErrorKind::Dns)
    } else {
        Heard::Library(if error.is_connect() { ErrorKind::ConnRefused } else { ErrorKind::Other })
    }
}

fn of_hyper(error: &hyper::Error) -> Heard {
    if error.is_timeout() {
        return Heard::Kind(ErrorKind::Timeout);
    }
    if error.is_incomplete_message() {
        return Heard::Kind(ErrorKind::ConnReset);
    }
    Heard::Library(if error.is_user() { ErrorKind::Other } else { ErrorKind::ConnReset })
}

fn of_h2(error: &h2::Error) -> Heard {
    if let Some(kind) = error.get_io().and_then(of_io) {
        return Heard::Kind(kind);
    }
    let is_lost = error.is_io() || error.reason().is_some();
    Heard::Library(if is_lost { ErrorKind::ConnReset } else { ErrorKind::Other })
}

fn of_io(error: &io::Error) -> Option<ErrorKind> {
    use io::ErrorKind as Io;
    if is_tls_eof(error) {
        return Some(ErrorKind::Tls);
    }
    match error.kind() {
        Io::TimedOut => Some(ErrorKind::Timeout),
        Io::ConnectionRefused | Io::HostUnreachable | Io::NetworkUnreachable | Io::NetworkDown => Some(ErrorKind::ConnRefused),
        Io::ConnectionReset | Io::ConnectionAborted | Io::BrokenPipe | Io::UnexpectedEof | Io::NotConnected => {
            Some(ErrorKind::ConnReset)
        }
        _ => None,
    }
}

/// What became of the tunnel through a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tunnel {
    /// The proxy wants another user or password.
    Auth,
    /// The proxy said no.
    Refused,
    /// The connection to the proxy was lost.
    Lost,
    /// There was no connection to the proxy.
    Unreached,
    /// The name behind the proxy could not be resolved here.
    Unresolved,
}

impl Tunnel {
    /// By the words after `tunnel error: ` and `SOCKS error: `, which are all there is.
    fn of(words: &str) -> Self {
        match words {
            "proxy authorization required"
            | "credentials not accepted"
            | "server does not support user/pass authentication"
            | "server implements authentication incorrectly" => Self::Auth,
            "failed to create underlying connection" => Self::Unreached,
            "could not resolve to acceptable address type" => Self::Unresolved,
            "unexpected end of file" | "io error establishing tunnel" | "io error during SOCKS handshake" => Self::Lost,
            _ => Self::Refused,
        }
    }

    /// Causes of a proxy that was not reached or got lost say more, where there are any.
    const fn heard(self) -> Heard {
        match self {
            Self::Auth => Heard::Kind(ErrorKind::ProxyAuth),
            Self::Refused => Heard::Kind(ErrorKind::Other),
            Self::Unresolved => Heard::Kind(ErrorKind::Dns),
            Self::Lost => Heard::Library(ErrorKind::ConnReset),
            Self::Unreached => Heard::Library(ErrorKind::ConnRefused),
        }
    }
}
