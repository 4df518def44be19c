//! What came of one delivery, and what a status says about the next one.
//!
//! Decides by status alone: the body of an answer is for people. Nothing here waits or sends.

use std::time::Duration;

use http::header::{LOCATION, RETRY_AFTER};
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use url::Url;

use crate::web::retry_after::retry_after;

/// Characters of an answer's body that a message shows.
const EXCERPT: usize = 200;

/// What came of one try to deliver a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The other side has the batch.
    Delivered,
    /// Not this time: the same batch may pass later.
    Retry {
        /// The shortest time to wait, when the other side names one. Not capped.
        after: Option<Duration>,
        /// What happened, in one line.
        why: String,
    },
    /// Something in the batch, or its size, is refused: parts of it may pass.
    Split {
        /// What happened, in one line.
        why: String,
    },
    /// The batch is refused whatever its status would say; whether parts of it pass shows when they are tried.
    Reject {
        /// What happened, in one line.
        why: String,
    },
    /// No batch will pass until somebody changes something.
    Fatal {
        /// What happened, in one line.
        why: String,
    },
}

impl Answer {
    /// The answer of a status.
    ///
    /// 2xx is delivered. 3xx (never followed), 408, 409, 425, 429, 5xx and what is no final status at all are tried
    /// again; 429 and 503 after `retry_after`. 400, 413 and 422 are about the batch's contents. Every other 4xx is
    /// about key, address or rights. `excerpt` is what the other side says; its first 200 characters go into `why`.
    #[must_use]
    pub fn of(status: u16, retry_after: Option<Duration>, excerpt: &str) -> Self {
        let why = || describe(status, excerpt);
        match status {
            200..=299 => Self::Delivered,
            429 | 503 => Self::Retry { after: retry_after, why: why() },
            408 | 409 | 425 => Self::Retry { after: None, why: why() },
            400 | 413 | 422 => Self::Split { why: why() },
            401..=499 => Self::Fatal { why: format!("{} ({})", why(), advice(status)) },
            _ => Self::Retry { after: None, why: why() },
        }
    }

    /// The answer of a response. Reads `Retry-After` at the time `now`; of a redirect it tells the host, never the
    /// query.
    #[must_use]
    pub fn of_response(status: StatusCode, headers: &HeaderMap, body: &[u8], now: Timestamp) -> Self {
        if status.is_redirection() {
            return Self::of(status.as_u16(), None, &redirect(headers));
        }
        let wait = headers.get(RETRY_AFTER).and_then(|value| retry_after(value.to_str().ok()?, now));
        Self::of(status.as_u16(), wait, &String::from_utf8_lossy(body))
    }

    /// What happened, unless it was delivered.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Delivered => None,
            Self::Retry { why, .. } | Self::Split { why } | Self::Reject { why } | Self::Fatal { why } => Some(why),
        }
    }

    /// An answer for what went wrong before there was a status.
    pub(super) fn retry(why: impl Into<String>) -> Self {
        Self::Retry { after: None, why: why.into() }
    }
}

/// What to look at when nothing passes.
const fn advice(status: u16) -> &'static str {
    match status {
        401 | 403 => "look at APCLOUDY_API_KEY, APCLOUDY_SECRET_KEY and this machine's clock",
        404 | 405 | 410 => "look at APCLOUDY_URL, the base to which /api/webhook/consume is added, and at JOB_ID",
        407 => "the proxy of the environment asks for a user and a password",
        _ => "look at APCLOUDY_URL, the keys and the account",
    }
}

/// `HTTP 429 Too Many Requests: what the body says`.
fn describe(status: u16, excerpt: &str) -> String {
    let name = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    let mut text = format!("HTTP {status}");
    if let Some(name) = name {
        text.push(' ');
        text.push_str(name);
    }
    let excerpt = one_line(excerpt);
    if !excerpt.is_empty() {
        text.push_str(": ");
        text.push_str(&excerpt);
    }
    text
}

fn redirect(headers: &HeaderMap) -> String {
    let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
    let target = match location.map(Url::parse) {
        None => return "redirects are not followed".to_owned(),
        Some(Ok(url)) => match (url.host_str(), url.port()) {
            (Some(host), Some(port)) => format!("{host}:{port}"),
            (Some(host), None) => host.to_owned(),
            (None, _) => "an address without a host".to_owned(),
        },
        Some(Err(_)) => "the same host".to_owned(),
    };
    format!("a redirect to {target} is not followed; set APCLOUDY_URL to the address that answers itself")
}

/// The first characters of a text, in one line: white space and control characters become single spaces.
fn one_line(text: &str) -> String {
    let mut line = String::new();
    let mut length = 0;
    let mut gap = false;
    for c in text.chars() {
        if c.is_control() || c.is_whitespace() || is_invisible(c) {
            gap = length > 0;
            continue;
        }
        let needed = if gap { 2 } else { 1 };
        if length + needed > EXCERPT {
            break;
        }
        if std::mem::take(&mut gap) {
            line.push(' ');
        }
        line.push(c);
        length += needed;
    }
    line
}

