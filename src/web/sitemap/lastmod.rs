//! The dates of sitemaps and feeds: W3C's profile of ISO 8601 with its common misspellings, and the dates of mail.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::rfc2822;
use jiff::tz::TimeZone;

/// Reads a `lastmod`, `pubDate` or `updated`: `2024`, `2024-02`, `2024-02-03`, with a time and a zone, or a date as in
/// mail (RFC 2822). What is left out is the earliest possible, a time without a zone is in UTC. `None` for anything else,
/// also for days and hours that do not exist.
#[must_use]
pub fn parse_lastmod(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    w3c(text).or_else(|| rfc2822::DateTimeParser::new().relaxed_weekday(true).parse_timestamp(text).ok())
}

fn w3c(text: &str) -> Option<Timestamp> {
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) => (text.get(..at)?, Some(text.get(at + 1..)?.trim_start())),
        None => (text, None),
    };
    let mut parts = date.split('-');
    let year = digits(parts.next()?, 4)?;
    let month = parts.next().map_or(Some(1), |month| digits(month, 2))?;
    let day = parts.next().map_or(Some(1), |day| digits(day, 2))?;
    if parts.next().is_some() || (time.is_some() && date.len() != 10) {
        return None;
    }
    let (clock, offset) = time.map_or(Some(("00:00", 0)), split_zone)?;
    let mut parts = clock.split(':');
    let (hour, minute) = (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let (second, nanosecond) = parts.next().map_or(Some((0, 0)), seconds)?;
    if parts.next().is_some() {
        return None;
    }
    let small = |number: i32| i8::try_from(number).ok();
    let year = i16::try_from(year).ok()?;
    let civil = DateTime::new(year, small(month)?, small(day)?, small(hour)?, small(minute)?, small(second)?, nanosecond).ok()?;
    let utc = TimeZone::UTC.to_timestamp(civil).ok()?;
    utc.checked_sub(jiff::SignedDuration::from_secs(offset)).ok()
}

/// A clock and the seconds its zone is ahead of UTC.
fn split_zone(time: &str) -> Option<(&str, i64)> {
    if let Some(clock) = time.strip_suffix(['Z', 'z']) {
        return Some((clock.trim_end(), 0));
    }
    let Some(at) = time.find(['+', '-']) else {
        return Some((time, 0));
    };
    let (clock, zone) = time.split_at_checked(at)?;
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let zone = zone.get(1..)?;
    let (hours, minutes) = match zone.split_once(':') {
        Some((hours, minutes)) => (digits(hours, 2)?, digits(minutes, 2)?),
        None if zone.len() == 2 => (digits(zone, 2)?, 0),
        None => (digits(zone.get(..2)?, 2)?, digits(zone.get(2..)?, 2)?),
    };
    let is_zone = hours < 24 && minutes < 60;
    is_zone.then_some((clock.trim_end(), sign * (i64::from(hours) * 3600 + i64::from(minutes) * 60)))
}

/// Seconds with a fraction, of which nine digits count. A leap second counts as the one before it.
fn seconds(text: &str) -> Option<(i32, i32)> {
    let (whole, fraction) = text.split_once(['.', ',']).unwrap_or((text, "0"));
    let whole = digits(whole, 2)?;
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let nine = format!("{:0<9.9}", fraction);
    Some((if whole == 60 { 59 } else { whole }, nine.parse().ok()?))
}

fn digits(text: &str, count: usize) -> Option<i32> {
    (text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn dates_are_read_in_all_their_spellings() {
        for (text, expected) in [
            ("2024-02-03T04:05:06.5+01", "2024-02-03T03:05:06.5Z"),
            ("2024-02-03 04:05:06 +01:00", "2024-02-03T03:05:06Z"),
            ("2024-02-03t04:05z", "2024-02-03T04:05:00Z"),
            ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59Z"),
            ("2024-02-03T04:05:06.1234567891Z", "2024-02-03T04:05:06.123456789Z"),
            ("Sat, 03 Feb 2024 04:05:06 -0500", "2024-02-03T09:05:06Z"),
            ("3 Feb 2024 04:05 EST", "2024-02-03T09:05:00Z"),
            ("Mon, 03 Feb 2024 04:05:06 GMT", "2024-02-03T04:05:06Z"),
        ] {
            assert_eq!(parse_lastmod(text).map(|at| at.to_string()).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "20240203",
            "2024-2-3",
            "2024-13-01",
            "2024-02-03T",
            "2024-02-03T4:5",
            "2024-02-03T25:00Z",
            "2024-02T04:05Z",
            "2024-02-03T04:05:06.Z",
            "2024-02-03T04:05:06+25:00",
            "2024-02-03T04:05:06+1",
            "-2024-02-03",
            "2024-02-03-04",
            "é",
        ] {
            assert_eq!(parse_lastmod(text), None, "{text}");
        }
    }
}
