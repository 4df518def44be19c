//! Numbers and times as people read them.

use std::time::Duration;

/// With a comma between thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// As a clock shows it: `0:07`, `12:30`, `1:02:05`.
pub(crate) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// As a duration is told: `4.2 s` below a minute, else as a clock shows it.
pub(crate) fn spoken(time: Duration) -> String {
    if time.as_secs() < 60 { format!("{:.1} s", time.as_secs_f64()) } else { clock(time) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_apart() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn times_are_as_short_as_they_can_be() {
        for (seconds, clock_text, spoken_text) in [(7, "0:07", "7.0 s"), (750, "12:30", "12:30"), (3_725, "1:02:05", "1:02:05")] {
            let time = Duration::from_secs(seconds);
            assert_eq!((clock(time).as_str(), spoken(time).as_str()), (clock_text, spoken_text));
        }
    }
}
