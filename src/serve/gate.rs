//! What is checked before a body is looked into: address, method, type, key, clock, signature, the batch's id.
//!
//! Pure functions of the request and the time. No message says more of a key than that it is unknown.

use std::time::Duration;

use http::header::{ALLOW, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use super::keys::Keys;
use super::refusal::Refusal;
use crate::http_server::Head;

/// Where batches go; anything may stand before it.
pub(crate) const ENDPOINT: &str = "/api/webhook/consume";
/// How far the sender's clock may be off, either way.
const SKEW: Duration = Duration::from_mins(5);
/// Characters of a batch's id.
const LONGEST_ID: usize = 255;

/// Checks all that comes before the body.
pub(crate) fn head(head: &Head) -> Result<(), Refusal> {
    if !head.path.ends_with(ENDPOINT) {
        let message = format!(
            "nothing is at {}; batches go to {ENDPOINT} and calls of a node below /spinneret.v1, so a base URL ends before that",
            shown(&head.path)
        );
        return Err(Refusal::new(StatusCode::NOT_FOUND, "not_found", message));
    }
    if head.method != Method::POST {
        let message = format!("{} is not answered here; send batches with POST", shown(head.method.as_str()));
        let refusal = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message);
        return Err(refusal.with(ALLOW, HeaderValue::from_static("POST")));
    }
    content_type(&head.headers)
}

fn content_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let refuse = |message| Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message));
    let Some(found) = headers.get(CONTENT_TYPE) else {
        return refuse("Content-Type is missing; send application/json".to_owned());
    };
    let found = String::from_utf8_lossy(found.as_bytes());
    // Parameters are no part of the type: some clients add a charset.
    let essence = found.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return refuse(format!("Content-Type is {}; send application/json", shown(&found)));
    }
    match headers.get(CONTENT_ENCODING).map(|coding| String::from_utf8_lossy(coding.as_bytes())) {
        Some(coding) if !coding.trim().eq_ignore_ascii_case("identity") => {
            refuse(format!("Content-Encoding is {}; send the body as it is, without compression", shown(&coding)))
        }
        _ => Ok(()),
    }
}

/// Checks key, clock and signature. `now` is in Unix seconds.
pub(crate) fn signature(keys: &Keys, headers: &HeaderMap, body: &[u8], now: i64) -> Result<(), Refusal> {
    let Some(api_key) = text(headers, "x-api-key") else {
        let message = "X-API-KEY is missing; send the api_key this server was given";
        return Err(Refusal::unauthorized("missing_api_key", message));
    };
    let Some(signer) = keys.signer(api_key) else {
        let message = "X-API-KEY is not a key of this server; send the api_key of one of the [[keys]] in its file";
        return Err(Refusal::unauthorized("unknown_api_key", message));
    };
    let Some(timestamp) = text(headers, "x-timestamp") else {
        let message = "X-TIMESTAMP is missing; send the time of this try in Unix seconds";
        return Err(Refusal::unauthorized("missing_timestamp", message));
    };
    let is_number = !timestamp.is_empty() && timestamp.len() <= 18 && timestamp.bytes().all(|b| b.is_ascii_digit());
    let Some(sent) = timestamp.parse::<i64>().ok().filter(|_| is_number) else {
        let message = format!("X-TIMESTAMP is {}; send Unix seconds as plain digits", shown(timestamp));
        return Err(Refusal::unauthorized("malformed_timestamp", message));
    };
    let Some(signature) = text(headers, "x-signature") else {
        let message = "X-SIGNATURE is missing; send the HMAC-SHA256 of timestamp, a dot and the body, in hex";
        return Err(Refusal::unauthorized("missing_signature", message));
    };
    if signature.len() != 64 || !signature.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        let message = format!("X-SIGNATURE has {} characters; send 64 lower-case hex digits", signature.chars().count());
        return Err(Refusal::unauthorized("malformed_signature", message));
    }
    let apart = sent.abs_diff(now);
    if apart > SKEW.as_secs() {
        let message = format!(
            "X-TIMESTAMP says {}, this server's clock {}: {apart} s apart, allowed are {}; set the clocks right, and sign each try \
             with the time of that try",
            clock(sent),
            clock(now),
            SKEW.as_secs()
        );
        return Err(Refusal::unauthorized("clock_skew", message));
    }
    if !signer.verify(timestamp, body, signature) {
        let message = "X-SIGNATURE is not the signature of this timestamp and these body bytes; check the secret key, and that \
                       nothing on the way changes the body";
        return Err(Refusal::unauthorized("bad_signature", message));
    }
    Ok(())
}

