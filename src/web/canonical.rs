//! The canonical form of a URL and the fingerprint sent in request reports.
//!
//! Follows `canonicalize_url` of w3lib 2.5.0 with its defaults (fragment dropped, blank values kept), because the
//! receiver of the reports compares fingerprints made by that rule. It is not the key of our own seen set
//! (see [`super::key`]) and never changes the URL that is sent.

use std::borrow::Cow;
use std::net::Ipv6Addr;

use sha1::{Digest, Sha1};

use super::error::{UrlError, shown};

/// Schemes whose canonical form has `//` even without a host.
const SCHEMES_WITH_AUTHORITY: [&str; 25] = [
    "ftp", "http", "gopher", "nntp", "telnet", "imap", "wais", "file", "mms", "https", "shttp", "snews", "prospero",
    "rtsp", "rtsps", "rtspu", "rsync", "svn", "svn+ssh", "sftp", "nfs", "git", "git+ssh", "ws", "wss",
];

/// Schemes whose last path segment may carry parameters after `;`; the empty one is a relative reference.
const SCHEMES_WITH_PARAMS: [&str; 16] = [
    "", "ftp", "hdl", "prospero", "http", "imap", "https", "shttp", "rtsp", "rtsps", "rtspu", "sip", "sips", "mms",
    "sftp", "tel",
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
    if trimmed.contains(inner) {
        Cow::Owned(trimmed.replace(inner, ""))
    } else {
        Cow::Borrowed(trimmed)
    }
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
        let path = if special && path.contains('\\') {
            Cow::Owned(path.replace('\\', "/"))
        } else {
            Cow::Borrowed(path)
        };
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

fn canonical_authority(authority: &str, url: &str) -> Result<String, UrlError> {
    let mut out = String::with_capacity(authority.len());
    let host_and_port = match authority.rsplit_once('@') {
        Some((userinfo, host)) => {
            let (user, password) = match userinfo.split_once(':') {
                Some((user, password)) => (user, Some(password)),
                None => (userinfo, None),
            };
            let literal = |byte| is_unreserved(byte) || is_sub_delim(byte) || byte == b'%';
            push_encoded(&mut out, user.as_bytes(), literal);
            if let Some(password) = password {
                out.push(':');
                push_encoded(&mut out, password.as_bytes(), literal);
            }
            out.push('@');
            host
        }
        None => authority,
    };
    let (host, port) = split_port(host_and_port, url)?;
    match host.strip_prefix('[') {
        Some(inner) => push_bracketed(&mut out, inner, url)?,
        None => push_host(&mut out, host),
    }
    if !port.is_empty() {
        // Text of digits only, so the sole failure is a number above the limit.
        let number: u16 = port.parse().map_err(|_| UrlError::Port { url: shown(url) })?;
        out.push(':');
        out.push_str(&number.to_string());
    }
    Ok(out)
}

fn split_port<'a>(text: &'a str, url: &str) -> Result<(&'a str, &'a str), UrlError> {
    let bracket_end = text.rfind(']').map_or(0, |at| at + 1);
    let (before, after) = text.split_at(bracket_end);
    if bracket_end == 0 && text.contains('[') {
        return Err(UrlError::Ipv6 { url: shown(url) });
    }
    let Some(colon) = after.find(':') else {
        return Ok((text, ""));
    };
    let (host_tail, port) = after.split_at(colon);
    let port = port.trim_start_matches(':');
    if !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(UrlError::Port { url: shown(url) });
    }
    let host = text.get(..before.len() + host_tail.len()).unwrap_or(text);
    Ok((host, port))
}

fn push_bracketed(out: &mut String, inner: &str, url: &str) -> Result<(), UrlError> {
    let invalid = || UrlError::Ipv6 { url: shown(url) };
    let inner = inner.strip_suffix(']').ok_or_else(invalid)?;
    // The future address form of RFC 3986 loses its brackets in the reference implementation.
    if is_future_address(inner) {
        out.push_str(&inner.to_ascii_lowercase());
        return Ok(());
    }
    let address: Ipv6Addr = inner.parse().map_err(|_| invalid())?;
    out.push('[');
    match address.to_ipv4_mapped() {
        Some(_) => {
            let [.., high, low] = address.segments();
            out.push_str(&format!("::ffff:{high:x}:{low:x}"));
        }
        None => out.push_str(&address.to_string()),
    }
    out.push(']');
    Ok(())
}

fn is_future_address(inner: &str) -> bool {
    let Some((version, address)) = inner.split_once('.') else {
        return false;
    };
    let digits = version.strip_prefix(['v', 'V']).unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) && !address.is_empty()
}

