//! What a text control holds when it is given a text (WHATWG HTML 4.10.5.1, "value sanitization algorithm").

/// The kinds of `input` whose value is a text, and `textarea`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum InputType {
    Textarea,
    Hidden,
    /// One line of text: `text`, `search`, `tel`, `password` and what is no type.
    Line,
    /// One line without white space around it: `url`, `email`.
    Address,
    Number,
    Range {
        min: f64,
        max: f64,
        step: Option<f64>,
    },
    Color,
    Date,
    Month,
    Week,
    Time,
    LocalTime,
}

impl InputType {
    /// The value that the control has then.
    pub(super) fn sanitized(self, text: &str) -> String {
        match self {
            Self::Textarea | Self::Hidden => text.to_owned(),
            Self::Line => one_line(text),
            Self::Address => one_line(text).trim_matches(is_blank).to_owned(),
            Self::Number => valid(text, number(text).is_some()),
            Self::Range { min, max, step } => range(number(text), min, max, step),
            Self::Color => color(text),
            Self::Date => valid(text, is_date(text)),
            Self::Month => valid(text, is_month(text)),
            Self::Week => valid(text, is_week(text)),
            Self::Time => valid(text, is_time(text)),
            Self::LocalTime => local_time(text),
        }
    }
}

impl InputType {
    /// What the type allows, where that is not this text: the control would hold nothing then, or some other value.
    pub(super) fn refuses(self, text: &str) -> Option<&'static str> {
        let (is_taken, allowed) = match self {
            Self::Textarea | Self::Hidden | Self::Line | Self::Address => return None,
            // Without a text they have a value all the same.
            Self::Range { .. } => (number(text).is_some(), "a number such as 12 or -0.5"),
            Self::Color => (color(text).eq_ignore_ascii_case(text), "a color written as #rrggbb"),
            Self::Number => (self.holds(text), "a number such as 12 or -0.5, or nothing"),
            Self::Date => (self.holds(text), "a date written as 2024-02-01, or nothing"),
            Self::Month => (self.holds(text), "a month written as 2024-02, or nothing"),
            Self::Week => (self.holds(text), "a week written as 2024-W05, or nothing"),
            Self::Time => (self.holds(text), "a time written as 17:30 or 17:30:05, or nothing"),
            Self::LocalTime => (self.holds(text), "a date and time written as 2024-02-01T17:30, or nothing"),
        };
        (!is_taken).then_some(allowed)
    }

    /// Whether something is left of a text, or nothing was there.
    fn holds(self, text: &str) -> bool {
        text.is_empty() || !self.sanitized(text).is_empty()
    }
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}')
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], "")
}

fn valid(text: &str, is_valid: bool) -> String {
    if is_valid { text.to_owned() } else { String::new() }
}

/// A "valid floating-point number" (2.3.4.3).
pub(super) fn number(text: &str) -> Option<f64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (digits, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_valid = (all_digits(whole) || whole.is_empty() && fraction.is_some())
        && fraction.is_none_or(all_digits)
        && exponent.is_none_or(|exponent| all_digits(exponent.strip_prefix(['-', '+']).unwrap_or(exponent)));
    is_valid.then(|| text.parse::<f64>().ok()).flatten().filter(|number| number.is_finite())
}

fn range(value: Option<f64>, min: f64, max: f64, step: Option<f64>) -> String {
    let middle = if max < min { min } else { min + (max - min) / 2.0 };
    let mut value = value.unwrap_or(middle);
    if value > max {
        value = max;
    }
    if value < min {
        value = min;
    }
    if let Some(step) = step.filter(|step| *step > 0.0) {
        let mut steps = ((value - min) / step + 0.5).floor();
        if min + steps * step > max && max >= min {
            steps = ((max - min) / step).floor();
        }
        value = min + steps * step;
    }
    value.to_string()
}

fn color(text: &str) -> String {
    let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6 && digits.bytes().all(|b| b.is_ascii_hexdigit()));
    digits.map_or_else(|| "#000000".to_owned(), |digits| format!("#{}", digits.to_ascii_lowercase()))
}

/// Digits that are a number from `least` to `most`, at least `width` of them; exactly so many where `is_exact`.
fn digits(text: &str, width: usize, is_exact: bool, least: u32, most: u32) -> Option<u32> {
    let fits = text.len() >= width && (!is_exact || text.len() == width) && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| fits && (least..=most).contains(number))
}

