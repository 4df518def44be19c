//! Durations as policies write them (wire contract, sections 32 and 37): `permanent`, `0`, or whole days followed by any
//! number of decimals with a unit, such as `1d`, `1h30m`, `1.5s`. No signs, no spaces, no bare numbers except `0`.
//!
//! The model counts milliseconds, so what is finer is cut off; a duration that would vanish by that is an error.

use std::time::Duration;

/// Most characters of a written duration.
const MAX_CHARS: usize = 32;

/// The longest duration a policy may name: a hundred years of 365 days. A moment plus this is still a moment.
pub(crate) const LONGEST: Duration = Duration::from_secs(36_500 * 86_400);

const NANOS_PER_DAY: u128 = 86_400_000_000_000;

/// A stretch of time that may have no end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Term {
    For(Duration),
    Permanent,
}

/// What is wrong with a written duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum DurationError {
    #[error("an empty text is no duration; write one such as \"30s\", \"1h30m\" or \"0\"")]
    Empty,
    #[error("it has {found} characters, allowed are {MAX_CHARS}")]
    TooLong { found: usize },
    #[error("a number is expected at character {at}; write one such as \"30s\" or \"1h30m\", without sign and spaces")]
    NoNumber { at: usize },
    #[error("the number before character {at} has no unit; allowed are ms, s, m, h and d, and only \"0\" stands alone")]
    NoUnit { at: usize },
    #[error("the unit at character {at} is unknown; allowed are ms, s, m, h and d")]
    UnknownUnit { at: usize },
    #[error("days come first and are whole; write \"36h\" for a day and a half")]
    Days,
    #[error("it is longer than 36500d, the longest allowed; write \"permanent\" where no end is meant and allowed")]
    TooLarge,
    #[error("it is shorter than a millisecond, the shortest allowed; write \"0\" for none")]
    TooSmall,
}

impl Term {
    /// Reads the text.
    pub(crate) fn parse(text: &str) -> Result<Self, DurationError> {
        match text {
            "" => return Err(DurationError::Empty),
            "permanent" => return Ok(Self::Permanent),
            "0" => return Ok(Self::For(Duration::ZERO)),
            _ => {}
        }
        let chars = text.chars().count();
        if chars > MAX_CHARS {
            return Err(DurationError::TooLong { found: chars });
        }
        let mut rest = text;
        let mut nanos = 0_u128;
        let mut first = true;
        while !rest.is_empty() {
            let (part, left) = part(rest, text, first)?;
            nanos = nanos.checked_add(part).ok_or(DurationError::TooLarge)?;
            rest = left;
            first = false;
        }
        if nanos > LONGEST.as_nanos() {
            return Err(DurationError::TooLarge);
        }
        let millis = u64::try_from(nanos / 1_000_000).map_err(|_| DurationError::TooLarge)?;
        if millis == 0 && nanos > 0 {
            return Err(DurationError::TooSmall);
        }
        Ok(Self::For(Duration::from_millis(millis)))
    }
}

/// The milliseconds of a policy's duration, which is bounded by [`LONGEST`].
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The duration as a person would write it: `0`, `90d`, `1h30m`, `1s500ms`.
pub(super) fn text(duration: Duration) -> String {
    let mut left = millis(duration);
    if left == 0 {
        return "0".to_owned();
    }
    let mut text = String::new();
    for (unit, size) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)] {
        if left >= size {
            text.push_str(&(left / size).to_string());
            text.push_str(unit);
            left %= size;
        }
    }
    text
}

