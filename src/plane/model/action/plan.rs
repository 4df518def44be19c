//! The evaluation of an action policy for one report: every rule that matches, one winner for each subject.

use super::bans::BanHistory;
use super::rules::{Deed, Length, Rule, Rules, Scope, Who};
use crate::dice::Dice;
use crate::plane::model::streak::is_failure;
use crate::plane::model::{Blame, Ms, Outcome};

/// What is known when a report has been counted: all numbers are those after it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) now: Ms,
    pub(crate) outcome: Outcome,
    /// After cross attribution.
    pub(crate) blame: Blame,
    /// Whether the identity still waits for its first success.
    pub(crate) pending: bool,
    pub(crate) has_proxy: bool,
    pub(crate) streaks: Streaks,
    /// The identity's health in the endpoint group of the lease.
    pub(crate) endpoint: Health,
    /// The identity's health everywhere.
    pub(crate) global: Health,
    /// How long the identity still cools down in the group, in milliseconds.
    pub(crate) endpoint_cooldown_left: Ms,
    pub(crate) identity_bans: &'a BanHistory,
    /// `None` if the identity belongs to no account.
    pub(crate) account_bans: Option<&'a BanHistory>,
}

/// Failures in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Streaks {
    /// Of the identity in the group.
    pub(crate) endpoint: u32,
    /// Of the identity everywhere.
    pub(crate) identity: u32,
    /// Of the proxy on the site.
    pub(crate) proxy: u32,
}

/// A score as it stands now, and how much it rests on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Health {
    pub(crate) points: f64,
    pub(crate) samples: u32,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// A pending identity becomes active.
    Activate,
    /// In milliseconds. Shorter than what runs already: to be ignored.
    Cooldown(Ms),
    /// In milliseconds.
    Quarantine(Ms),
    Expire,
    Ban(Length),
}

/// What asked for an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Rule,
    Health,
    Lifecycle,
    /// A rule, whose ban was made longer by the bans before it.
    Escalation,
}

/// One action planned for a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Planned<'a> {
    pub(crate) act: Act,
    pub(crate) scope: Scope,
    pub(crate) source: Source,
    /// The rule's name, or `health.endpoint_low`, `health.quarantine`, `lifecycle.activate`.
    pub(crate) rule: &'a str,
    /// The rule's place in its policy, from 0.
    pub(crate) rule_index: Option<usize>,
}

/// At most one action for each subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Plan<'a> {
    pub(crate) identity: Option<Planned<'a>>,
    pub(crate) account: Option<Planned<'a>>,
    pub(crate) proxy: Option<Planned<'a>>,
}

impl Act {
    /// The contract's order: activate 0, cooldown 1, quarantine 2, expire 3, ban 4, ban for ever 5.
    pub(crate) const fn severity(self) -> u8 {
        match self {
            Self::Activate => 0,
            Self::Cooldown(_) => 1,
            Self::Quarantine(_) => 2,
            Self::Expire => 3,
            Self::Ban(Length::For(_)) => 4,
            Self::Ban(Length::Forever) => 5,
        }
    }

    /// How long it lasts; nothing for what has no end of its own.
    pub(crate) const fn length(self) -> Option<Length> {
        match self {
            Self::Activate | Self::Expire => None,
            Self::Cooldown(length) | Self::Quarantine(length) => Some(Length::For(length)),
            Self::Ban(length) => Some(length),
        }
    }

    /// When it ends if it begins now; nothing for what has no end.
    pub(crate) const fn until(self, now: Ms) -> Option<Ms> {
        match self.length() {
            Some(Length::For(length)) => Some(now.saturating_add(length)),
            _ => None,
        }
    }
}

impl<'a> Plan<'a> {
    /// The actions planned.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Planned<'a>> {
        [&self.identity, &self.account, &self.proxy].into_iter().flatten()
    }

    /// Keeps the heavier of two: by severity, then the longer, then the broader; what came first stays.
    fn consider(&mut self, planned: Planned<'a>) {
        let place = match planned.scope.who() {
            Who::Identity => &mut self.identity,
            Who::Account => &mut self.account,
            Who::Proxy => &mut self.proxy,
        };
        if place.is_none_or(|held| planned.rank() > held.rank()) {
            *place = Some(planned);
        }
    }
}

impl Planned<'_> {
    const fn rank(&self) -> (u8, Option<Length>, Scope) {
        (self.act.severity(), self.act.length(), self.scope)
    }
}

