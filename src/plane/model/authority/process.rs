//! What one accepted report does: classified, counted, judged (wire contract, sections 24 to 27).

use std::sync::Arc;

use super::site::{Holding, Outside, Site};
use crate::plane::model::action::{Facts, Health, Streaks, Who};
use crate::plane::model::counts::Counted;
use crate::plane::model::lease::{LeaseKey, Timeliness};
use crate::plane::model::score::Observations;
use crate::plane::model::signal::Seen;
use crate::plane::model::streak::{Step, Streak};
use crate::spinneret::Report;

/// The identity's streaks before a report.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Before {
    pub(super) endpoint: Streak,
    pub(super) identity: Streak,
}

impl Site {
    /// Processes a report of the lease or record at `key`.
    pub(super) fn process(&mut self, key: LeaseKey, report: &Report, outside: &mut Outside<'_>) {
        let now = outside.now;
        let Some(holding) = self.leases.get(key).map(|lease| lease.holding) else { return };
        let Some(group) = self.groups.get_mut(holding.group as usize) else { return };
        let rules = Arc::clone(&group.rules);
        let verdict = rules.classifier.classify(&Seen {
            uri: &report.uri,
            method: &report.method,
            http_status: u16::try_from(report.http_status).unwrap_or(0),
            business_code: &report.business_code,
            error_kind: &report.error_kind,
            markers: &report.markers,
            outcome_hint: &report.outcome_hint,
            latency_ms: u64::try_from(report.latency_ms).unwrap_or(0),
            response_bytes: u64::try_from(report.response_bytes).unwrap_or(0),
        });
        let outcome = verdict.outcome;
        let Some(counted) = self.leases.count_report(key, now) else { return };
        let is_timely = counted.timeliness == Timeliness::Timely;
        if counted.costs_quota && !rules.quota.is_empty() {
            group.states.entry(holding.identity).quota.count(&rules.quota, now);
        }
        self.journal.begin_report(outcome, verdict.rule_name);
        group.breaker.record(outcome, holding.identity, now, &rules.breaker);
        let is_suppressed = group.breaker.suppresses(now) && holding.probe.is_none();
        if is_timely && holding.probe.is_some() {
            group.breaker.record_probe(outcome);
        }
        if let Some(identity) = self.identities.get_mut(holding.identity as usize) {
            identity.books.reports += 1;
        }
        if is_timely && !is_suppressed {
            let blame = self.cross.attribute(outcome, verdict.blame, holding.identity, holding.proxy, now, &rules.cross);
            self.judge(&holding, &rules, (outcome, blame), outside);
        }
        if report.release {
            self.release_at(key, now);
        }
        if outcome.is_risk() {
            self.evaluate_after_risk(holding.group, now);
        }
        self.journal.end_report();
    }

    /// Health, streaks, counts, and the actions they lead to.
    fn judge(
        &mut self,
        holding: &Holding,
        rules: &super::rules::GroupRules,
        (outcome, blame): (crate::plane::model::Outcome, crate::plane::model::Blame),
        outside: &mut Outside<'_>,
    ) {
        let now = outside.now;
        let (Some(identity), Some(group)) =
            (self.identities.get_mut(holding.identity as usize), self.groups.get_mut(holding.group as usize))
        else {
            return;
        };
        let state = group.states.entry(holding.identity);
        let before = Before { endpoint: state.streak, identity: identity.streak };
        if let Some(points) = rules.observations.of_identity(outcome, blame) {
            state.score.observe(points, now, &rules.scores);
            identity.score.observe(points, now, &rules.scores);
        }
        let reset = rules.actions.failure_reset();
        let step = Step::of_identity(outcome, blame);
        let mut streaks =
            Streaks { endpoint: state.streak.take(step, now, reset), identity: identity.streak.take(step, now, reset), proxy: 0 };
        if let Some(proxy) = holding.proxy {
            let health = self.proxy_health.entry(proxy);
            if let Some(points) = Observations::of_proxy(outcome, blame) {
                health.score.observe(points, now, &rules.scores);
            }
            streaks.proxy = health.streak.take(Step::of_proxy(outcome, blame), now, reset);
        }
        let account = identity.account;
        let subject = |who| match (who, account, holding.proxy) {
            (Who::Account, Some(account), _) => Some(Counted::Account(account)),
            (Who::Account | Who::Identity, ..) => Some(Counted::Identity(holding.identity)),
            (Who::Proxy, _, proxy) => proxy.map(Counted::Proxy),
        };
        for (who, window) in rules.actions.counted(outcome, account.is_some()) {
            if let Some(subject) = subject(who) {
                self.counts.add(subject, outcome, window, now);
            }
        }
        let health = |score: &crate::plane::model::score::Score| Health {
            points: score.points(now, &rules.scores),
            samples: score.samples(),
        };
        let facts = Facts {
            now,
            outcome,
            blame,
            pending: identity.state == super::identity::State::Pending,
            has_proxy: holding.proxy.is_some(),
            streaks,
            endpoint: health(&state.score),
            global: health(&identity.score),
            endpoint_cooldown_left: state.cooldown.saturating_sub(now),
            identity_bans: &identity.bans,
            account_bans: account.and_then(|account| self.accounts.get(account as usize)).map(|account| &account.bans),
        };
        let counts = &self.counts;
        let count = |who, window| subject(who).map_or(0, |subject| counts.total(subject, outcome, window, now));
        let plan = rules.actions.plan(&facts, count, outside.dice);
        self.act(holding, &plan, before, rules, outside);
    }
}
