//! The canonical form of a URL and the fingerprint sent in request reports.
//!
//! Follows `canonicalize_url` of w3lib 2.5.0 with its defaults (fragment dropped, blank values kept), because the
//! receiver of the reports compares fingerprints made by that rule. It is not the key of our own seen set
//! (see [`super::key`]) and never changes the URL that is sent.

use std::borrow::Cow;

use sha1::{Digest, Sha1};

use super::authority::canonical_authority;
use super::error::UrlError;
use super::percent::{
    escape, form_decoded, hex_digit, is_path_literal, is_unreserved, push_encoded, push_escape, push_form_encoded,
};

/// Schemes whose canonical form has `//` even without a host.
const SCHEMES_WITH_AUTHORITY: [&str; 25] = [
    "ftp", "http", "gopher", "nntp", "telnet", "imap", "wais", "file", "mms", "https", "shttp", "snews", "prospero", "rtsp",
    "rtsps", "rtspu", "rsync", "svn", "svn+ssh", "sftp", "nfs", "git", "git+ssh", "ws", "wss",
];

/// Schemes whose last path segment may carry parameters after `;`; the empty one is a relative reference.
const SCHEMES_WITH_PARAMS: [&str; 16] = [
    "", "ftp", "hdl", "prospero", "http", "imap", "https", "shttp", "rtsp", "rtsps", "rtspu", "sip", "sips", "mms", "sftp", "tel",
];

/// Schemes in which a backslash is a slash and dot segments are resolved (WHATWG URL, special schemes).
const SPECIAL_SCHEMES: [&str; 6] = ["http", "https", "ftp", "file", "ws", "wss"];

/// Gives the canonical form of `url` as w3lib 2.5.0 does.
///
/// # Errors
/// [`UrlError::Port`] for a port that is no number up to 65535, [`UrlError::Ipv6`] for a bracketed host that is no
/// IPv6 address. Every other text has a canonical form.
pub fn canonicalize(url: &str) -> Result<String, UrlError> {
    canonical(url).map(Cow::into_owned)
}

/// The fingerprint of a request in reports: 40 hexadecimal digits, SHA-1 of method and canonical URL.
///
/// Never fails: a URL that has no canonical form is hashed as it is. Body and headers take no part.
#[must_use]
pub fn wire_fingerprint(method: &str, url: &str) -> String {
    let canonical = canonical(url).unwrap_or(Cow::Borrowed(url));
    let mut hash = Sha1::new();
    hash.update(method.as_bytes());
    hash.update(canonical.as_bytes());
    let mut hex = String::with_capacity(40);
    for byte in hash.finalize() {
        hex.push(hex_digit(byte >> 4).to_ascii_lowercase());
        hex.push(hex_digit(byte & 15).to_ascii_lowercase());
    }
    hex
}

fn canonical(url: &str) -> Result<Cow<'_, str>, UrlError> {
    if is_plain_canonical(url) {
        return Ok(Cow::Borrowed(url));
    }
    let cleaned = clean(url);
    let parts = Parts::split(&cleaned);
    let mut out = String::with_capacity(cleaned.len() + 16);
    let authority = parts.authority.map(|text| canonical_authority(text, url)).transpose()?.unwrap_or_default();
    let path = canonical_path(&parts);
    if !parts.scheme.is_empty() {
        out.push_str(&parts.scheme);
        out.push(':');
    }
    let wants_slashes = SCHEMES_WITH_AUTHORITY.contains(&parts.scheme.as_str()) && path.starts_with('/');
    if !authority.is_empty() || path.starts_with("//") || wants_slashes {
        out.push_str("//");
        out.push_str(&authority);
        if !path.starts_with('/') {
            out.push('/');
        }
    }
    out.push_str(&path);
    push_query(&mut out, parts.query);
    Ok(Cow::Owned(out))
}