impl Rules {
    /// Plans what a report leads to. `count` says how often its outcome met a subject within so many milliseconds, the
    /// report included; [`Rules::counted`] names all it may be asked for.
    pub(crate) fn plan(&self, facts: &Facts<'_>, count: impl Fn(Who, Ms) -> u32, dice: &mut Dice) -> Plan<'_> {
        let mut plan = Plan::default();
        if self.any.has(facts.outcome) {
            for (index, rule) in self.rules.iter().enumerate() {
                if self.matches(rule, facts, &count) {
                    plan.consider(self.planned(index, rule, facts, dice));
                }
            }
        }
        if facts.blame.has_identity() || is_failure(facts.outcome) {
            self.consider_health(&mut plan, facts);
        }
        self.escalate(&mut plan.identity, Some(facts.identity_bans), facts.now);
        self.escalate(&mut plan.account, facts.account_bans, facts.now);
        if facts.pending && facts.outcome == Outcome::Success {
            plan.consider(Planned {
                act: Act::Activate,
                scope: Scope::Identity,
                source: Source::Lifecycle,
                rule: "lifecycle.activate",
                rule_index: None,
            });
        }
        plan
    }

    fn matches(&self, rule: &Rule, facts: &Facts<'_>, count: impl Fn(Who, Ms) -> u32) -> bool {
        let who = rule.who(facts.account_bans.is_some());
        let blamed = match who {
            Who::Identity | Who::Account => facts.blame.has_identity(),
            Who::Proxy => facts.blame.has_proxy() && facts.has_proxy,
        };
        rule.outcomes.has(facts.outcome) && blamed && rule.often.is_none_or(|often| count(who, often.within) >= often.gte)
    }

    fn planned<'a>(&self, index: usize, rule: &'a Rule, facts: &Facts<'_>, dice: &mut Dice) -> Planned<'a> {
        let cools = matches!(rule.deed, Deed::Cooldown(_));
        let scope = match rule.scope {
            Scope::Account if facts.account_bans.is_none() && cools => Scope::IdentitySite,
            Scope::Account if facts.account_bans.is_none() => Scope::Identity,
            // An identity belongs to one site: the two are the same rest.
            Scope::Identity if cools => Scope::IdentitySite,
            scope => scope,
        };
        let streak = match scope {
            Scope::IdentityEndpoint => facts.streaks.endpoint,
            Scope::ProxySite | Scope::Proxy => facts.streaks.proxy,
            Scope::IdentitySite | Scope::Identity | Scope::Account => facts.streaks.identity,
        };
        let act = match rule.deed {
            Deed::Cooldown(ladder) => Act::Cooldown(ladder.length(streak, dice)),
            Deed::Quarantine(length) => Act::Quarantine(length.unwrap_or(self.limits.quarantine_duration)),
            Deed::Expire => Act::Expire,
            Deed::Ban(length) => Act::Ban(length),
        };
        Planned { act, scope, source: Source::Rule, rule: &rule.name, rule_index: Some(index) }
    }

    fn consider_health(&self, plan: &mut Plan<'_>, facts: &Facts<'_>) {
        let limits = &self.limits;
        let health = |act, scope, rule| Planned { act, scope, source: Source::Health, rule, rule_index: None };
        if facts.endpoint.points < limits.endpoint_low_score
            && facts.endpoint.samples >= limits.endpoint_low_min_samples
            && facts.endpoint_cooldown_left < limits.endpoint_low_cooldown
        {
            let act = Act::Cooldown(limits.endpoint_low_cooldown);
            plan.consider(health(act, Scope::IdentityEndpoint, "health.endpoint_low"));
        }
        if facts.global.points < limits.quarantine_score && facts.global.samples >= limits.quarantine_min_samples {
            let act = Act::Quarantine(limits.quarantine_duration);
            plan.consider(health(act, Scope::Identity, "health.quarantine"));
        }
    }

    /// Makes a temporary ban longer by the bans before it. After the winner is known: of two bans the longer wins, and
    /// every step lengthens both alike.
    fn escalate(&self, place: &mut Option<Planned<'_>>, history: Option<&BanHistory>, now: Ms) {
        if let (Some(planned), Some(history)) = (place, history)
            && let Act::Ban(length @ Length::For(_)) = planned.act
        {
            let escalated = history.escalate(length, now, &self.escalation);
            if escalated > length {
                planned.act = Act::Ban(escalated);
                planned.source = Source::Escalation;
            }
        }
    }
}