/// Characters that turn or hide what stands beside them in a terminal.
const fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn now() -> Timestamp {
        "2026-03-03T10:00:00Z".parse().unwrap()
    }

    fn answer(status: u16, headers: &[(&'static str, &str)], body: &str) -> Answer {
        let headers = headers
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).unwrap()));
        Answer::of_response(StatusCode::from_u16(status).unwrap(), &headers.collect(), body.as_bytes(), now())
    }

    #[test]
    fn every_status_has_its_answer() {
        for status in 100..=999 {
            let kind = match answer(status, &[], "x") {
                Answer::Delivered => "delivered",
                Answer::Retry { after: None, .. } => "retry",
                Answer::Split { .. } => "split",
                Answer::Fatal { .. } => "fatal",
                other => panic!("{status}: {other:?}"),
            };
            let expected = match status {
                200..=299 => "delivered",
                300..=399 => "retry",
                400 | 413 | 422 => "split",
                408 | 409 | 425 | 429 => "retry",
                400..=499 => "fatal",
                _ => "retry",
            };
            assert_eq!(kind, expected, "{status}");
        }
        for (status, part) in
            [(401, "APCLOUDY_SECRET_KEY"), (403, "APCLOUDY_API_KEY"), (404, "APCLOUDY_URL"), (407, "proxy"), (415, "account")]
        {
            let Answer::Fatal { why } = answer(status, &[], "no") else { panic!("{status}") };
            assert!(why.contains(": no (") && why.contains(part), "{why}");
        }
    }

    #[test]
    fn a_wait_is_honoured_where_it_has_a_meaning() {
        let seconds = |n| Some(Duration::from_secs(n));
        for (status, value, expected) in [
            (429, "7", seconds(7)),
            (503, " 120 ", seconds(120)),
            (429, "0", seconds(0)),
            (503, "Tue, 03 Mar 2026 10:00:30 GMT", seconds(30)),
            (503, "Tuesday, 03-Mar-26 10:01:00 GMT", seconds(60)),
            (503, "Tue Mar  3 10:00:05 2026", seconds(5)),
            (429, "Tue, 03 Mar 2026 09:00:00 GMT", seconds(0)),
            (429, "soon", None),
            (429, "-5", None),
            (429, "99999999999999999999999", None),
            (500, "7", None),
            (409, "7", None),
            (302, "7", None),
        ] {
            let Answer::Retry { after, .. } = answer(status, &[("retry-after", value)], "") else { panic!("{status}") };
            assert_eq!(after, expected, "{status} {value}");
        }
    }

    #[test]
    fn the_reason_is_one_line_of_bounded_length() {
        for (status, body, why) in [
            (429, "", "HTTP 429 Too Many Requests"),
            (429, "slow down", "HTTP 429 Too Many Requests: slow down"),
            (599, " \n ", "HTTP 599"),
            (500, "<html>\r\n\t<b>oh\u{0}no</b>\u{202e}\n", "HTTP 500 Internal Server Error: <html> <b>oh no</b>"),
            (422, "{\"error\": \"item 3\"}", "HTTP 422 Unprocessable Entity: {\"error\": \"item 3\"}"),
        ] {
            assert_eq!(answer(status, &[], body).why(), Some(why));
        }
        let long = "ж".repeat(500);
        let Some(why) = answer(400, &[], &long).why().map(str::to_owned) else { panic!() };
        assert_eq!(why, format!("HTTP 400 Bad Request: {}", "ж".repeat(200)));
        assert_eq!(Answer::Delivered.why(), None);
    }

    #[test]
    fn a_redirect_names_the_host_and_nothing_else_of_the_address() {
        for (location, shown) in [
            ("https://user:canary@login.example:8443/canary?key=canary#canary", "to login.example:8443 "),
            ("http://other.example", "to other.example "),
            ("/canary?canary", "to the same host "),
            ("data:canary", "to an address without a host "),
        ] {
            for status in [301, 302, 303, 304, 307, 308] {
                let answer = answer(status, &[("location", location)], "canary");
                let why = answer.why().unwrap();
                assert!(why.starts_with(&format!("HTTP {status} ")) && why.contains(shown), "{why}");
                assert!(!why.contains("canary"), "{why}");
            }
        }
        assert_eq!(answer(304, &[], "").why(), Some("HTTP 304 Not Modified: redirects are not followed"));
    }

    proptest! {
        #[test]
        fn any_response_is_answered_in_one_line(
            status in 100u16..1000,
            value in proptest::collection::vec(0x20u8..=0xff, 0..30),
            body in proptest::collection::vec(any::<u8>(), 0..600),
        ) {
            let mut headers = HeaderMap::new();
            for name in [RETRY_AFTER, LOCATION] {
                if let Ok(value) = HeaderValue::from_bytes(&value) {
                    headers.insert(name, value);
                }
            }
            let answer = Answer::of_response(StatusCode::from_u16(status).unwrap(), &headers, &body, now());
            let why = answer.why().unwrap_or_default();
            prop_assert!(!why.chars().any(char::is_control));
            prop_assert!(why.chars().count() <= 500);
        }
    }
}
