//! Moments on the wire: RFC 3339 in UTC. Requests have six fractional digits, answers as few groups of three as it takes; read
//! are none to nine and any offset.

use std::fmt;

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;
use serde::de::{Error, Visitor};
use serde::{Deserializer, Serializer};

/// What is written: microseconds, what is finer is cut off.
const MICROSECONDS: DateTimePrinter = DateTimePrinter::new().precision(Some(6));

/// Writes `YYYY-MM-DDTHH:MM:SS.ffffffZ`.
pub(crate) fn write<S: Serializer>(moment: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&MICROSECONDS.timestamp_to_string(moment))
}

/// Writes a moment of an answer with 0, 3, 6 or 9 digits (protojson's rule for `Timestamp`), or `null`.
pub(crate) fn write_optional<S: Serializer>(moment: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    let Some(moment) = moment else { return serializer.serialize_none() };
    let nanoseconds = moment.subsec_nanosecond();
    let digits = [(0, 1_000_000_000), (3, 1_000_000), (6, 1_000)].into_iter().find(|(_, unit)| nanoseconds % unit == 0);
    let printer = DateTimePrinter::new().precision(Some(digits.map_or(9, |(digits, _)| digits)));
    serializer.serialize_str(&printer.timestamp_to_string(moment))
}

/// Reads a moment that must be there.
pub(crate) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    read_optional(deserializer)?.ok_or_else(|| D::Error::custom("null where a timestamp must be"))
}

/// Reads a moment, or `null`.
pub(crate) fn read_optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    struct Moment;

    impl Visitor<'_> for Moment {
        type Value = Option<Timestamp>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an RFC 3339 timestamp or null")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
            parse(text).map(Some).ok_or_else(|| E::custom("a text that is no RFC 3339 timestamp"))
        }

        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
    }

    deserializer.deserialize_any(Moment)
}

/// The parser takes more than RFC 3339 does: names of time zones in brackets, for one.
fn parse(text: &str) -> Option<Timestamp> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || b"-+:.,TtZz ".contains(&byte));
    if is_plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use serde_json::{Value, json};

    use super::*;

    fn written(moment: &str) -> Value {
        write(&moment.parse().unwrap(), serde_json::value::Serializer).unwrap()
    }

    #[test]
    fn b021_fractions_of_any_length_and_offsets_are_read() {
        let whole: Timestamp = "2026-09-16T08:30:10Z".parse().unwrap();
        for (text, nanoseconds) in [
            ("2026-09-16T08:30:10Z", 0),
            ("2026-09-16T08:30:10.1Z", 100_000_000),
            ("2026-09-16T08:30:10.123Z", 123_000_000),
            ("2026-09-16T08:30:10.123456Z", 123_456_000),
            ("2026-09-16T08:30:10.123456789Z", 123_456_789),
            ("2026-09-16T10:30:10+02:00", 0),
            ("2026-09-16T03:00:10.5-05:30", 500_000_000),
        ] {
            let moment = read(json!(text)).unwrap();
            assert_eq!(moment.as_nanosecond() - whole.as_nanosecond(), nanoseconds, "{text}");
        }
        assert_eq!(read_optional(json!(null)).unwrap(), None);
        for value in [json!(""), json!("tomorrow"), json!("2026-09-16"), json!("2026-13-16T08:30:10Z"), json!(1_789_000_000)] {
            assert!(read_optional(value.clone()).is_err(), "{value}");
        }
        assert!(read_optional(json!("2026-09-16T08:30:10")).is_err(), "no offset");
        assert!(read_optional(json!("2026-09-16T08:30:10+02:00[Europe/Berlin]")).is_err(), "not RFC 3339");
        assert!(read(json!(null)).is_err());
    }

    #[test]
    fn b023_answers_have_as_few_groups_of_three_digits_as_it_takes() {
        for text in [
            "2026-09-16T08:30:10Z",
            "2026-09-16T08:30:10.500Z",
            "2026-09-16T08:30:10.000120Z",
            "2026-09-16T08:30:10.123456789Z",
            "1969-12-31T23:59:59.999Z",
        ] {
            let moment = Some(text.parse().unwrap());
            assert_eq!(write_optional(&moment, serde_json::value::Serializer).unwrap(), text);
        }
    }

    #[test]
    fn b022_six_digits_and_z_are_written() {
        assert_eq!(written("2026-09-16T08:30:10Z"), "2026-09-16T08:30:10.000000Z");
        assert_eq!(written("2026-09-16T08:30:10.5+02:00"), "2026-09-16T06:30:10.500000Z");
        assert_eq!(written("2026-09-16T08:30:10.123456999Z"), "2026-09-16T08:30:10.123456Z");
        assert_eq!(written("1969-12-31T23:59:59.999999999Z"), "1969-12-31T23:59:59.999999Z");
        assert_eq!(write_optional(&None, serde_json::value::Serializer).unwrap(), Value::Null);
    }
}
