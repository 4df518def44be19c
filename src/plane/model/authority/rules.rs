//! The policies of one endpoint group, turned into the numbers the deciding parts take (wire contract, sections 21.1 to 28).

use std::sync::Arc;

use super::names::Names;
use crate::plane::model::Ms;
use crate::plane::model::action::{Deed, Escalation, HealthLimits, Ladder, Length, Often, Outcomes, Rule, Rules, Scope};
use crate::plane::model::breaker::{BreakerNumbers, RevertCooldowns};
use crate::plane::model::cross::CrossNumbers;
use crate::plane::model::lease::{LeaseTerms, Reuse, ReuseAnchor, ReuseScope};
use crate::plane::model::policy::{
    self, Action, ActionPolicy, BanExpiry, BreakerPolicy, Mode, PolicyError, ProxyMode, ProxyPolicy, Revert, RotationPolicy,
    SignalPolicy, Term, millis,
};
use crate::plane::model::proxy_pool::{BindPolicy, ProxyFilter};
use crate::plane::model::quota::{QuotaRule, Warmup};
use crate::plane::model::score::{Observations, ScoreNumbers};
use crate::plane::model::signal::Classifier;
use crate::plane::model::strategy::Strategy;

/// All that is ruled for one endpoint group.
#[derive(Debug)]
pub(super) struct GroupRules {
    /// Names of the identity types that are leased; empty: all of the client.
    pub(super) types: Box<[Arc<str>]>,
    pub(super) strategy: Strategy,
    pub(super) sample: usize,
    pub(super) terms: LeaseTerms,
    pub(super) concurrent: u32,
    pub(super) reuse: Reuse,
    pub(super) quota: Box<[QuotaRule]>,
    /// How long a session key keeps its identity; nothing when keys are not looked at.
    pub(super) sticky: Option<Ms>,
    pub(super) warmup: Warmup,
    pub(super) probe_factor: f64,
    pub(super) probe_leases: u32,
    /// Nothing in the mode `none`.
    pub(super) proxy: Option<ProxyRules>,
    pub(super) classifier: Classifier,
    pub(super) actions: Rules,
    pub(super) mode: Mode,
    pub(super) ban_expiry: BanExpiry,
    pub(super) scores: ScoreNumbers,
    pub(super) observations: Observations,
    pub(super) cross: CrossNumbers,
    pub(super) breaker: BreakerNumbers,
}

/// Which proxies.
#[derive(Debug)]
pub(super) struct ProxyRules {
    pub(super) filter: ProxyFilter,
    /// In the mode `bind_identity`.
    pub(super) bind: Option<BindPolicy>,
}

/// The four policies that hold for a group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Governing<'p> {
    pub(super) rotation: &'p RotationPolicy,
    pub(super) signal: &'p SignalPolicy,
    pub(super) action: &'p ActionPolicy,
    pub(super) breaker: &'p BreakerPolicy,
}

impl GroupRules {
    /// Turns them into numbers. `parent` finds the signal policy of a name, for `extends`.
    pub(super) fn of<'p>(
        policies: Governing<'p>,
        parent: impl Fn(&str) -> Option<&'p SignalPolicy>,
        names: &mut Names,
    ) -> Result<Self, PolicyError> {
        let Governing { rotation, signal, action, breaker } = policies;
        let health = &action.health;
        Ok(Self {
            types: rotation.identity_types.clone(),
            strategy: strategy(rotation.strategy),
            sample: rotation.candidate_sample.clamp(1, 256) as usize,
            terms: LeaseTerms { ttl: millis(rotation.lease_ttl), lifetime: millis(rotation.max_lease_lifetime) },
            concurrent: rotation.max_concurrent_leases,
            reuse: reuse(rotation),
            quota: rotation.quota.iter().map(|quota| QuotaRule { limit: quota.limit, window: millis(quota.window) }).collect(),
            sticky: rotation.sticky.enabled.then(|| millis(rotation.sticky.ttl)),
            warmup: Warmup { duration: millis(rotation.warmup.duration), quota_factor: rotation.warmup.quota_factor },
            probe_factor: rotation.probe.weight_factor,
            probe_leases: rotation.probe.max_leases,
            proxy: proxy(&rotation.proxy, names),
            classifier: Classifier::of(signal, parent)?,
            actions: actions(action),
            mode: action.mode,
            ban_expiry: action.ban_expiry_state,
            scores: ScoreNumbers { alpha: health.alpha, baseline: health.baseline, tau: millis(health.tau) },
            observations: observations(&health.observations),
            cross: CrossNumbers {
                enabled: action.cross_attribution.enabled,
                window: millis(action.cross_attribution.window),
                identities: action.cross_attribution.proxy_distinct_identities,
                proxies: action.cross_attribution.identity_distinct_proxies,
            },
            breaker: breaker_numbers(breaker),
        })
    }

    /// Whether identities of this type are leased.
    pub(super) fn admits(&self, kind: &str) -> bool {
        self.types.is_empty() || self.types.iter().any(|name| **name == *kind)
    }
}

const fn strategy(strategy: policy::Strategy) -> Strategy {
    match strategy {
        policy::Strategy::WeightedRandom => Strategy::WeightedRandom,
        policy::Strategy::LeastRecentlyUsed => Strategy::LeastRecentlyUsed,
        policy::Strategy::RoundRobin => Strategy::RoundRobin,
        policy::Strategy::BestHealth => Strategy::BestHealth,
    }
}

