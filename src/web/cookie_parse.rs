//! Reads one `Set-Cookie` value and the dates in it (RFC 6265bis 5.1.1 and 5.6).
//!
//! Knows nothing of the request: scope and storage are decided by the jar. Nameless cookies are cookies, as in browsers.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::cookie_scope::canonical_host;
use super::retry_after::month;

/// Longest name and value together, in bytes.
const MAX_BYTES: usize = 4096;

/// Longest value of an attribute that is looked at, in bytes.
const MAX_ATTRIBUTE_BYTES: usize = 1024;

/// The parts of a `Set-Cookie` value.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct SetCookie {
    pub(super) name: String,
    pub(super) value: String,
    /// The Domain attribute without its leading dot, in lower case.
    pub(super) domain: Option<String>,
    /// The Path attribute when it is an absolute path.
    pub(super) path: Option<String>,
    pub(super) transport: Transport,
    pub(super) access: Access,
    /// When the cookie ends; `None` with the session.
    pub(super) expires: Option<Timestamp>,
    /// How name and value go back into bytes.
    pub(super) spelling: Spelling,
}

/// What the characters of a name and a value stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    /// Their bytes in UTF-8.
    Text,
    /// One byte each: the header was no UTF-8, and goes back as it came.
    Bytes,
}

/// Over which connections a cookie may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    Any,
    SecureOnly,
}

/// Who may read a cookie. A crawler only uses HTTP; the flag is kept for the saved jar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Any,
    HttpOnly,
}

impl SetCookie {
    /// Reads the bytes of a header value; `None` when it sets no cookie.
    pub(super) fn from_bytes(header: &[u8], now: Timestamp) -> Option<Self> {
        match std::str::from_utf8(header) {
            Ok(text) => Self::parse(text, now),
            Err(_) => {
                let text: String = header.iter().copied().map(char::from).collect();
                Self::parse(&text, now).map(|cookie| Self { spelling: Spelling::Bytes, ..cookie })
            }
        }
    }

    /// Reads a header value; `None` when it sets no cookie.
    fn parse(header: &str, now: Timestamp) -> Option<Self> {
        if header.contains(|c: char| c.is_ascii_control() && c != '\t') {
            return None;
        }
        let (pair, attributes) = header.split_once(';').unwrap_or((header, ""));
        // Without an equals sign all of it is the value.
        let (name, value) = pair.split_once('=').unwrap_or(("", pair));
        let (name, value) = (trimmed(name), trimmed(value));
        if !(1..=MAX_BYTES).contains(&(name.len() + value.len())) {
            return None;
        }
        let mut cookie = Self {
            name: name.to_owned(),
            value: value.to_owned(),
            domain: None,
            path: None,
            transport: Transport::Any,
            access: Access::Any,
            expires: None,
            spelling: Spelling::Text,
        };
        let (mut expires, mut max_age) = (None, None);
        for attribute in attributes.split(';') {
            let (name, value) = attribute.split_once('=').unwrap_or((attribute, ""));
            let value = trimmed(value);
            if value.len() > MAX_ATTRIBUTE_BYTES {
                continue;
            }
            match trimmed(name).to_ascii_lowercase().as_str() {
                "expires" => expires = parse_cookie_date(value).or(expires),
                "max-age" => max_age = end_of_age(value, now).or(max_age),
                "domain" if !matches!(value, "" | ".") => cookie.domain = Some(canonical_host(value)),
                "path" => cookie.path = value.starts_with('/').then(|| value.to_owned()),
                "secure" => cookie.transport = Transport::SecureOnly,
                "httponly" => cookie.access = Access::HttpOnly,
                _ => {}
            }
        }
        cookie.expires = max_age.or(expires);
        Some(cookie)
    }
}

fn trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

/// The end of a Max-Age: the beginning of time for zero and below, at most the last representable instant.
fn end_of_age(value: &str, now: Timestamp) -> Option<Timestamp> {
    let digits = value.strip_prefix('-').unwrap_or(value);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if value.starts_with('-') || digits.bytes().all(|byte| byte == b'0') {
        return Some(Timestamp::UNIX_EPOCH);
    }
    let seconds: i64 = digits.parse().unwrap_or(i64::MAX);
    let end = now.as_second().saturating_add(seconds);
    Some(Timestamp::from_second(end).unwrap_or(Timestamp::MAX))
}

/// Reads a cookie date: any order of clock, day, month and year between delimiters.
pub(super) fn parse_cookie_date(text: &str) -> Option<Timestamp> {
    let is_delimiter = |c: char| !(c.is_alphanumeric() || c == ':' || !c.is_ascii()) || matches!(c, '\u{7f}');
    let (mut clock, mut day, mut named_month, mut year) = (None, None, None, None);
    for token in text.split(is_delimiter).filter(|token| !token.is_empty()) {
        if clock.is_none()
            && let Some(found) = clock_token(token)
        {
            clock = Some(found);
        } else if day.is_none()
            && let Some(found) = leading_number(token, 1, 2)
        {
            day = i8::try_from(found).ok();
        } else if named_month.is_none()
            && let Some(found) = token.get(..3).and_then(month)
        {
            named_month = Some(found);
        } else if year.is_none()
            && let Some(found) = leading_number(token, 2, 4)
        {
            year = i16::try_from(found).ok();
        }
    }
    let (hour, minute, second) = clock?;
    let year = match year? {
        short @ 70..=99 => short + 1900,
        short @ 0..=69 => short + 2000,
        full => full,
    };
    if year < 1601 {
        return None;
    }
    let civil = DateTime::new(year, named_month?, day?, hour, minute, second, 0).ok()?;
    TimeZone::UTC.to_timestamp(civil).ok()
}

