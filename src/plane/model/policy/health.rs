//! The health and cross-attribution parts of an action policy (wire contract, sections 26 and 27).

use std::time::Duration;

use super::duration::LONGEST;
use super::error::PolicyError;
use super::read::Table;
use crate::plane::model::Outcome;

const SHORTEST: Duration = Duration::from_millis(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

/// How scores move, and what a low one does.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Health {
    /// The weight of a new observation, above 0, at most 1.
    pub(crate) alpha: f64,
    /// The score without any observation, 0..100, to which every score decays.
    pub(crate) baseline: f64,
    /// The time in which a score's distance from the baseline shrinks to 1/e.
    pub(crate) tau: Duration,
    pub(crate) observations: Observations,
    /// A group score below this cools the identity down in the group.
    pub(crate) endpoint_low_score: f64,
    pub(crate) endpoint_low_min_samples: u32,
    pub(crate) endpoint_low_cooldown: Duration,
    /// A global score below this puts the identity in quarantine.
    pub(crate) quarantine_score: f64,
    pub(crate) quarantine_min_samples: u32,
    pub(crate) quarantine_duration: Duration,
}

/// The score an outcome is observed as, 0..100; none leaves the score as it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Observations([Option<f64>; Outcome::ALL.len()]);

/// Whether many identities on a proxy, or many proxies of an identity, move the blame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CrossAttribution {
    pub(crate) enabled: bool,
    pub(crate) window: Duration,
    /// So many identities that failed on one proxy blame the proxy.
    pub(crate) proxy_distinct_identities: u32,
    /// So many proxies on which one identity failed blame the identity.
    pub(crate) identity_distinct_proxies: u32,
}

impl Observations {
    /// What the identity is observed as.
    pub(crate) fn identity(&self, outcome: Outcome) -> Option<f64> {
        self.0.get(outcome as usize).copied().flatten()
    }

    /// What the proxy is observed as. The policy does not change these.
    #[cfg(test)]
    pub(crate) const fn proxy(outcome: Outcome) -> Option<f64> {
        match outcome {
            Outcome::Success => Some(100.0),
            Outcome::NetworkError => Some(40.0),
            Outcome::RateLimited => Some(30.0),
            Outcome::ProxyError => Some(0.0),
            _ => None,
        }
    }

    fn put(&mut self, outcome: Outcome, score: f64) {
        if let Some(slot) = self.0.get_mut(outcome as usize) {
            *slot = Some(score);
        }
    }
}

impl Default for Observations {
    fn default() -> Self {
        let mut observations = Self([None; Outcome::ALL.len()]);
        for (outcome, score) in [
            (Outcome::Success, 100.0),
            (Outcome::Empty, 60.0),
            (Outcome::NetworkError, 50.0),
            (Outcome::RateLimited, 30.0),
            (Outcome::Forbidden, 10.0),
            (Outcome::Captcha, 0.0),
        ] {
            observations.put(outcome, score);
        }
        observations
    }
}

impl Default for Health {
    fn default() -> Self {
        Self {
            alpha: 0.1,
            baseline: 70.0,
            tau: 6 * HOUR,
            observations: Observations::default(),
            endpoint_low_score: 15.0,
            endpoint_low_min_samples: 10,
            endpoint_low_cooldown: 6 * HOUR,
            quarantine_score: 20.0,
            quarantine_min_samples: 10,
            quarantine_duration: 24 * HOUR,
        }
    }
}

impl Default for CrossAttribution {
    fn default() -> Self {
        Self { enabled: true, window: 10 * MINUTE, proxy_distinct_identities: 3, identity_distinct_proxies: 3 }
    }
}

/// The table `health`.
pub(super) fn health(top: &Table<'_>) -> Result<Health, PolicyError> {
    let table = top.table(
        "health",
        &[
            "alpha",
            "baseline",
            "tau",
            "observations",
            "endpoint_low_score",
            "endpoint_low_min_samples",
            "endpoint_low_cooldown",
            "quarantine_score",
            "quarantine_min_samples",
            "quarantine_duration",
        ],
    )?;
    let usual = Health::default();
    let score = |key: &str, usual: f64| Ok::<_, PolicyError>(table.field(key).number(0.0..=100.0)?.unwrap_or(usual));
    let samples = |key: &str, usual: u32| Ok::<_, PolicyError>(table.field(key).count(1..=1_000_000)?.unwrap_or(usual));
    let long = |key: &str, usual: Duration| Ok::<_, PolicyError>(table.field(key).duration(SHORTEST..=LONGEST)?.unwrap_or(usual));
    Ok(Health {
        alpha: table.field("alpha").factor()?.unwrap_or(usual.alpha),
        baseline: score("baseline", usual.baseline)?,
        tau: long("tau", usual.tau)?,
        observations: observations(&table, usual.observations)?,
        endpoint_low_score: score("endpoint_low_score", usual.endpoint_low_score)?,
        endpoint_low_min_samples: samples("endpoint_low_min_samples", usual.endpoint_low_min_samples)?,
        endpoint_low_cooldown: long("endpoint_low_cooldown", usual.endpoint_low_cooldown)?,
        quarantine_score: score("quarantine_score", usual.quarantine_score)?,
        quarantine_min_samples: samples("quarantine_min_samples", usual.quarantine_min_samples)?,
        quarantine_duration: long("quarantine_duration", usual.quarantine_duration)?,
    })
}

fn observations(health: &Table<'_>, mut observations: Observations) -> Result<Observations, PolicyError> {
    let table = health.table("observations", &Outcome::ALL.map(Outcome::name))?;
    for outcome in Outcome::ALL {
        if let Some(score) = table.field(outcome.name()).number(0.0..=100.0)? {
            observations.put(outcome, score);
        }
    }
    Ok(observations)
}

/// The table `cross_attribution`.
pub(super) fn cross_attribution(top: &Table<'_>) -> Result<CrossAttribution, PolicyError> {
    let table =
        top.table("cross_attribution", &["enabled", "window", "proxy_distinct_identities", "identity_distinct_proxies"])?;
    let usual = CrossAttribution::default();
    let number = |key: &str, usual: u32| Ok::<_, PolicyError>(table.field(key).count(1..=1_000_000)?.unwrap_or(usual));
    Ok(CrossAttribution {
        enabled: table.field("enabled").flag()?.unwrap_or(usual.enabled),
        window: table.field("window").duration(SHORTEST..=LONGEST)?.unwrap_or(usual.window),
        proxy_distinct_identities: number("proxy_distinct_identities", usual.proxy_distinct_identities)?,
        identity_distinct_proxies: number("identity_distinct_proxies", usual.identity_distinct_proxies)?,
    })
}
