//! Reads one `Set-Cookie` value and the dates in it (RFC 6265 5.1.1 and 5.2).
//!
//! Knows nothing of the request: scope and storage are decided by the jar.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::retry_after::month;

/// Longest name and value together, in bytes (RFC 6265 6.1).
const MAX_BYTES: usize = 4096;

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
    /// Reads a header value; `None` when it sets no cookie.
    pub(super) fn parse(header: &str, now: Timestamp) -> Option<Self> {
        let (pair, attributes) = header.split_once(';').unwrap_or((header, ""));
        let (name, value) = pair.split_once('=')?;
        let (name, value) = (trimmed(name), trimmed(value));
        let is_control = |c: char| c.is_control() && c != '\t';
        if name.is_empty() || name.len() + value.len() > MAX_BYTES || name.contains(is_control) || value.contains(is_control) {
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
        };
        let (mut expires, mut max_age) = (None, None);
        for attribute in attributes.split(';') {
            let (name, value) = attribute.split_once('=').unwrap_or((attribute, ""));
            let value = trimmed(value);
            match trimmed(name).to_ascii_lowercase().as_str() {
                "expires" => expires = parse_cookie_date(value).or(expires),
                "max-age" => max_age = end_of_age(value, now).or(max_age),
                "domain" if !value.is_empty() => {
                    cookie.domain = Some(value.strip_prefix('.').unwrap_or(value).to_lowercase());
                }
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
    text.trim_matches([' ', '\t', '\r', '\n'])
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
        if clock.is_none() && let Some(found) = clock_token(token) {
            clock = Some(found);
        } else if day.is_none() && let Some(found) = leading_number(token, 1, 2) {
            day = i8::try_from(found).ok();
        } else if named_month.is_none() && let Some(found) = token.get(..3).and_then(month) {
            named_month = Some(found);
        } else if year.is_none() && let Some(found) = leading_number(token, 2, 4) {
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
