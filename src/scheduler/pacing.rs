//! Pacing: what the settings say of a host's speed. Pure numbers; the slots, or the server of a fleet, apply them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Pacing settings; all of them can change while the job runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Pacing {
    /// `CONCURRENT_REQUESTS_PER_DOMAIN`.
    pub per_slot: usize,
    /// `DOWNLOAD_DELAY`.
    pub delay: Duration,
    /// `DOWNLOAD_DELAY_JITTER` where `RANDOMIZE_DOWNLOAD_DELAY` is on, else 0: each delay is taken between
    /// `delay × (1 − jitter)` and `delay × (1 + jitter)`.
    pub jitter: f64,
    /// `REQUESTS_PER_MINUTE`: requests of a host within any minute, 0 for no limit.
    pub per_minute: u32,
    /// `AUTOTHROTTLE_ENABLED`, of hosts that say nothing themselves.
    pub throttles: bool,
    /// How a delay is found by how the host answers.
    pub throttle: Throttle,
    /// `DOWNLOAD_SLOTS`, by host in its WHATWG form.
    pub hosts: Arc<HashMap<Box<str>, HostPacing>>,
}

/// What `DOWNLOAD_SLOTS` says of one host; what it does not say is as for every host.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct HostPacing {
    /// `concurrency`.
    pub per_slot: Option<usize>,
    /// `delay`.
    pub delay: Option<Duration>,
    /// `randomize_delay`, as a share of the delay.
    pub jitter: Option<f64>,
    /// `throttle`.
    pub throttles: Option<bool>,
}

/// How a delay is found by how the host answers (`AUTOTHROTTLE_*`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Throttle {
    /// `AUTOTHROTTLE_START_DELAY`: the delay of a host that has not answered yet.
    pub start: Duration,
    /// `AUTOTHROTTLE_MAX_DELAY`.
    pub max: Duration,
    /// `AUTOTHROTTLE_TARGET_CONCURRENCY`: requests that are to be under way at once, on average; above 0.
    pub target: f64,
    /// `AUTOTHROTTLE_DEBUG`: log every answer and what it made of the delay.
    pub debug: bool,
}

/// How one host is paced, by the settings alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rates {
    /// Requests at a time, at least 1.
    pub(crate) per_slot: usize,
    /// The delay; the least one of a host that is throttled.
    pub(crate) delay: Duration,
    pub(crate) jitter: f64,
    /// Requests within any minute, 0 for no limit.
    pub(crate) per_minute: u32,
    /// Whether its answers change the delay.
    pub(crate) throttles: bool,
}

impl Pacing {
    /// How this host is paced.
    pub(crate) fn of(&self, host: &str) -> Rates {
        // Most crawls name no host: then no name is looked up.
        let own = if self.hosts.is_empty() { None } else { self.hosts.get(host).copied() };
        let own = own.unwrap_or_default();
        Rates {
            per_slot: own.per_slot.unwrap_or(self.per_slot).max(1),
            delay: own.delay.unwrap_or(self.delay),
            jitter: own.jitter.unwrap_or(self.jitter).clamp(0.0, 1.0),
            per_minute: self.per_minute,
            throttles: own.throttles.unwrap_or(self.throttles),
        }
    }

    /// Whether the answers of any host change its delay.
    pub(crate) fn throttles_any(&self) -> bool {
        self.throttles || self.hosts.values().any(|host| host.throttles == Some(true))
    }
}

impl Rates {
    /// Whether the instant of sending matters, robots.txt aside.
    pub(crate) const fn is_paced(&self) -> bool {
        self.throttles || self.per_minute > 0 || !self.delay.is_zero()
    }
}

impl Default for Pacing {
    /// Eight requests of a host at a time and no delay.
    fn default() -> Self {
        Self {
            per_slot: 8,
            delay: Duration::ZERO,
            jitter: 0.0,
            per_minute: 0,
            throttles: false,
            throttle: Throttle::default(),
            hosts: Arc::default(),
        }
    }
}

impl Default for Throttle {
    fn default() -> Self {
        Self { start: Duration::from_secs(5), max: Duration::from_secs(60), target: 1.0, debug: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_paced_by_its_own_rules_and_by_those_of_all_where_it_has_none() {
        let second = Duration::from_secs(1);
        let slow = HostPacing { per_slot: Some(1), delay: Some(2 * second), ..HostPacing::default() };
        let even = HostPacing { jitter: Some(0.0), throttles: Some(true), ..HostPacing::default() };
        let hosts = HashMap::from([("slow.test".into(), slow), ("even.test".into(), even)]);
        let pacing = Pacing { jitter: 0.5, hosts: Arc::new(hosts), ..Pacing::default() };
        let of = |host| pacing.of(host);
        assert_eq!((of("slow.test").per_slot, of("slow.test").delay, of("slow.test").jitter), (1, 2 * second, 0.5));
        assert_eq!((of("even.test").per_slot, of("even.test").delay, of("even.test").jitter), (8, Duration::ZERO, 0.0));
        assert!(of("even.test").throttles && of("even.test").is_paced() && pacing.throttles_any());
        // A slot is a host: what lies below one is another.
        assert_eq!(of("www.slow.test"), of("other.test"));
        assert!(!of("other.test").is_paced());
    }
}
