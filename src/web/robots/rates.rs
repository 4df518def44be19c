//! `Request-rate` and `Visit-time`, lines of robots.txt that no standard has: the forms that Protego reads.

use std::time::Duration;

use jiff::civil::Time;

/// At most so many requests in so much time (`Request-rate: 10/1m 0600-0845`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestRate {
    /// How many requests; not zero.
    pub requests: u32,
    /// In how much time.
    pub per: Duration,
    /// The hours it counts for; always without.
    pub window: Option<Window>,
}

/// Hours of the day in UTC. The end may lie before the begin: then midnight is between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Window {
    /// From this time on.
    pub from: Time,
    /// Up to this time.
    pub to: Time,
}

impl RequestRate {
    /// The time between two requests that keeps the rate.
    #[must_use]
    pub fn interval(&self) -> Duration {
        self.per / self.requests.max(1)
    }

    pub(super) fn parse(value: &str) -> Option<Self> {
        let (rate, window) = match value.trim().split_once(char::is_whitespace) {
            Some((rate, window)) => (rate, Some(Window::parse(window)?)),
            None => (value.trim(), None),
        };
        let (requests, time) = rate.split_once('/')?;
        let requests = requests.parse().ok().filter(|requests| *requests > 0)?;
        let (number, unit) = match time.strip_suffix(|last: char| last.is_ascii_alphabetic()) {
            Some(number) => (number, time.get(number.len()..)?),
            None => (time, "s"),
        };
        let seconds = match unit.to_ascii_lowercase().as_str() {
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            "d" => 86_400,
            _ => return None,
        };
        let per = Duration::from_secs(number.parse::<u32>().ok()?.into()).checked_mul(seconds)?;
        Some(Self { requests, per, window })
    }
}

impl Window {
    /// `0600-0845`, or with a blank between.
    pub(super) fn parse(value: &str) -> Option<Self> {
        let (from, to) = value.trim().split_once(['-', ' '])?;
        Some(Self { from: time(from)?, to: time(to)? })
    }
}

fn time(text: &str) -> Option<Time> {
    let text = text.trim();
    let is_clock = text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    let (hour, minute) = text.split_at_checked(2).filter(|_| is_clock)?;
    Time::new(hour.parse().ok()?, minute.parse().ok()?, 0, 0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_rate_is_none() {
        for value in
            ["", "1", "/10", "0/10", "1/", "1/10x", "1/10s 9-10", "1/10s 2500-0100", "-1/10", "1/99999999999", "1/10 0600"]
        {
            assert_eq!(RequestRate::parse(value), None, "{value}");
        }
        assert_eq!(RequestRate::parse("4/2m").map(|rate| rate.interval()), Some(Duration::from_secs(30)));
    }
}