fn reuse(rotation: &RotationPolicy) -> Reuse {
    Reuse {
        interval: millis(rotation.reuse_interval),
        anchor: match rotation.reuse_anchor {
            policy::ReuseAnchor::Released => ReuseAnchor::Released,
            policy::ReuseAnchor::Acquired => ReuseAnchor::Acquired,
        },
        scope: match rotation.reuse_scope {
            policy::ReuseScope::EndpointGroup => ReuseScope::EndpointGroup,
            policy::ReuseScope::Site => ReuseScope::Site,
        },
    }
}

fn proxy(proxy: &ProxyPolicy, names: &mut Names) -> Option<ProxyRules> {
    let bind = match proxy.mode {
        ProxyMode::None => return None,
        ProxyMode::Pool | ProxyMode::RegionMatch => None,
        ProxyMode::BindIdentity => {
            Some(BindPolicy { rebind_tolerance: millis(proxy.rebind_tolerance), max_rebinds_per_day: proxy.max_rebinds_per_day })
        }
    };
    let mut symbols = |texts: &[Arc<str>]| texts.iter().map(|text| names.symbol(text)).collect();
    let filter = ProxyFilter {
        kinds: symbols(&proxy.kinds),
        tags: symbols(&proxy.tags),
        providers: symbols(&proxy.providers),
        regions: symbols(&proxy.regions),
        same_region: proxy.matches_region(),
    };
    Some(ProxyRules { filter, bind })
}

fn actions(policy: &ActionPolicy) -> Rules {
    let rule = |rule: &policy::ActionRule| Rule {
        name: Arc::clone(&rule.name),
        outcomes: {
            let all = crate::plane::model::Outcome::ALL;
            let named: Vec<_> = all.into_iter().filter(|outcome| rule.outcomes.contains(*outcome)).collect();
            Outcomes::of(&named)
        },
        often: rule.count.map(|count| Often { gte: count.gte, within: millis(count.within) }),
        deed: match rule.action {
            Action::Cooldown(cooldown) => Deed::Cooldown(Ladder {
                base: millis(cooldown.base),
                multiplier: cooldown.multiplier,
                max: millis(cooldown.max),
                max_exponent: cooldown.max_exponent,
                reset_after: millis(cooldown.failure_reset_after),
            }),
            Action::Ban(term) => Deed::Ban(length(term)),
            Action::Quarantine(duration) => Deed::Quarantine(duration.map(millis)),
            Action::Expire => Deed::Expire,
        },
        scope: match rule.scope {
            policy::Scope::IdentityEndpoint => Scope::IdentityEndpoint,
            policy::Scope::IdentitySite => Scope::IdentitySite,
            policy::Scope::Identity => Scope::Identity,
            policy::Scope::Account => Scope::Account,
            policy::Scope::ProxySite => Scope::ProxySite,
            policy::Scope::Proxy => Scope::Proxy,
        },
    };
    let step = |step: &policy::Escalation| Escalation {
        gte: step.bans.gte,
        within: millis(step.bans.within),
        length: length(step.duration),
    };
    let health = &policy.health;
    let limits = HealthLimits {
        endpoint_low_score: health.endpoint_low_score,
        endpoint_low_min_samples: health.endpoint_low_min_samples,
        endpoint_low_cooldown: millis(health.endpoint_low_cooldown),
        quarantine_score: health.quarantine_score,
        quarantine_min_samples: health.quarantine_min_samples,
        quarantine_duration: millis(health.quarantine_duration),
    };
    Rules::new(policy.rules.iter().map(rule).collect(), policy.escalation.iter().map(step).collect(), limits)
}

fn length(term: Term) -> Length {
    match term {
        Term::For(duration) => Length::For(millis(duration)),
        Term::Permanent => Length::Forever,
    }
}

fn observations(policy: &policy::Observations) -> Observations {
    let mut table = Observations::default();
    for outcome in crate::plane::model::Outcome::ALL {
        if let Some(points) = policy.identity(outcome) {
            table.set(outcome, points);
        }
    }
    table
}

fn breaker_numbers(policy: &BreakerPolicy) -> BreakerNumbers {
    BreakerNumbers {
        enabled: policy.enabled,
        window: millis(policy.window),
        buckets: policy.buckets,
        min_requests: policy.min_requests,
        risk_ratio: policy.trip.risk_ratio_gte,
        captcha_identities: policy.trip.distinct_captcha_identities_gte,
        success_ratio: policy.trip.success_ratio_lte,
        open: millis(policy.open_duration),
        max_open: millis(policy.max_open_duration),
        reset_opens_after: millis(policy.reset_open_count_after),
        probes: policy.half_open.probe_leases_per_10s,
        close_min_samples: policy.half_open.close_min_samples,
        close_success_ratio: policy.half_open.close_success_ratio_gte,
        revert: match policy.revert_recent_cooldowns {
            Revert::None => RevertCooldowns::None,
            Revert::Endpoint => RevertCooldowns::Endpoint,
            Revert::All => RevertCooldowns::All,
        },
    }
}
