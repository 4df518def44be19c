//! The authority of a URL in canonical form: user info, host, port.
//!
//! Part of [`super::canonical`]; default ports stay, because the rule it follows keeps them.

use std::net::Ipv6Addr;

use super::error::{UrlError, shown};
use super::percent::{is_sub_delim, is_unreserved, push_encoded};

/// Gives the canonical form of an authority; `url` is only named in an error.
pub(super) fn canonical_authority(authority: &str, url: &str) -> Result<String, UrlError> {
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