/// Lower-cases a host; one that is not ASCII is mapped as IDNA 2003 does, and kept as it is when that fails.
fn push_host(out: &mut String, host: &str) {
    if host.is_ascii() {
        out.extend(host.chars().map(|c| c.to_ascii_lowercase()));
        return;
    }
    // The four characters that IDNA 2003 maps and its successor keeps.
    let mut mapped = String::with_capacity(host.len());
    for c in host.chars() {
        match c {
            'ß' | 'ẞ' => mapped.push_str("ss"),
            'ς' => mapped.push('σ'),
            '\u{200c}' | '\u{200d}' => {}
            other => mapped.push(other),
        }
    }
    match url::Host::parse(&mapped) {
        Ok(url::Host::Domain(domain)) if domain.split('.').all(|label| label.len() < 64) => out.push_str(&domain),
        _ => out.push_str(&host.to_lowercase()),
    }
}

fn canonical_path(parts: &Parts<'_>) -> String {
    let path = parts.path.as_ref();
    let resolved =
        if path.starts_with('/') { remove_dot_segments(path) } else { Cow::Borrowed(path) };
    let (path, params) = if SCHEMES_WITH_PARAMS.contains(&parts.scheme.as_str()) {
        let last_segment = resolved.rfind('/').map_or(0, |at| at + 1);
        match resolved.get(last_segment..).and_then(|segment| segment.find(';')) {
            Some(semicolon) => {
                let (path, params) = resolved.split_at(last_segment + semicolon);
                (path, params.strip_prefix(';').unwrap_or(params))
            }
            None => (resolved.as_ref(), ""),
        }
    } else {
        (resolved.as_ref(), "")
    };
    let mut out = String::with_capacity(resolved.len() + 8);
    push_path(&mut out, path);
    if out.is_empty() {
        out.push('/');
    }
    if !params.is_empty() {
        out.push(';');
        push_encoded(&mut out, params.as_bytes(), |byte| is_path_literal(byte) || byte == b'%');
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
            if is_path_literal(decoded) && !matches!(decoded, b'/' | b'?' | b'#' | b'%' | b';') {
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

fn form_decoded(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'+' => out.push(b' '),
            b'%' => match escape(after) {
                Some((decoded, after_escape)) => {
                    out.push(decoded);
                    rest = after_escape;
                }
                None => out.push(b'%'),
            },
            other => out.push(other),
        }
    }
    out
}

fn push_form_encoded(out: &mut String, bytes: &[u8]) {
    for &byte in bytes {
        match byte {
            b' ' => out.push('+'),
            other if is_unreserved(other) => out.push(char::from(other)),
            other => push_escape(out, other),
        }
    }
}

fn push_encoded(out: &mut String, bytes: &[u8], is_literal: impl Fn(u8) -> bool) {
    for &byte in bytes {
        if is_literal(byte) {
            out.push(char::from(byte));
        } else {
            push_escape(out, byte);
        }
    }
}

/// Reads the two hexadecimal digits after a `%`.
pub(super) fn escape(after_percent: &[u8]) -> Option<(u8, &[u8])> {
    let (&[high, low], rest) = after_percent.split_first_chunk::<2>()?;
    let value = char::from(high).to_digit(16)? * 16 + char::from(low).to_digit(16)?;
    Some((u8::try_from(value).ok()?, rest))
}

pub(super) fn push_escape(out: &mut String, byte: u8) {
    out.push('%');
    out.push(hex_digit(byte >> 4));
    out.push(hex_digit(byte & 15));
}

/// The upper-case digit of a number below 16.
pub(super) fn hex_digit(nibble: u8) -> char {
    char::from_digit(u32::from(nibble), 16).unwrap_or('0').to_ascii_uppercase()
}

/// Unreserved characters of RFC 3986 2.3.
pub(super) fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

fn is_sub_delim(byte: u8) -> bool {
    matches!(byte, b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=')
}

fn is_path_literal(byte: u8) -> bool {
    is_unreserved(byte) || is_sub_delim(byte) || matches!(byte, b'/' | b':' | b'@' | b'?' | b'[' | b']' | b'|')
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
    fn the_fast_path_takes_ordinary_pages_and_agrees_with_the_long_way() {
        assert!(is_plain_canonical("https://example.test/a/b_c.html"));
        assert!(is_plain_canonical("https://example.test/a?a=1&b=2"));
        assert!(!is_plain_canonical("https://example.test/a?b=1&a=2"));
        assert!(!is_plain_canonical("https://example.test/a/../b"));
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
        fn any_text_is_answered_and_twice_is_once(text in "(https?://)?[a-zA-Z0-9:@\\[\\]./?#&=%;+\\\\ é\u{0}-]{0,60}") {
            let print = wire_fingerprint("GET", &text);
            prop_assert_eq!(print.len(), 40);
            if text.starts_with("http") && !text.contains('[') && let Ok(once) = canonicalize(&text) {
                if is_plain_canonical(&text) {
                    prop_assert_eq!(&once, &text);
                }
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
