//! `Retry-After` and the date forms of HTTP (RFC 9110 5.6.7 and 10.2.3).
//!
//! Reads the three date forms and the near misses that servers send; the caller gives the clock and applies its own cap.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// How far ahead a two-digit year may lie before it means the past century.
const TWO_DIGIT_YEAR_AHEAD: i16 = 50;

/// Reads a `Retry-After` value: how long to wait from `now`.
///
/// A date in the past gives zero. `None` for everything that is neither a number of seconds nor a date. The value is
/// not capped: a server may ask for any time.
#[must_use]
pub fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim_matches([' ', '\t']);
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        return value.parse().ok().map(Duration::from_secs);
    }
    let at = parse_http_date(value, now)?;
    Some(Duration::try_from(at.duration_since(now)).unwrap_or(Duration::ZERO))
}

/// Reads a date in one of the three forms of HTTP, in any case, with `GMT`, `UTC` or a numeric zone.
///
/// `now` only decides the century of a two-digit year.
#[must_use]
pub fn parse_http_date(value: &str, now: Timestamp) -> Option<Timestamp> {
    let mut words = value.split([' ', ',']).filter(|word| !word.is_empty());
    let weekday = words.next()?;
    if weekday.len() < 3 || !weekday.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return None;
    }
    let second = words.next()?;
    if let Some(month) = month(second) {
        // asctime: Sun Nov  6 08:49:37 1994
        let day = words.next()?.parse().ok()?;
        let (clock, year) = (words.next()?, words.next()?.parse().ok()?);
        return words.next().is_none().then_some(())?.at(year, month, day, clock, 0);
    }
    let (day, month_name, year) = match second.split_once('-') {
        Some((day, rest)) => {
            let (month, year) = rest.split_once('-')?;
            (day, month, year)
        }
        None => (second, words.next()?, words.next()?),
    };
    let year_number: i16 = year.parse().ok()?;
    let year_number = if year.len() == 2 { with_century(year_number, now) } else { year_number };
    let clock = words.next()?;
    let offset = zone_seconds(words.next()?)?;
    words.next().is_none().then_some(())?.at(year_number, month(month_name)?, day.parse().ok()?, clock, offset)
}

/// Puts the checked parts of a date together.
trait At {
    fn at(self, year: i16, month: i8, day: i8, clock: &str, offset_seconds: i64) -> Option<Timestamp>;
}

impl At for () {
    fn at(self, year: i16, month: i8, day: i8, clock: &str, offset_seconds: i64) -> Option<Timestamp> {
        let mut parts = clock.split(':');
        let (hour, minute, second) = (two_digits(parts.next()?)?, two_digits(parts.next()?)?, two_digits(parts.next()?)?);
        if parts.next().is_some() {
            return None;
        }
        // A leap second counts as the one before it.
        let second = if second == 60 { 59 } else { second };
        let civil = DateTime::new(year, month, day, hour, minute, second, 0).ok()?;
        let utc = TimeZone::UTC.to_timestamp(civil).ok()?;
        Timestamp::from_second(utc.as_second().checked_sub(offset_seconds)?).ok()
    }
}

fn two_digits(text: &str) -> Option<i8> {
    (text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

fn with_century(two_digits: i16, now: Timestamp) -> i16 {
    let this_year = TimeZone::UTC.to_datetime(now).year();
    let candidate = this_year - this_year.rem_euclid(100) + two_digits;
    if candidate > this_year + TWO_DIGIT_YEAR_AHEAD { candidate - 100 } else { candidate }
}

fn zone_seconds(zone: &str) -> Option<i64> {
    if ["gmt", "utc", "ut", "z"].iter().any(|name| zone.eq_ignore_ascii_case(name)) {
        return Some(0);
    }
    let (sign, digits) = match zone.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    if digits.len() != 4 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: i64 = digits.parse().ok()?;
    Some(sign * (number / 100 * 3600 + number % 100 * 60))
}

/// The number of a month named by its first three letters.
pub(super) fn month(name: &str) -> Option<i8> {
    const NAMES: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let at = NAMES.iter().position(|known| name.eq_ignore_ascii_case(known))?;
    i8::try_from(at + 1).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn now() -> Timestamp {
        "2026-03-03T10:00:00Z".parse().unwrap()
    }

    #[test]
    fn every_value_of_the_collection_is_read() {
        let data: Value = serde_json::from_str(include_str!("../../tests/data/http_retry_after.json")).unwrap();
        let cases = data["cases"].as_array().unwrap();
        assert_eq!(cases.len(), 51);
        for case in cases {
            let value = case["value"].as_str().unwrap();
            let ours = retry_after(value, now()).map(|wait| wait.as_secs());
            assert_eq!(ours, case["expected_seconds"].as_u64(), "{} {value:?}", case["id"]);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_answered(value in "\\PC{0,40}", digits in "[0-9:+, GMTtuemarUC-]{0,40}") {
            let _ = retry_after(&value, now());
            let _ = retry_after(&digits, now());
            let _ = retry_after(&format!("Tue, {digits}"), now());
        }
    }
}