/// Whether the text is surely its own canonical form, decided in one pass without allocation.
///
/// `false` only means that the long way must be taken.
fn is_plain_canonical(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")) else {
        return false;
    };
    let Some(slash) = rest.find('/') else {
        return false;
    };
    let (host, path_and_query) = rest.split_at(slash);
    let (host, port) = match host.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (host, None),
    };
    let is_plain_port = |port: &str| port.starts_with(|c: char| matches!(c, '1'..='9')) && port.parse::<u16>().is_ok();
    if !port.is_none_or(is_plain_port) {
        return false;
    }
    let plain_host = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'-');
    if host.is_empty() || !host.bytes().all(plain_host) {
        return false;
    }
    let (path, query) = match path_and_query.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (path_and_query, None),
    };
    let mut previous = 0_u8;
    for byte in path.bytes() {
        // A segment that starts with a dot may be a dot segment.
        if !is_path_literal(byte) || matches!(byte, b';' | b'?' | b'%') || (previous == b'/' && byte == b'.') {
            return false;
        }
        previous = byte;
    }
    query.is_none_or(is_plain_query)
}

fn is_plain_query(query: &str) -> bool {
    let mut previous: Option<(&str, &str)> = None;
    for piece in query.split('&') {
        let Some(pair) = piece.split_once('=') else {
            return false;
        };
        let plain = |text: &str| text.bytes().all(is_unreserved);
        if !plain(pair.0) || !plain(pair.1) || previous.is_some_and(|earlier| earlier > pair) {
            return false;
        }
        previous = Some(pair);
    }
    true
}

/// Strips controls and blanks at both ends and deletes tab, CR and LF inside.
fn clean(url: &str) -> Cow<'_, str> {
    let trimmed = url.trim_matches(|c: char| c <= ' ');
    let inner = ['\t', '\n', '\r'];
    if trimmed.contains(inner) { Cow::Owned(trimmed.replace(inner, "")) } else { Cow::Borrowed(trimmed) }
}

struct Parts<'a> {
    scheme: String,
    authority: Option<&'a str>,
    path: Cow<'a, str>,
    query: &'a str,
}

impl<'a> Parts<'a> {
    fn split(url: &'a str) -> Self {
        let (scheme, rest) = split_scheme(url);
        let special = SPECIAL_SCHEMES.contains(&scheme.as_str());
        let rest = rest.split('#').next().unwrap_or_default();
        let (hierarchy, query) = rest.split_once('?').unwrap_or((rest, ""));
        let is_slash = |c: char| c == '/' || (special && c == '\\');
        let mut chars = hierarchy.chars();
        let has_authority = chars.next().is_some_and(is_slash) && chars.next().is_some_and(is_slash);
        let (authority, path) = if has_authority {
            let after = chars.as_str();
            let end = after.find(is_slash).unwrap_or(after.len());
            let (authority, path) = after.split_at(end);
            (Some(authority), path)
        } else {
            (None, hierarchy)
        };
        let path = if special && path.contains('\\') { Cow::Owned(path.replace('\\', "/")) } else { Cow::Borrowed(path) };
        Self { scheme, authority, path, query }
    }
}

fn split_scheme(url: &str) -> (String, &str) {
    if let Some((scheme, rest)) = url.split_once(':') {
        let mut bytes = scheme.bytes();
        let starts_well = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic());
        if starts_well && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')) {
            return (scheme.to_ascii_lowercase(), rest);
        }
    }
    (String::new(), url)
}

fn canonical_path(parts: &Parts<'_>) -> String {
    let path = parts.path.as_ref();
    let (path, params) = if SCHEMES_WITH_PARAMS.contains(&parts.scheme.as_str()) {
        let last_segment = path.rfind('/').map_or(0, |at| at + 1);
        match path.get(last_segment..).and_then(|segment| segment.find(';')) {
            Some(semicolon) => {
                let (path, params) = path.split_at(last_segment + semicolon);
                (path, params.strip_prefix(';').unwrap_or(params))
            }
            None => (path, ""),
        }
    } else {
        (path, "")
    };
    let resolved = if path.starts_with('/') { remove_dot_segments(path) } else { Cow::Borrowed(path) };
    let mut out = String::with_capacity(parts.path.len() + 8);
    push_path(&mut out, &resolved);
    if out.is_empty() {
        out.push('/');
    }
    if !params.is_empty() {
        out.push(';');
        let literal = |byte| byte == b'%' || (is_path_literal(byte) && !matches!(byte, b'[' | b']' | b'|'));
        push_encoded(&mut out, params.as_bytes(), literal);
    }
    out
}