fn clock_token(token: &str) -> Option<(i8, i8, i8)> {
    let (hour, rest) = token.split_once(':')?;
    let (minute, second) = rest.split_once(':')?;
    let whole = |text: &str| (text.bytes().all(|byte| byte.is_ascii_digit())).then(|| leading_number(text, 1, 2))?;
    let (hour, minute, second) = (whole(hour)?, whole(minute)?, leading_number(second, 1, 2)?);
    Some((i8::try_from(hour).ok()?, i8::try_from(minute).ok()?, i8::try_from(second).ok()?))
}

/// The number at the start of a token that has so many digits, with anything but a digit after it.
fn leading_number(token: &str, least: usize, most: usize) -> Option<u16> {
    let digits = token.bytes().take_while(u8::is_ascii_digit).count();
    if !(least..=most).contains(&digits) {
        return None;
    }
    token.get(..digits)?.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use proptest::prelude::*;
    use serde_json::Value;

    use super::super::retry_after::parse_http_date;
    use super::*;

    #[test]
    fn every_date_of_the_collection_is_read() {
        let data: Value = serde_json::from_str(include_str!("../../tests/data/cookie_dates.json")).unwrap();
        let cases = data["cases"].as_array().unwrap();
        assert_eq!(cases.len(), 135);
        let mut wrong = Vec::new();
        for case in cases {
            let text = case["input"].as_str().unwrap();
            let ours = parse_cookie_date(text);
            let expected = case["expected"].as_str().map(|date| parse_http_date(date, Timestamp::UNIX_EPOCH).unwrap());
            if ours != expected {
                wrong.push(format!("{case} {ours:?}"));
            }
        }
        assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    }

    /// Cases that are answered otherwise, with the reason.
    const EXCEPTIONS: &[(&str, &str)] = &[
        ("parse-030", "a header that begins with an equals sign has no name, whatever follows (RFC 6265bis 5.6)"),
        ("parse-032", "asked for in the older mode: without an equals sign all of it is the value (RFC 6265bis 5.6)"),
    ];

    #[test]
    fn every_header_of_the_collection_is_taken_apart() {
        let data: Value = serde_json::from_str(include_str!("../../tests/data/cookie_parse.json")).unwrap();
        let cases = data["cases"].as_array().unwrap();
        assert_eq!(cases.len(), 39);
        let mut report = Vec::new();
        for case in cases {
            let id = case["id"].as_str().unwrap();
            let header = match case["input"].as_str() {
                Some(header) => header.to_owned(),
                None => {
                    let repeat = &case["repeat"];
                    let times = usize::try_from(repeat[1].as_u64().unwrap()).unwrap();
                    case["input_template"].as_str().unwrap().replace("{R}", &repeat[0].as_str().unwrap().repeat(times))
                }
            };
            let problem = difference(SetCookie::parse(&header, now()).as_ref(), &case["expected"]);
            if problem.is_some() != EXCEPTIONS.iter().any(|(known, _)| *known == id) {
                report.push(format!("{id}: {problem:?}, expected {}", case["expected"]));
            }
        }
        assert!(report.is_empty(), "{} cases:\n{}", report.len(), report.join("\n"));
    }

    fn now() -> Timestamp {
        "2026-03-03T10:00:00Z".parse().unwrap()
    }

    fn difference(ours: Option<&SetCookie>, expected: &Value) -> Option<String> {
        let (Some(ours), Some(expected)) = (ours, expected.as_object()) else {
            let same = ours.is_none() && expected.is_null();
            return (!same).then(|| format!("taken: {}", ours.is_some()));
        };
        for (key, value) in expected {
            let same = match key.as_str() {
                "name" => value == &ours.name,
                "value" => value == &ours.value,
                "domain" => value.as_str() == ours.domain.as_deref(),
                "path" => value.as_str() == ours.path.as_deref(),
                "secure" => value.as_bool() == Some(ours.transport == Transport::SecureOnly),
                "http_only" => value.as_bool() == Some(ours.access == Access::HttpOnly),
                // The age goes before the date.
                "expires" if expected.contains_key("max_age") => true,
                "expires" => value.as_str().map(|date| date.parse().unwrap()) == ours.expires,
                "max_age" => {
                    let seconds = value.as_i64().unwrap();
                    let end = if seconds > 0 { now().as_second() + seconds } else { 0 };
                    ours.expires == Some(Timestamp::from_second(end).unwrap())
                }
                // A crawler has no cross-site context; unknown attributes are dropped.
                "same_site" | "extensions" => true,
                other => panic!("{other}"),
            };
            if !same {
                return Some(format!("{key} of {:?}={:?} is otherwise", ours.name, ours.value));
            }
        }
        None
    }

    #[test]
    fn the_age_wins_over_the_date_and_is_bounded() {
        let now = now();
        let end = |header: &str| SetCookie::parse(header, now).unwrap().expires;
        assert_eq!(
            end("a=b; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT"),
            Timestamp::from_second(now.as_second() + 60).ok()
        );
        assert_eq!(end("a=b; Max-Age=99999999999999999999"), Some(Timestamp::MAX));
        assert_eq!(end("a=b; Max-Age=-1"), Some(Timestamp::UNIX_EPOCH));
        assert_eq!(end("a=b; Max-Age=1x"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in "\\PC{0,60}", date in "[0-9:a-zA-Zé ,-]{0,40}") {
            let _ = SetCookie::parse(&text, Timestamp::UNIX_EPOCH);
            let _ = SetCookie::parse(&format!("a=b; Expires={date}; Max-Age={date}"), Timestamp::UNIX_EPOCH);
        }
    }
}