/// The id the sender gave the batch.
pub(crate) fn batch_id(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let refuse = |found: String| {
        let message = format!("Idempotency-Key {found}; send 1 to {LONGEST_ID} visible ASCII characters, or leave it out");
        Err(Refusal::new(StatusCode::BAD_REQUEST, "malformed_idempotency_key", message))
    };
    let Ok(id) = value.to_str().map(str::trim) else { return refuse("has characters beyond ASCII".to_owned()) };
    match id.len() {
        0 => refuse("is empty".to_owned()),
        1..=LONGEST_ID => Ok(Some(id.to_owned())),
        length => refuse(format!("has {length} characters")),
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let value = headers.get(name)?;
    // What is no text is no key, time or signature either; it is found wrong as such.
    Some(value.to_str().unwrap_or("\u{fffd}").trim())
}

fn clock(seconds: i64) -> String {
    match jiff::Timestamp::from_second(seconds) {
        Ok(time) => format!("{time} ({seconds})"),
        Err(_) => seconds.to_string(),
    }
}

/// Something of the sender's, for a message: quoted, and not endless.
fn shown(text: &str) -> String {
    let short: String = text.chars().take(100).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("{short:?}{more}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::*;
    use crate::apcloudy::Signer;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    #[test]
    fn address_method_and_type_are_checked_in_this_order() {
        for (method, path, pairs, expected) in [
            ("POST", "/api/webhook/consume", &[("content-type", "application/json")][..], Ok(())),
            ("POST", "/run/ok/api/webhook/consume", &[("content-type", "Application/JSON; charset=utf-8")], Ok(())),
            ("POST", ENDPOINT, &[("content-type", "application/json"), ("content-encoding", "identity")], Ok(())),
            ("GET", "/", &[], Err((404, "\"/\""))),
            ("POST", "/api/webhook/consume/", &[("content-type", "application/json")], Err((404, ENDPOINT))),
            ("GET", ENDPOINT, &[], Err((405, "POST"))),
            ("POST", ENDPOINT, &[], Err((415, "missing"))),
            ("POST", ENDPOINT, &[("content-type", "text/plain")], Err((415, "text/plain"))),
            ("POST", ENDPOINT, &[("content-type", "application/jsonl")], Err((415, "application/jsonl"))),
            ("POST", ENDPOINT, &[("content-type", "application/json"), ("content-encoding", "gzip")], Err((415, "gzip"))),
        ] {
            let asked = Head {
                peer: std::net::Ipv4Addr::LOCALHOST.into(),
                method: method.parse().unwrap(),
                path: path.to_owned(),
                query: String::new(),
                headers: headers(pairs),
            };
            match (head(&asked), expected) {
                (Ok(()), Ok(())) => {}
                (Err(refusal), Err((status, part))) => {
                    assert_eq!(refusal.status.as_u16(), status, "{refusal:?}");
                    assert!(refusal.message.contains(part), "{refusal:?}");
                }
                other => panic!("{method} {path}: {other:?}"),
            }
        }
    }

    #[test]
    fn key_clock_and_signature_are_checked_in_this_order() {
        let keys = Keys::parse(super::super::file::SAMPLE, std::path::Path::new("serve.toml")).unwrap();
        let body = b"{\"x\": 1}";
        let now = 1_700_000_000;
        let signer = Signer::new("sample-secret".into());
        let good = signer.sign("1700000000", body);
        let (early, late) = (signer.sign("1699999699", body), signer.sign("1700000301", body));
        let (key, time) = (("x-api-key", "sample-key"), ("x-timestamp", "1700000000"));
        for (pairs, expected) in [
            (vec![key, time, ("x-signature", &*good)], None),
            (vec![], Some("missing_api_key")),
            (vec![("x-api-key", "canary"), time, ("x-signature", &good)], Some("unknown_api_key")),
            (vec![key, ("x-signature", &good)], Some("missing_timestamp")),
            (vec![key, ("x-timestamp", "+1700000000"), ("x-signature", &good)], Some("malformed_timestamp")),
            (vec![key, ("x-timestamp", "1700000000.5"), ("x-signature", &good)], Some("malformed_timestamp")),
            (vec![key, ("x-timestamp", "99999999999999999999"), ("x-signature", &good)], Some("malformed_timestamp")),
            (vec![key, ("x-timestamp", "2023-11-14")], Some("malformed_timestamp")),
            (vec![key, time], Some("missing_signature")),
            (vec![key, time, ("x-signature", "e0")], Some("malformed_signature")),
            (vec![key, time, ("x-signature", &good.to_uppercase())], Some("malformed_signature")),
            (vec![key, ("x-timestamp", "1699999699"), ("x-signature", &early)], Some("clock_skew")),
            (vec![key, ("x-timestamp", "1700000301"), ("x-signature", &late)], Some("clock_skew")),
            (vec![key, ("x-timestamp", "1699999999"), ("x-signature", &good)], Some("bad_signature")),
            (vec![key, ("x-timestamp", "999999999999999999"), ("x-signature", &good)], Some("clock_skew")),
        ] {
            let found = signature(&keys, &headers(&pairs), body, now).err();
            assert_eq!(found.as_ref().map(|refusal| refusal.code), expected, "{pairs:?}: {found:?}");
            if let Some(refusal) = found {
                assert_eq!(refusal.status.as_u16(), 401);
                assert!(!refusal.message.contains("canary") && !refusal.message.contains("sample-secret"), "{refusal:?}");
            }
        }
        let edge = signer.sign("1700000300", body);
        let pairs = [key, ("x-timestamp", "1700000300"), ("x-signature", &*edge)];
        assert_eq!(signature(&keys, &headers(&pairs), body, now), Ok(()));
        let skew = signature(&keys, &headers(&pairs), body, now - 1).unwrap_err().message;
        assert!(skew.contains("2023-11-14T22:18:20Z (1700000300)") && skew.contains("1699999999"), "{skew}");
    }

    #[test]
    fn a_batch_id_is_short_visible_text() {
        let id = |value: &str| batch_id(&headers(&[("idempotency-key", value)]));
        assert_eq!(batch_id(&HeaderMap::new()), Ok(None));
        assert_eq!(id("ab-12"), Ok(Some("ab-12".to_owned())));
        assert_eq!(id(&"x".repeat(255)).unwrap().unwrap().len(), 255);
        for (value, part) in [("", "empty"), (&*"x".repeat(256), "256"), ("é", "beyond ASCII")] {
            let refusal = id(value).unwrap_err();
            assert_eq!(refusal.status.as_u16(), 400);
            assert!(refusal.message.contains(part), "{refusal:?}");
        }
    }
}
