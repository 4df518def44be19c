//! One attempt to lease: breaker, session key, sampling, filters, proxy, and the lease itself (wire contract, section 21.2).

use std::sync::Arc;

use super::rules::GroupRules;
use super::site::{Holding, Outside, Rest, Site};
use crate::plane::model::Ms;
use crate::plane::model::breaker::Admission;
use crate::plane::model::lease::{LeaseKey, ReuseScope, busy_until, lease_limit};
use crate::plane::model::proxy_pool::{BindPolicy, BindStep, ProxyWish};
use crate::plane::model::ready::Lack;
use crate::plane::model::strategy::{Candidate, Strategy};

/// Rounds of sampling.
const ROUNDS: usize = 3;
/// Candidates for whom no proxy was found; after so many the attempt ends.
const PROXY_FAILURES: u32 = 3;

/// How an identity keeps the proxy the file gives it where the policy binds none.
const OWN: BindPolicy = BindPolicy { rebind_tolerance: 300_000, max_rebinds_per_day: 0 };

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask<'a> {
    pub(super) group: u32,
    /// Empty: none.
    pub(super) session_key: &'a str,
    pub(super) count: usize,
}

/// A lease that was written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Picked {
    pub(super) lease: LeaseKey,
    pub(super) identity: u32,
    pub(super) proxy: Option<u32>,
    pub(super) is_sticky: bool,
    /// For a breaker, or because the identity has still to prove itself.
    pub(super) is_probe: bool,
}

/// Why nothing was leased, and when to ask again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nothing {
    Open(Ms),
    Lacks(Lack, Ms),
    /// The site has as many open leases as it keeps.
    Full,
}

/// Why one identity was not leased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unfit {
    /// In no queue.
    Out,
    /// Until this moment.
    Until(Ms),
    /// For want of a proxy.
    NoProxy,
}

impl Site {
    /// Leases up to as many as are asked for into `picked`; at least one, or says why not.
    pub(super) fn attempt(&mut self, ask: Ask<'_>, outside: &mut Outside<'_>, picked: &mut Vec<Picked>) -> Result<(), Nothing> {
        self.reap(outside);
        let now = outside.now;
        let Some(group) = self.group_mut(ask.group) else { return Err(Nothing::Full) };
        let rules = Arc::clone(&group.rules);
        let (admission, transition) = group.breaker.admit(now, &rules.breaker);
        if let Some(transition) = transition {
            self.moved(ask.group, &transition, now);
        }
        let probe = match admission {
            Admission::Free => None,
            Admission::Probe { span } => Some(span),
            Admission::Refused { hint } => return Err(Nothing::Open(hint)),
        };
        let (count, strategy) = if probe.is_some() { (1, Strategy::BestHealth) } else { (ask.count, rules.strategy) };
        let sticky = rules.sticky.filter(|_| !ask.session_key.is_empty() && ask.count == 1 && probe.is_none());
        let mut failures = 0;
        if let Some(ttl) = sticky
            && let Some(key) = self.sticky.get(ask.group, ask.session_key, now)
            && self.group(ask.group).is_some_and(|group| group.queue.contains(key))
        {
            match self.fit(key, ask.group, &rules, Rest::Skipped, outside) {
                Ok(proxy) => {
                    let mut lease = self.write(key, ask.group, proxy, probe, &rules, outside).ok_or(Nothing::Full)?;
                    lease.is_sticky = true;
                    self.sticky.set(ask.group, ask.session_key, key, ttl, now);
                    picked.push(lease);
                    return Ok(());
                }
                Err(Unfit::NoProxy) => failures += 1,
                Err(_) => {}
            }
        }
        let sample = Sample { group: ask.group, count, strategy, probe };
        self.sample(sample, &rules, outside, picked, &mut failures)?;
        if let (Some(ttl), Some(first)) = (sticky, picked.first()) {
            self.sticky.set(ask.group, ask.session_key, first.identity, ttl, now);
        }
        if picked.is_empty() {
            let lack = if failures > 0 { Lack::Proxy } else { Lack::Identity };
            let hint = self.group(ask.group).map_or(0, |group| group.queue.retry_hint(now, lack));
            return Err(Nothing::Lacks(lack, hint));
        }
        Ok(())
    }

