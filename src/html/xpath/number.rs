//! Numbers: from text (XPath 1.0, 3.7 and 4.4), to text (4.2), to text as Scrapy writes results, and rounding (4.4).

use std::borrow::Cow;

use super::lexer::is_space;

/// The number a text is: white space, a minus sign, `Digits ('.' Digits?)? | '.' Digits`, white space; NaN for all else. Plus
/// signs, exponents and separators are not numbers.
pub(super) fn parse(text: &str) -> f64 {
    let text = text.trim_matches(is_space);
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    let dots = digits.iter().filter(|byte| **byte == b'.').count();
    let is_number = digits.len() > dots && dots <= 1 && digits.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    if is_number { text.parse().unwrap_or(f64::NAN) } else { f64::NAN }
}

/// `string()` of a number (4.2): no exponent, and no more digits than tell it apart from its neighbours.
pub(super) fn text(number: f64) -> Cow<'static, str> {
    if number.is_nan() {
        Cow::Borrowed("NaN")
    } else if number.is_infinite() {
        Cow::Borrowed(if number > 0.0 { "Infinity" } else { "-Infinity" })
    } else if number == 0.0 {
        Cow::Borrowed("0")
    } else {
        Cow::Owned(number.to_string())
    }
}

/// A number as Scrapy's selectors give it: Python's `str(float)`.
pub(super) fn scrapy_text(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let size = number.abs();
    if size != 0.0 && !(1e-4..1e16).contains(&size) {
        let text = format!("{number:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, digits) = match exponent.strip_prefix('-') {
            Some(digits) => ('-', digits),
            None => ('+', exponent),
        };
        return format!("{mantissa}e{sign}{digits:0>2}");
    }
    format!("{number:?}")
}

/// `round()`: the closest integer, the one closer to positive infinity if two are; the sign of zero is kept.
pub(super) fn round(number: f64) -> f64 {
    let floor = number.floor();
    // The difference is exact; adding a half first would not be.
    let rounded = if number - floor < 0.5 { floor } else { number.ceil() };
    if rounded == 0.0 { 0.0_f64.copysign(number) } else { rounded }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_a_number_only_in_the_form_of_the_grammar() {
        for (given, number) in [
            ("5", 5.0),
            (" \t\n12\r", 12.0),
            ("-5", -5.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("-.5", -0.5),
            ("007", 7.0),
            ("1.50", 1.5),
            ("0.1", 0.1),
            ("-0", -0.0),
        ] {
            assert_eq!(parse(given).to_bits(), f64::to_bits(number), "{given}");
        }
        for given in
            ["", " ", "-", ".", "-.", "+5", "- 5", "1e3", "0x10", "1,2", "1.2.3", "1 2", "inf", "NaN", "Infinity", "٣", "\u{a0}1"]
        {
            assert!(parse(given).is_nan(), "{given:?}");
        }
        assert!(parse(&"9".repeat(400)).is_infinite());
    }

    #[test]
    fn a_number_becomes_text_without_exponent() {
        for (number, expected) in [
            (1.0, "1"),
            (-1.0, "-1"),
            (1.5, "1.5"),
            (0.1, "0.1"),
            (-0.0, "0"),
            (0.0, "0"),
            (1e-7, "0.0000001"),
            (1.0 / 3.0, "0.3333333333333333"),
            (1e21, "1000000000000000000000"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
            (123_456_789.125, "123456789.125"),
            (0.1 + 0.2, "0.30000000000000004"),
        ] {
            assert_eq!(text(number), expected);
        }
    }

    #[test]
    fn scrapy_writes_numbers_as_python_does() {
        for (number, expected) in [
            (3.0, "3.0"),
            (-0.0, "-0.0"),
            (117.5, "117.5"),
            (f64::NAN, "nan"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (1e16, "1e+16"),
            (1e15, "1000000000000000.0"),
            (9_999_999_999_999_998.0, "9999999999999998.0"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (1.25e100, "1.25e+100"),
            (-2e300, "-2e+300"),
            (1.0 / 3.0, "0.3333333333333333"),
        ] {
            assert_eq!(scrapy_text(number), expected);
        }
    }

    #[test]
    fn halves_are_rounded_up_and_nothing_else_is() {
        for (number, expected) in [
            (2.5, 3.0),
            (-2.5, -2.0),
            (1.5, 2.0),
            (-1.5, -1.0),
            (0.499_999_999_999_999_94, 0.0),
            (-0.4, -0.0),
            (-0.5, -0.0),
            (0.5, 1.0),
            (-0.0, -0.0),
            (4_503_599_627_370_497.0, 4_503_599_627_370_497.0),
            (f64::INFINITY, f64::INFINITY),
            (f64::NEG_INFINITY, f64::NEG_INFINITY),
            (-0.6, -1.0),
        ] {
            assert_eq!(round(number).to_bits(), f64::to_bits(expected), "{number}");
        }
        assert!(round(f64::NAN).is_nan());
    }
}