/// Resolves `.` and `..`, also when their dots are percent-encoded. Never climbs above the root.
fn remove_dot_segments(path: &str) -> Cow<'_, str> {
    if !path.contains("/.") && !path.contains("/%2") {
        return Cow::Borrowed(path);
    }
    let mut kept: Vec<&str> = Vec::new();
    let mut ends_in_directory = false;
    for segment in path.split('/').skip(1) {
        ends_in_directory = true;
        match dots(segment) {
            Some(1) => {}
            Some(_) => {
                kept.pop();
            }
            None => {
                kept.push(segment);
                ends_in_directory = false;
            }
        }
    }
    let mut out = String::with_capacity(path.len());
    for segment in &kept {
        out.push('/');
        out.push_str(segment);
    }
    if ends_in_directory {
        out.push('/');
    }
    Cow::Owned(out)
}

/// One for `.`, two for `..`, nothing for an ordinary segment.
fn dots(segment: &str) -> Option<usize> {
    let mut rest = segment;
    let mut count = 0;
    while !rest.is_empty() {
        let shorter = rest.strip_prefix('.').or_else(|| rest.strip_prefix("%2e")).or_else(|| rest.strip_prefix("%2E"));
        rest = shorter?;
        count += 1;
    }
    (count == 1 || count == 2).then_some(count)
}

/// Decodes what needs no encoding, upper-cases the other escapes and encodes what may not stand in a path.
fn push_path(out: &mut String, path: &str) {
    let mut rest = path.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte == b'%' {
            let Some((decoded, after_escape)) = escape(after) else {
                out.push('%');
                continue;
            };
            rest = after_escape;
            let is_decoded = is_path_literal(decoded) && !matches!(decoded, b'/' | b'?' | b'#' | b'%' | b';');
            if is_decoded && !completes_an_escape(out, decoded) {
                out.push(char::from(decoded));
            } else {
                push_escape(out, decoded);
            }
        } else if is_path_literal(byte) {
            out.push(char::from(byte));
        } else {
            push_escape(out, byte);
        }
    }
}

/// Whether a decoded digit would make an escape of a lone `%` before it (`%7%41` is not `%7A`). The reference decodes it,
/// and its form of such a URL changes when it is taken again; ours does not.
fn completes_an_escape(out: &str, decoded: u8) -> bool {
    if !decoded.is_ascii_hexdigit() {
        return false;
    }
    match out.as_bytes() {
        [.., b'%'] => true,
        // Behind a whole escape the percent sign is further away than that.
        [.., b'%', digit] => digit.is_ascii_hexdigit(),
        _ => false,
    }
}