fn year(text: &str) -> Option<u32> {
    digits(text, 4, false, 1, 275_760)
}

fn is_month(text: &str) -> bool {
    text.rsplit_once('-').is_some_and(|(y, month)| year(y).is_some() && digits(month, 2, true, 1, 12).is_some())
}

fn is_date(text: &str) -> bool {
    let Some((month_text, day)) = text.rsplit_once('-') else { return false };
    let Some((year_text, month)) = month_text.rsplit_once('-') else { return false };
    let (Some(year), Some(month)) = (year(year_text), digits(month, 2, true, 1, 12)) else { return false };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    digits(day, 2, true, 1, days).is_some()
}

fn is_week(text: &str) -> bool {
    text.split_once("-W").is_some_and(|(y, week)| year(y).is_some() && digits(week, 2, true, 1, 53).is_some())
}

fn is_time(text: &str) -> bool {
    let mut parts = text.splitn(3, ':');
    let is_clock = parts.next().is_some_and(|hour| digits(hour, 2, true, 0, 23).is_some())
        && parts.next().is_some_and(|minute| digits(minute, 2, true, 0, 59).is_some());
    is_clock
        && parts.next().is_none_or(|seconds| {
            let (whole, fraction) = match seconds.split_once('.') {
                Some((whole, fraction)) => (whole, Some(fraction)),
                None => (seconds, None),
            };
            digits(whole, 2, true, 0, 59).is_some()
                && fraction.is_none_or(|f| f.len() <= 3 && digits(f, 1, false, 0, 999).is_some())
        })
}

/// A "local date and time", with a T between the two and no seconds that are zero.
fn local_time(text: &str) -> String {
    let Some((date, time)) = text.split_once(['T', ' ']).filter(|(date, time)| is_date(date) && is_time(time)) else {
        return String::new();
    };
    let time = match time.split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|byte| byte == b'0') => whole,
        _ => time,
    };
    let time = if time.len() == 8 { time.strip_suffix(":00").unwrap_or(time) } else { time };
    format!("{date}T{time}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_holds_what_its_type_allows() {
        let range = |min, max, step| InputType::Range { min, max, step };
        for (input, text, held) in [
            (InputType::Textarea, "a\nb", "a\nb"),
            (InputType::Hidden, " a\nb", " a\nb"),
            (InputType::Line, " a\r\nb ", " ab "),
            (InputType::Address, "\n x@y.z ", "x@y.z"),
            (InputType::Number, "1e3", "1e3"),
            (InputType::Number, "-.5", "-.5"),
            (InputType::Number, "1.", ""),
            (InputType::Number, "+1", ""),
            (InputType::Number, "inf", ""),
            (InputType::Number, "1e999", ""),
            (range(0.0, 100.0, Some(1.0)), "", "50"),
            (range(0.0, 100.0, Some(1.0)), "140", "100"),
            (range(0.0, 100.0, Some(7.0)), "99", "98"),
            (range(1.0, 2.0, Some(0.25)), "1.3", "1.25"),
            (range(9.0, 3.0, Some(1.0)), "5", "9"),
            (range(0.0, 1.0, None), "0.123", "0.123"),
            (InputType::Color, "#FFaa00", "#ffaa00"),
            (InputType::Color, "red", "#000000"),
            (InputType::Date, "2024-02-29", "2024-02-29"),
            (InputType::Date, "2023-02-29", ""),
            (InputType::Date, "24-02-20", ""),
            (InputType::Month, "2024-13", ""),
            (InputType::Month, "2024-12", "2024-12"),
            (InputType::Week, "2024-W07", "2024-W07"),
            (InputType::Week, "2024-7", ""),
            (InputType::Time, "23:59:01.5", "23:59:01.5"),
            (InputType::Time, "24:00", ""),
            (InputType::LocalTime, "2024-05-06 07:08:00.000", "2024-05-06T07:08"),
            (InputType::LocalTime, "2024-05-06T07:08:09", "2024-05-06T07:08:09"),
            (InputType::LocalTime, "now", ""),
        ] {
            assert_eq!(input.sanitized(text), held, "{input:?} {text:?}");
        }
    }
}