    fn sample(
        &mut self,
        sample: Sample,
        rules: &GroupRules,
        outside: &mut Outside<'_>,
        picked: &mut Vec<Picked>,
        failures: &mut u32,
    ) -> Result<(), Nothing> {
        let mut keys = std::mem::take(&mut self.scratch.keys);
        let mut candidates = std::mem::take(&mut self.scratch.candidates);
        let mut used = std::mem::take(&mut self.scratch.used);
        used.clear();
        let mut result = Ok(());
        'rounds: for _ in 0..ROUNDS {
            if picked.len() >= sample.count || *failures >= PROXY_FAILURES {
                break;
            }
            let want = rules.sample.max(sample.count - picked.len());
            keys.clear();
            let Some(group) = self.group(sample.group) else { break };
            let found = group.queue.due(outside.now, want, |key| used.contains(&key), &mut keys);
            candidates.clear();
            let reads_scores = sample.strategy.reads_scores();
            candidates.extend(keys.iter().filter_map(|key| self.candidate(*key, sample.group, rules, reads_scores, outside.now)));
            while picked.len() < sample.count && *failures < PROXY_FAILURES {
                let cursor = self.group(sample.group).and_then(|group| group.cursor);
                let Some(place) = sample.strategy.choose(&candidates, rules.probe_factor, cursor, outside.dice) else { break };
                let key = candidates.remove(place).key;
                match self.fit(key, sample.group, rules, Rest::Counts, outside) {
                    Ok(proxy) => match self.write(key, sample.group, proxy, sample.probe, rules, outside) {
                        Some(lease) => {
                            used.push(key);
                            picked.push(lease);
                        }
                        None => {
                            // What was leased before this one is good.
                            result = if picked.is_empty() { Err(Nothing::Full) } else { Ok(()) };
                            break 'rounds;
                        }
                    },
                    Err(unfit) => {
                        let Some(group) = self.group_mut(sample.group) else { break 'rounds };
                        match unfit {
                            Unfit::Out => {
                                group.queue.remove(key);
                            }
                            Unfit::Until(at) => {
                                group.queue.set(key, at);
                                if let Some(identity) = self.identity_mut(key) {
                                    identity.is_pushed |= identity.occupancy.active() > 0;
                                }
                            }
                            Unfit::NoProxy => {
                                used.push(key);
                                *failures += 1;
                            }
                        }
                    }
                }
            }
            if found < want {
                break;
            }
        }
        self.scratch.keys = keys;
        self.scratch.candidates = candidates;
        self.scratch.used = used;
        result
    }

    fn candidate(&self, key: u32, group: u32, rules: &GroupRules, reads_scores: bool, now: Ms) -> Option<Candidate> {
        let standing = self.identity(key)?.state.standing();
        let state = self.group(group)?.states.get(key);
        // A score drifts with time: to ask costs more than all else here.
        let score = state.filter(|_| reads_scores).map_or(rules.scores.baseline, |state| state.score.points(now, &rules.scores));
        Some(Candidate { key, standing, score, last_used: state.map_or(0, |state| state.last_used) })
    }

