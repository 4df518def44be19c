//! What `COOKIES_DEBUG` writes: which cookies went out and which an answer set.
//!
//! Names and attributes only. A value is a secret, and so is all of a nameless cookie.

use std::fmt::Write as _;

use http::header::{COOKIE, SET_COOKIE};
use http::{HeaderMap, HeaderValue};
use url::Url;

use super::cookies::pairs;
use super::jars::name_of;

/// Cookies that one line names.
const MOST: usize = 50;

/// Characters of a name or an attribute that are shown.
const SHOWN_CHARS: usize = 80;

/// Names the cookies of a request.
pub(crate) fn sent(url: &Url, headers: &HeaderMap) {
    if headers.contains_key(COOKIE) {
        tracing::info!(url = url.as_str(), cookies = sent_names(headers), "cookies sent (COOKIES_DEBUG)");
    }
}

/// Names the cookies that an answer sets.
pub(crate) fn received(url: &Url, headers: &HeaderMap) {
    if headers.contains_key(SET_COOKIE) {
        tracing::info!(url = url.as_str(), cookies = set_names(headers), "cookies received (COOKIES_DEBUG)");
    }
}

fn sent_names(headers: &HeaderMap) -> String {
    listed(headers.get_all(COOKIE).iter().flat_map(pairs).map(|(name, _)| shown(name)), ", ")
}

fn set_names(headers: &HeaderMap) -> String {
    listed(headers.get_all(SET_COOKIE).iter().map(|value| format!("{}{}", shown(name_of(value)), attributes(value))), ", ")
}

/// The attributes that say where and how long a cookie goes.
fn attributes(value: &HeaderValue) -> String {
    let known = [&b"domain"[..], b"path", b"expires", b"max-age", b"secure", b"httponly", b"samesite"];
    let mut text = String::new();
    for attribute in value.as_bytes().split(|byte| *byte == b';').skip(1).map(<[u8]>::trim_ascii) {
        let name = attribute.split(|byte| *byte == b'=').next().unwrap_or_default().trim_ascii();
        if known.iter().any(|known| name.eq_ignore_ascii_case(known)) {
            // Writing into a text cannot fail.
            let _ = write!(text, "; {}", shown(attribute));
        }
    }
    text
}

fn listed(names: impl Iterator<Item = String>, by: &str) -> String {
    let mut names: Vec<String> = names.take(MOST + 1).collect();
    if names.len() > MOST {
        names.truncate(MOST);
        names.push("and more".to_owned());
    }
    names.join(by)
}

fn shown(name: &[u8]) -> String {
    if name.is_empty() {
        return "(without a name)".to_owned();
    }
    String::from_utf8_lossy(name).chars().filter(|c| !c.is_control()).take(SHOWN_CHARS).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_log_names_cookies_and_never_shows_a_value() {
        let mut headers = HeaderMap::new();
        for value in ["sid=canary; Path=/; HttpOnly; note=canary", "canary; Secure", "=canary", "b=canary;Domain=h.test"] {
            headers.append(SET_COOKIE, HeaderValue::from_static(value));
        }
        let text = set_names(&headers);
        assert_eq!(text, "sid; Path=/; HttpOnly, (without a name); Secure, (without a name), b; Domain=h.test");
        headers.insert(COOKIE, HeaderValue::from_static("sid=canary; canary; b=canary=canary"));
        assert_eq!(sent_names(&headers), "sid, (without a name), b");
    }

    #[test]
    fn a_line_is_bounded() {
        let mut headers = HeaderMap::new();
        headers.insert(COOKIE, HeaderValue::from_str(&format!("{}=1; ", "n".repeat(500)).repeat(200)).unwrap());
        let text = sent_names(&headers);
        assert!(text.len() < (SHOWN_CHARS + 2) * (MOST + 1) && text.ends_with("and more"), "{text}");
    }
}
