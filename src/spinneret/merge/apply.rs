//! A credential written onto a request of `reqwest`: what the request has already wins.

use std::collections::BTreeSet;

use http::header::{CONTENT_LENGTH, COOKIE, HOST, TRAILER, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue};
use reqwest::Request;
use url::Url;

use super::cookies;
use crate::spinneret::Result;
use crate::spinneret::error::Error;
use crate::spinneret::messages::Credential;

/// Headers that follow from the URL and the body of the request: a credential's would contradict them.
const NOT_OURS: [HeaderName; 4] = [HOST, CONTENT_LENGTH, TRANSFER_ENCODING, TRAILER];

/// See [`Credential::apply`].
pub(crate) fn apply(credential: &Credential, request: &mut Request) -> Result<()> {
    // First everything that can fail, so that a request is changed as a whole or not at all.
    let headers = missing_headers(credential, request.headers())?;
    let cookie = cookie_value(credential, request.headers())?;
    request.headers_mut().extend(headers);
    if let Some(cookie) = cookie {
        request.headers_mut().insert(COOKIE, cookie);
    }
    append_missing(request.url_mut(), credential);
    Ok(())
}

fn missing_headers(credential: &Credential, present: &HeaderMap) -> Result<HeaderMap> {
    let mut missing = HeaderMap::new();
    for (position, (name, value)) in (1_usize..).zip(&credential.headers) {
        let Ok(name) = HeaderName::try_from(name.as_str()) else {
            return Err(Error::invalid(format!(
                "name {position} of the {} headers of the credential (not shown) cannot be the name of a header; mend the \
                 identity in the control plane",
                credential.headers.len()
            )));
        };
        if name == COOKIE || NOT_OURS.contains(&name) || present.contains_key(&name) || missing.contains_key(&name) {
            continue;
        }
        let value = sensitive(&name, value.as_bytes())?;
        missing.insert(name, value);
    }
    Ok(missing)
}

/// The `Cookie` header the request gets; `None` when it keeps what it has.
fn cookie_value(credential: &Credential, present: &HeaderMap) -> Result<Option<HeaderValue>> {
    let headers: Vec<&str> =
        credential.headers.iter().filter(|(name, _)| cookies::is_cookie(name)).map(|(_, text)| text.as_str()).collect();
    let own = if headers.is_empty() && credential.cookies.is_empty() {
        credential.cookie_header.clone()
    } else {
        cookies::overrule(&headers.join("; "), &credential.cookies)
    };
    // Bytes, not text: what the request has may be in any encoding, and stays as it is.
    let mut value = Vec::new();
    for text in present.get_all(COOKIE).iter().map(HeaderValue::as_bytes).filter(|text| !text.trim_ascii().is_empty()) {
        join(&mut value, text);
    }
    if value.is_empty() {
        return if own.is_empty() { Ok(None) } else { sensitive(&COOKIE, own.as_bytes()).map(Some) };
    }
    let known = String::from_utf8_lossy(&value).into_owned();
    let known: BTreeSet<&str> = cookies::parse(&known).map(|(name, _)| name).collect();
    let missing: Vec<(&str, &str)> = cookies::parse(&own).filter(|(name, _)| !known.contains(name)).collect();
    if missing.is_empty() {
        return Ok(None);
    }
    for (name, text) in missing {
        join(&mut value, format!("{name}={text}").as_bytes());
    }
    sensitive(&COOKIE, &value).map(Some)
}

fn join(value: &mut Vec<u8>, text: &[u8]) {
    if !value.is_empty() {
        value.extend_from_slice(b"; ");
    }
    value.extend_from_slice(text);
}

/// The value, marked so that neither `Debug` nor the tables of HTTP/2 keep it.
fn sensitive(name: &HeaderName, value: &[u8]) -> Result<HeaderValue> {
    let mut value = HeaderValue::from_bytes(value).map_err(|_| {
        Error::invalid(format!(
            "the credential's value for the header {name} (not shown) has characters that no header can have; mend the \
             identity in the control plane"
        ))
    })?;
    value.set_sensitive(true);
    Ok(value)
}

fn append_missing(url: &mut Url, credential: &Credential) {
    let present: BTreeSet<String> = url.query_pairs().map(|(name, _)| name.into_owned()).collect();
    let missing: Vec<_> = credential.query.iter().filter(|(name, _)| !present.contains(*name)).collect();
    // Asking for the pairs to change them would already add a question mark.
    if !missing.is_empty() {
        url.query_pairs_mut().extend_pairs(missing);
    }
}