    /// Whether an identity can be leased now, and through which proxy.
    pub(super) fn fit(
        &mut self,
        key: u32,
        group: u32,
        rules: &GroupRules,
        rest: Rest,
        outside: &mut Outside<'_>,
    ) -> Result<Option<u32>, Unfit> {
        let now = outside.now;
        let identity = self.identity(key).ok_or(Unfit::Out)?;
        if !identity.state.is_scheduled() {
            return Err(Unfit::Out);
        }
        let at = self.available(key, group, rest, now);
        if at > now {
            return Err(Unfit::Until(at));
        }
        let ttl = rules.terms.ttl;
        if identity.occupancy.active() >= lease_limit(identity.state.standing(), rules.concurrent, rules.probe_leases) {
            return Err(Unfit::Until(busy_until(now, ttl)));
        }
        if !rules.quota.is_empty()
            && let Some(state) = self.group(group).and_then(|group| group.states.get(key))
        {
            let factor = rules.warmup.factor(identity.activated, now);
            state.quota.admits(&rules.quota, factor, now).map_err(Unfit::Until)?;
        }
        let (region, binding) = (identity.region, identity.binding);
        let bind = rules.proxy.as_ref().and_then(|proxy| proxy.bind).or(identity.own_proxy.map(|_| OWN));
        let except = match bind {
            None => None,
            Some(policy) => match binding.step(&self.pool, outside.catalogue.traits(), policy, ttl, now) {
                BindStep::Use(proxy) => return Ok(Some(proxy)),
                BindStep::Wait(at) => return Err(Unfit::Until(at)),
                BindStep::Choose { except } => except,
            },
        };
        let Some(proxy) = &rules.proxy else { return if bind.is_some() { Err(Unfit::NoProxy) } else { Ok(None) } };
        let wish = ProxyWish { filter: &proxy.filter, region, except, ttl };
        let health = &self.proxy_health;
        let score = |key: u32| health.get(key).map_or(rules.scores.baseline, |health| health.score.points(now, &rules.scores));
        let chosen = self.pool.choose(outside.catalogue.traits(), wish, score, now, outside.dice).ok_or(Unfit::NoProxy)?;
        Ok(Some(chosen))
    }

    /// Writes the lease; `None` when no more can be open.
    pub(super) fn write(
        &mut self,
        key: u32,
        group: u32,
        proxy: Option<u32>,
        probe: Option<Ms>,
        rules: &GroupRules,
        outside: &mut Outside<'_>,
    ) -> Option<Picked> {
        let now = outside.now;
        let place = self.groups.get_mut(group as usize)?;
        let identity = self.identities.get_mut(key as usize)?;
        let is_probe = probe.is_some() || identity.state.standing() == crate::plane::model::strategy::Standing::Pending;
        let state = place.states.entry(key);
        let until = match rules.reuse.scope {
            ReuseScope::EndpointGroup => &mut state.reuse,
            ReuseScope::Site => &mut identity.site_reuse,
        };
        let mark = rules.reuse.begin(until, now);
        let holding =
            Holding { identity: key, group, proxy, probe, acquired: now, concurrent: rules.concurrent, reuse: rules.reuse, mark };
        let (lease, expires) = match self.leases.begin(rules.terms, holding, now, outside.dice) {
            Ok((lease, written)) => (lease, written.until()),
            Err(_) => {
                mark.undo(until);
                return None;
            }
        };
        if !rules.quota.is_empty() {
            state.quota.count(&rules.quota, now);
        }
        state.last_used = now;
        identity.occupancy.begin(rules.concurrent, expires);
        identity.is_pushed |= identity.occupancy.active() > 1;
        identity.books.acquired += 1;
        if let Some(proxy) = proxy {
            self.pool.begin(proxy);
            if rules.proxy.as_ref().is_some_and(|proxy| proxy.bind.is_some()) {
                identity.binding.bind(proxy, now);
            }
        }
        if probe.is_some() {
            place.breaker.issue_probe();
        }
        place.cursor = Some(key);
        self.place(key, group, now);
        Some(Picked { lease, identity: key, proxy, is_sticky: false, is_probe })
    }
}

/// What a sampling is for.
#[derive(Debug, Clone, Copy)]
struct Sample {
    group: u32,
    count: usize,
    strategy: Strategy,
    probe: Option<Ms>,
}
