//! A journal of what reports and time led to: actions that took effect, breakers that moved.
//!
//! Kept only after [`Plane::keep_effects`]; decides nothing. An action counts when it changed where its subject stands, so
//! what an action asked for and did not get is not in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Plane;
use super::identity::{AccountState, State};
use super::rules::GroupRules;
use super::site::{Holding, Outside, Site};
use crate::plane::model::action::{Act, Length, Plan, Planned, Scope, Who};
use crate::plane::model::breaker::{Phase, Transition, Trigger};
use crate::plane::model::policy::Mode;
use crate::plane::model::{Ms, Outcome};

/// Something that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Effect {
    pub(crate) at: Ms,
    pub(crate) site: Arc<str>,
    pub(crate) subject: Subject,
    pub(crate) change: Change,
    /// When it ends by itself.
    pub(crate) until: Option<Ms>,
    /// The report it came from; nothing where time alone led to it.
    pub(crate) cause: Option<Cause>,
}

/// Whom or what it happened to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    Identity(Arc<str>),
    Account(Arc<str>),
    Proxy(Arc<str>),
    Group { client: Arc<str>, group: Arc<str> },
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// An action of the policy.
    Acted {
        act: Act,
        scope: Scope,
        /// The rule of the action policy, or the limit of health, that asked for it; may be empty.
        rule: String,
        /// The policy only notes what it would do.
        is_shadow: bool,
    },
    /// A breaker moved.
    Moved {
        to: Phase,
        trigger: Trigger,
        reason: Arc<str>,
        /// Cooldowns it took back.
        taken_back: usize,
    },
}

/// The report behind an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cause {
    pub(crate) outcome: Outcome,
    /// The rule of the signal policy that judged it; empty without one.
    pub(crate) rule: String,
}

/// A site's journal.
#[derive(Debug, Default)]
pub(super) struct Journal {
    is_kept: bool,
    /// The report at hand.
    cause: Option<Cause>,
    effects: Vec<Effect>,
    outcomes: BTreeMap<Outcome, u64>,
}

/// How many of a site's identities stand where.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Standings {
    /// By the name of the state.
    pub(crate) states: BTreeMap<&'static str, usize>,
    /// Those of them that could be leased somewhere right now, if nobody held them.
    pub(crate) ready: usize,
    /// Reports by what they stood for.
    pub(crate) outcomes: BTreeMap<Outcome, u64>,
}

/// Where a subject stands, as far as actions change it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Standing {
    Identity { state: State, endpoint: Ms, site: Ms },
    Account { state: AccountState, cooldown: Ms },
    Proxy { state: Option<super::catalogue::ProxyState>, site: Ms, everywhere: Ms },
}

impl Plane {
    /// Begins to write effects down.
    pub(crate) fn keep_effects(&mut self) {
        self.sites.iter_mut().for_each(|site| site.journal.is_kept = true);
    }

    /// What was written down since this was last asked, in the order it happened on each site.
    pub(crate) fn take_effects(&mut self) -> Vec<Effect> {
        self.sites.iter_mut().flat_map(|site| std::mem::take(&mut site.journal.effects)).collect()
    }

    /// How the identities of a site stand; nothing for a site that is not there.
    pub(crate) fn standings(&self, site: &str, now: Ms) -> Option<Standings> {
        self.by_name.get(site).and_then(|key| self.sites.get(*key as usize)).map(|site| site.standings(now))
    }
}

impl Journal {
    /// The next effects come from a report of this outcome.
    pub(super) fn begin_report(&mut self, outcome: Outcome, rule: &str) {
        if self.is_kept {
            *self.outcomes.entry(outcome).or_default() += 1;
            self.cause = Some(Cause { outcome, rule: rule.to_owned() });
        }
    }

    /// The report is processed.
    pub(super) fn end_report(&mut self) {
        self.cause = None;
    }
}

impl Site {
    /// Where the subject of an action stands before it is carried out; nothing when no journal is kept.
    pub(super) fn standing(&self, of: &Holding, scope: Scope, outside: &Outside<'_>) -> Option<Standing> {
        if !self.journal.is_kept {
            return None;
        }
        let identity = self.identity(of.identity)?;
        Some(match scope.who() {
            Who::Identity => {
                let endpoint = self.group(of.group).and_then(|group| group.states.get(of.identity));
                let endpoint = endpoint.map_or(0, |state| state.cooldown);
                Standing::Identity { state: identity.state, endpoint, site: identity.site_cooldown }
            }
            Who::Account => {
                let account = self.accounts.get(identity.account? as usize)?;
                Standing::Account { state: account.state, cooldown: account.cooldown }
            }
            Who::Proxy => {
                let proxy = of.proxy?;
                let everywhere = outside.catalogue.traits().get(proxy as usize).map_or(0, |traits| traits.cooldown);
                Standing::Proxy { state: outside.catalogue.state(proxy), site: self.pool.cooldown(proxy), everywhere }
            }
        })
    }