/// Sorts and re-encodes a query like a form, with its leading `?`; writes nothing when no pair is left.
fn push_query(out: &mut String, query: &str) {
    let mut pairs: Vec<(Vec<u8>, Vec<u8>)> = query
        .split('&')
        .filter(|piece| !piece.is_empty())
        .map(|piece| {
            let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
            (form_decoded(name), form_decoded(value))
        })
        .collect();
    pairs.sort();
    let mut separator = '?';
    for (name, value) in &pairs {
        out.push(separator);
        separator = '&';
        push_form_encoded(out, name);
        out.push('=');
        push_form_encoded(out, value);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn vectors() -> Vec<Value> {
        let data: Value = serde_json::from_str(include_str!("../../tests/data/url_canonical.json")).unwrap();
        data["entries"].as_array().unwrap().clone()
    }

    #[test]
    fn every_vector_gives_its_canonical_url_and_fingerprint() {
        let entries = vectors();
        assert_eq!(entries.len(), 347);
        let mut wrong = Vec::new();
        for entry in &entries {
            let url = entry["url"].as_str().unwrap();
            let ours = canonicalize(url).ok();
            if ours.as_deref() != entry["canonical"].as_str() {
                wrong.push(format!("{url:?}: {ours:?}, expected {}", entry["canonical"]));
            }
            if let Some(print) = entry["fingerprint_get"].as_str() {
                assert_eq!(wire_fingerprint("GET", url), print, "{url:?}");
            }
            if let Some(request) = entry["request_url"].as_str() {
                let print = entry["request_fingerprint_get"].as_str().unwrap();
                assert_eq!(wire_fingerprint("GET", request), print, "{request:?}");
            }
        }
        assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    }

    #[test]
    fn a_url_without_canonical_form_is_hashed_as_it_is() {
        let mut hash = Sha1::new();
        hash.update(b"GEThttp://[zz]/");
        let expected: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(wire_fingerprint("GET", "http://[zz]/"), expected);
    }

    #[test]
    fn an_encoded_hash_stays_encoded() {
        let once = canonicalize("https://example.test/p/foo%20bar%3a%20x%20%2376%2c%20y#frag").unwrap();
        assert!(once.contains("%2376") && !once.contains('#'), "{once}");
        assert_eq!(canonicalize(&once).unwrap(), once);
    }

    #[test]
    fn a_decoded_digit_makes_no_escape_of_a_lone_percent_sign() {
        for (url, canonical) in [
            ("http://h/%7%41", "http://h/%7%41"),
            ("http://h/%%41e", "http://h/%%41e"),
            ("http://h/%2%65%2e", "http://h/%2%65."),
            ("http://h/100%/%41", "http://h/100%/A"),
            ("http://h/%c3%41", "http://h/%C3A"),
        ] {
            assert_eq!(canonicalize(url).unwrap(), canonical);
            assert_eq!(canonicalize(canonical).unwrap(), canonical);
        }
    }

    #[test]
    fn the_fast_path_takes_ordinary_pages_and_agrees_with_the_long_way() {
        assert!(is_plain_canonical("https://example.test/a/b_c.html"));
        assert!(is_plain_canonical("https://example.test/a?a=1&b=2"));
        assert!(!is_plain_canonical("https://example.test/a?b=1&a=2"));
        assert!(!is_plain_canonical("https://example.test/a/../b"));
        assert!(is_plain_canonical("http://127.0.0.1:8901/a"));
        assert!(!is_plain_canonical("https://example.test:080/"));
        assert!(!is_plain_canonical("https://example.test:65536/"));
        assert!(!is_plain_canonical("https://example.test:/"));
        assert!(!is_plain_canonical("https://example.test"));
        for entry in vectors() {
            let url = entry["url"].as_str().unwrap();
            if is_plain_canonical(url) {
                assert_eq!(entry["canonical"].as_str(), Some(url));
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_has_a_fingerprint(text in "(https?://)?[a-zA-Z0-9:@\\[\\]./?#&=%;+\\\\ é\u{0}-]{0,60}") {
            prop_assert_eq!(wire_fingerprint("GET", &text).len(), 40);
        }

        #[test]
        fn twice_is_once(text in "[a-zA-Z0-9:@./&=%;+\\\\é-]{0,40}([?][a-z0-9=&%+;]{0,20})?") {
            let once = canonicalize(&format!("http://host.test/{text}")).unwrap();
            prop_assert_eq!(canonicalize(&once).unwrap(), once);
        }

        #[test]
        fn the_fast_path_agrees_with_the_long_way(text in "/[a-c./;~-]{0,12}([?][a-c=&.]{0,12})?") {
            let url = format!("http://host.test{text}");
            if is_plain_canonical(&url) {
                // The fragment forces the long way.
                prop_assert_eq!(canonicalize(&format!("{url}#f")).unwrap(), url);
            }
        }

        #[test]
        fn the_order_of_pairs_does_not_matter(mut pairs in proptest::collection::vec("[a-c%2]{0,3}=[a-c]{0,2}", 1..6)) {
            let one = canonicalize(&format!("http://h/?{}", pairs.join("&"))).unwrap();
            pairs.reverse();
            prop_assert_eq!(one, canonicalize(&format!("http://h/?{}", pairs.join("&"))).unwrap());
        }
    }
}
