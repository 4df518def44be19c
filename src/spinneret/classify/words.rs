//! What the words of an error say when no type of it does.
//!
//! Phrases of many libraries and systems, in lower case; the first group with one of them wins.

use std::error::Error;

use crate::causes::{chain, no_tunnel};
use crate::spinneret::error_kind::ErrorKind;

const GROUPS: [(ErrorKind, &[&str]); 5] = [
    (
        ErrorKind::Dns,
        &[
            "name or service not known",
            "nodename nor servname",
            "temporary failure in name resolution",
            "getaddrinfo failed",
            "no address associated with hostname",
            "name resolution",
            "failed to resolve",
            "could not resolve",
            "couldn't resolve",
            "failed to lookup address",
            "dns error",
            "no such host",
            "server misbehaving",
        ],
    ),
    (ErrorKind::Tls, &["ssl", "tls", "certificate", "handshake", "x509:"]),
    (ErrorKind::Timeout, &["timed out", "timeout", "deadline exceeded"]),
    (
        ErrorKind::ConnRefused,
        &[
            "connection refused",
            "no route to host",
            "network is unreachable",
            "host is down",
            "could not connect",
            "couldn't connect",
        ],
    ),
    (
        ErrorKind::ConnReset,
        &[
            "connection reset",
            "reset by peer",
            "broken pipe",
            "server disconnected",
            "peer closed",
            "connection aborted",
            "unexpected eof",
            "incomplete",
            "closed network connection",
            "connection closed before message completed",
            "goaway",
            "stream error",
            "empty reply",
        ],
    ),
];

/// The words of a chain, in lower case. URLs are left out, since anything may be in them, and so is what a JSON parser
/// says, since it quotes what it read. The URL is all that the texts of `reqwest` add to their causes, and those of a
/// tunnel are read word for word before these are.
pub(super) fn of(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    let is_silent =
        |link: &(dyn Error + 'static)| link.is::<reqwest::Error>() || link.is::<serde_json::Error>() || no_tunnel(link).is_some();
    let links = chain(error).filter(|link| !is_silent(*link));
    for word in links.map(ToString::to_string).flat_map(|said| said.split_whitespace().map(str::to_owned).collect::<Vec<_>>()) {
        if !word.contains("://") {
            text.push_str(&word);
            text.push(' ');
        }
    }
    text.make_ascii_lowercase();
    text
}

/// Whether a proxy refuses the user or password.
pub(super) fn proxy(text: &str) -> Option<ErrorKind> {
    let is_status = || text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == "407");
    let is_socks = || {
        let refusals = ["authentication", "credentials not accepted", "user/pass", "username/password"];
        text.contains("socks") && refusals.iter().any(|refusal| text.contains(refusal))
    };
    (text.contains("proxy authentication") || is_status() || is_socks()).then_some(ErrorKind::ProxyAuth)
}

/// How the transport failed.
pub(super) fn transport(text: &str) -> Option<ErrorKind> {
    GROUPS.iter().find(|(_, phrases)| phrases.iter().any(|phrase| text.contains(phrase))).map(|(kind, _)| *kind)
}
