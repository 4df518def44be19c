//! Breaker policy: when an endpoint group is closed to all, and how it opens again (wire contract, section 28).

use std::time::Duration;

use serde_json::Value;

use super::Policy;
use super::duration::{LONGEST, text};
use super::error::PolicyError;
use super::head::{Head, KEYS, Kind};
use super::read::{At, Table};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);

/// The policy.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BreakerPolicy {
    pub(crate) head: Head,
    pub(crate) enabled: bool,
    /// How far back reports count; at least a second for each bucket.
    pub(crate) window: Duration,
    /// Parts of the window, 1..60.
    pub(crate) buckets: u32,
    /// Fewer reports in the window decide nothing.
    pub(crate) min_requests: u32,
    pub(crate) trip: Trip,
    /// How long it is open the first time; doubles each time.
    pub(crate) open_duration: Duration,
    /// At least `open_duration`.
    pub(crate) max_open_duration: Duration,
    /// Closed for so long, it counts as never opened.
    pub(crate) reset_open_count_after: Duration,
    pub(crate) half_open: HalfOpen,
    pub(crate) revert_recent_cooldowns: Revert,
}

/// What opens it: any of these. 0 switches one off.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Trip {
    pub(crate) risk_ratio_gte: f64,
    pub(crate) distinct_captcha_identities_gte: u32,
    pub(crate) success_ratio_lte: f64,
}

/// What closes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct HalfOpen {
    pub(crate) probe_leases_per_10s: u32,
    pub(crate) close_min_samples: u32,
    pub(crate) close_success_ratio_gte: f64,
}

/// Which cool-downs of the window opening takes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Revert {
    None,
    /// Those of identities in this group.
    Endpoint,
    /// These and those of the same identities on the site.
    All,
}

impl BreakerPolicy {
    /// The length of one bucket.
    #[cfg(test)]
    pub(crate) fn bucket(&self) -> Duration {
        self.window / self.buckets.max(1)
    }
}

impl Default for BreakerPolicy {
    fn default() -> Self {
        Self {
            head: Head::built_in(Kind::Breaker),
            enabled: true,
            window: MINUTE,
            buckets: 12,
            min_requests: 50,
            trip: Trip { risk_ratio_gte: 0.4, distinct_captcha_identities_gte: 10, success_ratio_lte: 0.2 },
            open_duration: 2 * MINUTE,
            max_open_duration: 60 * MINUTE,
            reset_open_count_after: 30 * MINUTE,
            half_open: HalfOpen { probe_leases_per_10s: 5, close_min_samples: 5, close_success_ratio_gte: 0.8 },
            revert_recent_cooldowns: Revert::Endpoint,
        }
    }
}

impl Policy for BreakerPolicy {
    const KIND: Kind = Kind::Breaker;

    fn head(&self) -> &Head {
        &self.head
    }

    fn read(document: &Value) -> Result<Self, PolicyError> {
        let [name, description, bind] = KEYS;
        let keys = [
            name,
            description,
            bind,
            "enabled",
            "window",
            "buckets",
            "min_requests",
            "trip",
            "open_duration",
            "max_open_duration",
            "reset_open_count_after",
            "half_open",
            "revert_recent_cooldowns",
        ];
        let top = Table::of(document, At::top(Self::KIND, document), &keys)?;
        let usual = Self::default();
        let buckets = top.field("buckets").count(1..=60)?.unwrap_or(usual.buckets);
        let window = top.field("window").duration(SECOND..=DAY)?.unwrap_or(usual.window);
        if window < SECOND * buckets {
            let allowed = format!("at least a second for each of the {buckets} buckets; write a longer window or fewer buckets");
            return Err(top.field("window").at.wrong(text(window), allowed));
        }
        let open_duration = top.field("open_duration").duration(SECOND..=365 * DAY)?.unwrap_or(usual.open_duration);
        let longest = top.field("max_open_duration").duration(SECOND..=365 * DAY)?.unwrap_or(usual.max_open_duration);
        if longest < open_duration {
            let allowed = format!("open_duration, which is {}, to 365d", text(open_duration));
            return Err(top.field("max_open_duration").at.wrong(text(longest), allowed));
        }
        let reset = top.field("reset_open_count_after").duration(Duration::ZERO..=LONGEST)?;
        Ok(Self {
            head: Head::read(&top)?,
            enabled: top.field("enabled").flag()?.unwrap_or(usual.enabled),
            window,
            buckets,
            min_requests: top.field("min_requests").count(1..=1_000_000_000)?.unwrap_or(usual.min_requests),
            trip: trip(&top, usual.trip)?,
            open_duration,
            max_open_duration: longest,
            reset_open_count_after: reset.unwrap_or(usual.reset_open_count_after),
            half_open: half_open(&top, usual.half_open)?,
            revert_recent_cooldowns: revert(&top)?.unwrap_or(usual.revert_recent_cooldowns),
        })
    }
}

fn trip(top: &Table<'_>, usual: Trip) -> Result<Trip, PolicyError> {
    let table = top.table("trip", &["risk_ratio_gte", "distinct_captcha_identities_gte", "success_ratio_lte"])?;
    let captchas = table.field("distinct_captcha_identities_gte").count(0..=1_000_000)?;
    Ok(Trip {
        risk_ratio_gte: table.field("risk_ratio_gte").number(0.0..=1.0)?.unwrap_or(usual.risk_ratio_gte),
        distinct_captcha_identities_gte: captchas.unwrap_or(usual.distinct_captcha_identities_gte),
        success_ratio_lte: table.field("success_ratio_lte").number(0.0..=1.0)?.unwrap_or(usual.success_ratio_lte),
    })
}

fn half_open(top: &Table<'_>, usual: HalfOpen) -> Result<HalfOpen, PolicyError> {
    let table = top.table("half_open", &["probe_leases_per_10s", "close_min_samples", "close_success_ratio_gte"])?;
    Ok(HalfOpen {
        probe_leases_per_10s: table.field("probe_leases_per_10s").count(1..=10_000)?.unwrap_or(usual.probe_leases_per_10s),
        close_min_samples: table.field("close_min_samples").count(1..=10_000)?.unwrap_or(usual.close_min_samples),
        close_success_ratio_gte: table.field("close_success_ratio_gte").factor()?.unwrap_or(usual.close_success_ratio_gte),
    })
}

fn revert(top: &Table<'_>) -> Result<Option<Revert>, PolicyError> {
    let field = top.field("revert_recent_cooldowns");
    match field.value {
        Some(Value::Bool(true)) => Ok(Some(Revert::Endpoint)),
        Some(Value::Bool(false)) => Ok(Some(Revert::None)),
        _ => field.choice(&[("none", Revert::None), ("endpoint", Revert::Endpoint), ("all", Revert::All)]),
    }
}
