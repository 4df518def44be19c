//! Answers: a message or a refusal as JSON, with the headers of the wire contract, sections 1.3 and 3.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderName, HeaderValue, VARY};
use http::{HeaderMap, StatusCode};
use serde::Serialize;

use crate::http_server::Reply;
use crate::plane::model::refusal::Refusal;

const JSON: &str = "application/json";
const REASON: HeaderName = HeaderName::from_static("spinneret-reason");
const RETRY_AFTER: HeaderName = HeaderName::from_static("spinneret-retry-after-ms");
/// Bodies above these bytes are packed for who takes it.
const PACKED_ABOVE: usize = 4096;

/// The answer to a call that succeeded.
pub(super) fn success(message: &impl Serialize, headers: &HeaderMap) -> Reply {
    let Ok(body) = serde_json::to_vec(message) else {
        // Messages are plain values with text keys; one that cannot be written is a fault of ours.
        return refusal(&Refusal::internal());
    };
    if body.len() <= PACKED_ABOVE || !takes_gzip(headers) {
        return Reply::new(StatusCode::OK, JSON, body);
    }
    let mut packer = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
    match packer.write_all(&body).and_then(|()| packer.finish()) {
        Ok(packed) => {
            let mut reply = Reply::new(StatusCode::OK, JSON, packed);
            reply.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            reply.headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
            reply
        }
        Err(_) => Reply::new(StatusCode::OK, JSON, body),
    }
}

/// The answer to a call that was refused.
pub(super) fn refusal(refusal: &Refusal) -> Reply {
    let status = StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut reply = Reply::new(status, JSON, refusal.body());
    if let Some(reason) = refusal.reason {
        reply.headers.insert(REASON, HeaderValue::from_static(reason.name()));
    }
    if let Some(wait) = refusal.retry_after {
        reply.headers.insert(RETRY_AFTER, HeaderValue::from(wait));
    }
    reply
}

/// Whether gzip is among the codings that are taken (RFC 9110, section 12.5.3).
fn takes_gzip(headers: &HeaderMap) -> bool {
    let codings = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    codings.flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').map_or((coding, ""), |(name, weight)| (name, weight.trim()));
        let is_none =
            weight.split_once('=').and_then(|(_, weight)| weight.trim().parse().ok()).is_some_and(|weight: f32| weight <= 0.0);
        name.trim().eq_ignore_ascii_case("gzip") && !is_none
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::*;

    fn accepting(value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(value))])
    }

    #[test]
    fn gzip_is_taken_from_who_names_it_with_a_weight() {
        for value in ["gzip", "br, GZIP", "gzip;q=0.5", "gzip ; q=1, identity;q=0"] {
            assert!(takes_gzip(&accepting(value)), "{value}");
        }
        for value in ["", "br", "gzip;q=0", "gzip; q=0.000", "x-gzip2", "identity"] {
            assert!(!takes_gzip(&accepting(value)), "{value}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }

    #[test]
    fn only_what_is_above_4096_bytes_is_packed() {
        for (length, packed) in [(4094, false), (4095, true)] {
            let text = "x".repeat(length);
            let reply = success(&text, &accepting("gzip"));
            assert_eq!(reply.headers.contains_key(CONTENT_ENCODING), packed, "{length} and two quotes");
            assert!(!success(&text, &HeaderMap::new()).headers.contains_key(CONTENT_ENCODING));
        }
    }

    #[test]
    fn a_refusal_has_its_reason_and_hint_in_the_headers_and_none_where_there_is_none() {
        let reply = refusal(&Refusal::site_paused("shop"));
        assert_eq!(reply.status, 503);
        assert_eq!(reply.headers["spinneret-reason"], "site_paused");
        assert_eq!(reply.headers["spinneret-retry-after-ms"], "30000");
        let reply = refusal(&Refusal::malformed("x"));
        assert_eq!(reply.status, 400);
        assert!(!reply.headers.contains_key(REASON) && !reply.headers.contains_key(RETRY_AFTER));
        assert_eq!(refusal(&Refusal::canceled()).status.as_u16(), 499);
    }
}