/// One number with its unit, in nanoseconds, and what follows it.
fn part<'t>(rest: &'t str, whole: &str, first: bool) -> Result<(u128, &'t str), DurationError> {
    let at = |rest: &str| whole.chars().count() - rest.chars().count() + 1;
    let (digits, after) = digits(rest);
    if digits.is_empty() {
        return Err(DurationError::NoNumber { at: at(rest) });
    }
    let (fraction, after) = match after.strip_prefix('.') {
        None => ("", after),
        Some(behind) => match self::digits(behind) {
            ("", _) => return Err(DurationError::NoNumber { at: at(behind) }),
            (fraction, after) => (fraction, after),
        },
    };
    let end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
    let (unit, left) = after.split_at_checked(end).unwrap_or((after, ""));
    let size = match unit {
        "" => return Err(DurationError::NoUnit { at: at(after) }),
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" if first && fraction.is_empty() => NANOS_PER_DAY,
        "d" => return Err(DurationError::Days),
        _ => return Err(DurationError::UnknownUnit { at: at(after) }),
    };
    let number: u128 = digits.parse().map_err(|_| DurationError::TooLarge)?;
    let nanos = number.checked_mul(size).ok_or(DurationError::TooLarge)?;
    // At most 18 digits: further ones are below a nanosecond, and the product stays in range.
    let (mut more, mut scale) = (0_u128, 1_u128);
    for digit in fraction.bytes().take(18) {
        more = more * 10 + u128::from(digit - b'0');
        scale *= 10;
    }
    Ok((nanos.checked_add(more * size / scale).ok_or(DurationError::TooLarge)?, left))
}

/// The leading ASCII digits, and the rest.
fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_unit_and_their_sums_are_read() {
        for (text, millis) in [
            ("0", 0),
            ("0s", 0),
            ("0d", 0),
            ("1ms", 1),
            ("30s", 30_000),
            ("2m", 120_000),
            ("1h30m", 5_400_000),
            ("7d", 604_800_000),
            ("1d12h", 129_600_000),
            ("1.5h", 5_400_000),
            ("0.25s", 250),
            ("1h1h", 7_200_000),
            ("1s500ms", 1_500),
            ("0.0015s", 1),
            ("0.333333333333333333333h", 1_199_999),
            ("36500d", 3_153_600_000_000),
        ] {
            assert_eq!(Term::parse(text), Ok(Term::For(Duration::from_millis(millis))), "{text}");
        }
        assert_eq!(Term::parse("permanent"), Ok(Term::Permanent));
    }

    #[test]
    fn every_other_text_names_its_fault() {
        use DurationError::*;
        for (text, error) in [
            ("", Empty),
            ("30", NoUnit { at: 3 }),
            ("00", NoUnit { at: 3 }),
            ("1h30", NoUnit { at: 5 }),
            ("s", NoNumber { at: 1 }),
            ("-1s", NoNumber { at: 1 }),
            (" 1s", NoNumber { at: 1 }),
            (".5s", NoNumber { at: 1 }),
            ("1.s", NoNumber { at: 3 }),
            ("1w", UnknownUnit { at: 2 }),
            ("1S", UnknownUnit { at: 2 }),
            ("1s ", UnknownUnit { at: 2 }),
            ("2ü", UnknownUnit { at: 2 }),
            ("Permanent", NoNumber { at: 1 }),
            ("1.5d", Days),
            ("1h1d", Days),
            ("1d1d", Days),
            ("36501d", TooLarge),
            ("36500d1ms", TooLarge),
            ("99999999999999999999999999999999", NoUnit { at: 33 }),
            ("9999999999999999999999999999999h", TooLarge),
            ("0.4ms", TooSmall),
            ("000000000000000000000000000000001s", TooLong { found: 34 }),
        ] {
            assert_eq!(Term::parse(text), Err(error), "{text}");
        }
        assert_eq!(
            NoUnit { at: 3 }.to_string(),
            "the number before character 3 has no unit; allowed are ms, s, m, h and d, and only \"0\" stands alone"
        );
        assert_eq!(TooLong { found: 40 }.to_string(), "it has 40 characters, allowed are 32");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = Term::parse(&text);
        }

        #[test]
        fn no_text_of_our_characters_panics(text in "[0-9.dhms]{0,33}") {
            let _ = Term::parse(&text);
        }

        #[test]
        fn a_shown_duration_reads_back(millis in 0..=3_153_600_000_000_u64) {
            let duration = Duration::from_millis(millis);
            prop_assert_eq!(Term::parse(&text(duration)), Ok(Term::For(duration)));
        }
    }
}
