//! The authority of a URL in canonical form: user info, host, port.
//!
//! Part of [`super::canonical`]; default ports stay, because the rule it follows keeps them.

use std::net::Ipv6Addr;

use super::error::{UrlError, shown};
use super::percent::{escape, is_sub_delim, is_unreserved, push_encoded};

/// Gives the canonical form of an authority; `url` is only named in an error.
pub(super) fn canonical_authority(authority: &str, url: &str) -> Result<String, UrlError> {
    if authority.contains('[') != authority.contains(']') {
        return Err(UrlError::Ipv6 { url: shown(url) });
    }
    let mut out = String::with_capacity(authority.len());
    let host_and_port = match authority.rsplit_once('@') {
        Some((userinfo, host)) => {
            let (user, password) = match userinfo.split_once(':') {
                Some((user, password)) => (user, Some(password)),
                None => (userinfo, None),
            };
            push_credential(&mut out, user);
            if let Some(password) = password {
                out.push(':');
                push_credential(&mut out, password);
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

/// Decodes what needs no encoding in a user name or password and encodes the rest; a bad `%` becomes `%25`.
fn push_credential(out: &mut String, text: &str) {
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let (byte, after) = if first == b'%' { escape(after).unwrap_or((first, after)) } else { (first, after) };
        rest = after;
        push_encoded(out, &[byte], |byte| is_unreserved(byte) || (is_sub_delim(byte) && byte != b';'));
    }
}

fn split_port<'a>(text: &'a str, url: &str) -> Result<(&'a str, &'a str), UrlError> {
    let bracket_end = text.rfind(']').map_or(0, |at| at + 1);
    let (before, after) = text.split_at(bracket_end);
    if bracket_end > 0 && !(text.starts_with('[') && (after.is_empty() || after.starts_with(':'))) {
        return Err(UrlError::Ipv6 { url: shown(url) });
    }
    let Some(colon) = after.find(':') else {
        return Ok((text, ""));
    };
    let (host_tail, port) = after.split_at(colon);
    let port = port.strip_prefix(':').unwrap_or(port);
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
    let (address, zone) = inner.split_once('%').map_or((inner, None), |(address, zone)| (address, Some(zone)));
    let address: Ipv6Addr = address.parse().map_err(|_| invalid())?;
    if zone.is_some_and(str::is_empty) {
        return Err(invalid());
    }
    out.push('[');
    match address.to_ipv4_mapped() {
        Some(_) => {
            let [.., high, low] = address.segments();
            out.push_str(&format!("::ffff:{high:x}:{low:x}"));
        }
        None => out.push_str(&address.to_string()),
    }
    if let Some(zone) = zone {
        out.push('%');
        out.push_str(zone);
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
        Ok(url::Host::Domain(domain)) if !has_bad_label(&domain) => out.push_str(&domain),
        _ => out.push_str(&host.to_lowercase()),
    }
}

/// Whether a label is too long, or empty other than at the end.
fn has_bad_label(domain: &str) -> bool {
    let named = domain.strip_suffix('.').unwrap_or(domain);
    named.split('.').any(|label| label.is_empty() || label.len() > 63)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Answers recorded from w3lib 2.5.0.
    #[test]
    fn credentials_addresses_and_ports_are_written_as_the_reference_does() {
        for (authority, expected) in [
            ("a%3bb%24@h", Some("a%3Bb$@h")),
            ("%7e%2f%21:%25%zz%@h", Some("~%2F!:%25%25zz%25@h")),
            ("%C3%a9:%e9@h", Some("%C3%A9:%E9@h")),
            ("[fe80::1%25eth0]:08", Some("[fe80::1%25eth0]:8")),
            ("[::ffff:1.2.3.4]", Some("[::ffff:102:304]")),
            ("[2001:DB8:0:0:1::1]", Some("[2001:db8::1:0:0:1]")),
            ("h:65536", None),
            ("h]", None),
            ("x[::1]", None),
            ("a:b:c@h", Some("a:b%3Ac@h")),
            ("..é", Some("..é")),
        ] {
            assert_eq!(canonical_authority(authority, authority).ok().as_deref(), expected, "{authority}");
        }
    }
}