    /// Writes an action down if its subject does not stand where it stood.
    pub(super) fn note_act(&mut self, of: &Holding, planned: &Planned<'_>, before: Option<Standing>, outside: &Outside<'_>) {
        if before.is_some() && before != self.standing(of, planned.scope, outside) {
            self.note_planned(of, planned, false, outside);
        }
    }

    /// Writes down what a policy in the mode `shadow` would do.
    pub(super) fn note_shadow(&mut self, of: &Holding, plan: &Plan<'_>, rules: &GroupRules, outside: &Outside<'_>) {
        if self.journal.is_kept && rules.mode == Mode::Shadow {
            for planned in plan.iter() {
                self.note_planned(of, planned, true, outside);
            }
        }
    }

    /// Writes down that a breaker moved.
    pub(super) fn note_move(&mut self, group: u32, transition: &Transition, now: Ms) {
        if !self.journal.is_kept {
            return;
        }
        let Some(subject) = self.group_subject(group) else { return };
        let until = if let Phase::Open(until) = transition.to { until } else { None };
        let change = Change::Moved {
            to: transition.to,
            trigger: transition.trigger,
            reason: Arc::clone(&transition.reason),
            taken_back: transition.reverts.len(),
        };
        let cause = self.journal.cause.clone();
        self.journal.effects.push(Effect { at: now, site: Arc::clone(&self.name), subject, change, until, cause });
    }

    fn note_planned(&mut self, of: &Holding, planned: &Planned<'_>, is_shadow: bool, outside: &Outside<'_>) {
        let Some(identity) = self.identity(of.identity) else { return };
        let subject = match planned.scope.who() {
            Who::Identity => Some(Subject::Identity(Arc::clone(&identity.id))),
            Who::Account => {
                let account = identity.account.and_then(|account| self.accounts.get(account as usize));
                account.map(|account| Subject::Account(Arc::clone(&account.name)))
            }
            Who::Proxy => of.proxy.and_then(|key| outside.catalogue.get(key)).map(|proxy| Subject::Proxy(Arc::clone(&proxy.id))),
        };
        let Some(subject) = subject else { return };
        let change = Change::Acted { act: planned.act, scope: planned.scope, rule: planned.rule.to_owned(), is_shadow };
        let (until, cause) = (planned.act.until(outside.now), self.journal.cause.clone());
        self.journal.effects.push(Effect { at: outside.now, site: Arc::clone(&self.name), subject, change, until, cause });
    }

    fn group_subject(&self, group: u32) -> Option<Subject> {
        let client = self.clients.iter().find(|client| client.groups.contains(&group))?;
        Some(Subject::Group { client: Arc::clone(&client.name), group: Arc::clone(&self.group(group)?.name) })
    }

    fn standings(&self, now: Ms) -> Standings {
        let mut standings = Standings { outcomes: self.journal.outcomes.clone(), ..Standings::default() };
        for (key, identity) in (0_u32..).zip(&self.identities) {
            *standings.states.entry(identity.state.name()).or_default() += 1;
            let groups = self.memberships.get(identity.membership as usize).map_or(&[][..], |all| &all.groups);
            let rests = |group: &u32| {
                let state = self.group(*group).and_then(|group| group.states.get(key));
                let account = identity.account.and_then(|account| self.accounts.get(account as usize));
                let account = account.map_or(0, |account| account.cooldown.max(account.state.hinders_until(now)));
                state.map_or(0, |state| state.cooldown).max(identity.site_cooldown).max(account) > now
            };
            if identity.state.is_scheduled() && !groups.iter().all(rests) {
                standings.ready += 1;
            }
        }
        standings
    }
}

impl Change {
    /// What it is, in a word or two.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Acted { act: Act::Activate, .. } => "activate",
            Self::Acted { act: Act::Cooldown(_), .. } => "cooldown",
            Self::Acted { act: Act::Quarantine(_), .. } => "quarantine",
            Self::Acted { act: Act::Expire, .. } => "expire",
            Self::Acted { act: Act::Ban(Length::For(_)), .. } => "ban",
            Self::Acted { act: Act::Ban(Length::Forever), .. } => "ban for ever",
            Self::Moved { to: Phase::Open(_), .. } => "open",
            Self::Moved { to: Phase::HalfOpen, .. } => "half-open",
            Self::Moved { to: Phase::Closed, .. } => "close",
        }
    }
}
