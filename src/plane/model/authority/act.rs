//! Planned actions carried out, breakers that move, and what both change (wire contract, sections 20, 27 and 28).

use super::identity::{AccountState, State, until};
use super::process::Before;
use super::rules::GroupRules;
use super::site::{Holding, Outside, Site, Subject};
use crate::plane::model::Ms;
use crate::plane::model::action::{Act, Plan, Scope};
use crate::plane::model::breaker::{Applied, Reach, Transition};
use crate::plane::model::policy::{BanExpiry, Mode};
use std::sync::Arc;

impl Site {
    /// Carries out what a report led to, unless the policy only notes it.
    pub(super) fn act(&mut self, of: &Holding, plan: &Plan<'_>, before: Before, rules: &GroupRules, outside: &mut Outside<'_>) {
        if rules.mode == Mode::Shadow {
            self.note_shadow(of, plan, rules, outside);
            return;
        }
        for planned in plan.iter() {
            let stood = self.standing(of, planned.scope, outside);
            match planned.scope {
                Scope::IdentityEndpoint | Scope::IdentitySite | Scope::Identity => {
                    self.act_on_identity(of, planned.act, planned.scope, before, rules, outside.now);
                }
                Scope::Account => self.act_on_account(of, planned.act, outside.now),
                Scope::ProxySite | Scope::Proxy => self.act_on_proxy(of, planned.act, planned.scope, outside),
            }
            self.note_act(of, planned, stood, outside);
        }
    }

    fn act_on_identity(&mut self, of: &Holding, act: Act, scope: Scope, before: Before, rules: &GroupRules, now: Ms) {
        let key = of.identity;
        let Some(state) = self.identity(key).map(|identity| identity.state) else { return };
        match act {
            Act::Activate if state == State::Pending => self.move_identity(key, State::Active, now),
            Act::Activate => {}
            Act::Cooldown(length) if scope == Scope::IdentityEndpoint => {
                self.cool(of, Reach::Endpoint, now.saturating_add(length), before, rules, now);
            }
            Act::Cooldown(length) => self.cool(of, Reach::Site, now.saturating_add(length), before, rules, now),
            Act::Quarantine(length) => {
                if let Some(state) = state.quarantine(now.saturating_add(length)) {
                    self.move_identity(key, state, now);
                    self.books.cooled += 1;
                }
            }
            Act::Expire => {
                if let Some(state) = state.expire() {
                    self.move_identity(key, state, now);
                    self.books.cooled += 1;
                }
            }
            Act::Ban(length) => {
                if let Some(state) = state.ban(until(length, now)) {
                    self.move_identity(key, state, now);
                    self.books.cooled += 1;
                    if let Some(identity) = self.identity_mut(key) {
                        identity.bans.record(now);
                        identity.books.bans += 1;
                    }
                }
            }
        }
    }

    /// Cools an identity down, and remembers that in case the breaker takes it back.
    fn cool(&mut self, of: &Holding, reach: Reach, until: Ms, before: Before, rules: &GroupRules, now: Ms) {
        let key = of.identity;
        let (Some(identity), Some(group)) = (self.identities.get_mut(key as usize), self.groups.get_mut(of.group as usize))
        else {
            return;
        };
        let (running, previous_streak) = match reach {
            Reach::Endpoint => (&mut group.states.entry(key).cooldown, before.endpoint),
            Reach::Site => (&mut identity.site_cooldown, before.identity),
        };
        if until <= *running {
            return;
        }
        let previous_until = std::mem::replace(running, until);
        identity.books.cooldowns += 1;
        self.books.cooled += 1;
        group
            .breaker
            .note_cooldown(Applied { at: now, identity: key, reach, until, previous_until, previous_streak }, &rules.breaker);
        self.requeue(key, of.group, now);
    }

    fn act_on_account(&mut self, of: &Holding, act: Act, now: Ms) {
        let Some(account) = self.identity(of.identity).and_then(|identity| identity.account) else { return };
        let Some(place) = self.accounts.get_mut(account as usize) else { return };
        match act {
            Act::Cooldown(length) => {
                let until = now.saturating_add(length);
                if until > place.cooldown {
                    place.cooldown = until;
                    self.books.cooled += place.members.len() as u64;
                }
                self.requeue(of.identity, of.group, now);
            }
            Act::Ban(length) => {
                let end = until(length, now);
                if let Some(state) = place.state.ban(end) {
                    place.state = state;
                    place.bans.record(now);
                    if let Some(end) = end {
                        self.ends.insert((end, Subject::Account(account)));
                    }
                }
                self.ban_members(account, end, now);
            }
            Act::Activate | Act::Quarantine(_) | Act::Expire => {}
        }
    }

    fn ban_members(&mut self, account: u32, end: Option<Ms>, now: Ms) {
        let members = self.accounts.get_mut(account as usize).map(|account| std::mem::take(&mut account.members));
        let members = members.unwrap_or_default();
        for key in &members {
            if let Some(state) = self.identity(*key).and_then(|identity| identity.state.ban(end)) {
                self.move_identity(*key, state, now);
                self.books.cooled += 1;
                if let Some(identity) = self.identity_mut(*key) {
                    identity.books.bans += 1;
                }
            }
        }
        if let Some(account) = self.accounts.get_mut(account as usize) {
            account.members = members;
        }
    }

    fn act_on_proxy(&mut self, of: &Holding, act: Act, scope: Scope, outside: &mut Outside<'_>) {
        let Some(proxy) = of.proxy else { return };
        let now = outside.now;
        let is_cooled = match act {
            Act::Cooldown(length) if scope == Scope::Proxy => outside.catalogue.cool(proxy, now.saturating_add(length)),
            Act::Cooldown(length) => {
                let until = now.saturating_add(length);
                let is_longer = until > self.pool.cooldown(proxy);
                if is_longer {
                    self.pool.cool(proxy, until, now);
                }
                is_longer
            }
            Act::Quarantine(length) => outside.catalogue.quarantine(proxy, now.saturating_add(length)),
            Act::Ban(length) => outside.catalogue.ban(proxy, until(length, now)),
            Act::Activate | Act::Expire => false,
        };
        self.books.cooled += u64::from(is_cooled);
    }

    /// Ends the bans and quarantines whose time is over.
    pub(super) fn end_states(&mut self, now: Ms) {
        while let Some((at, subject)) = self.ends.first().copied().filter(|(at, _)| *at <= now) {
            self.ends.pop_first();
            match subject {
                Subject::Identity(key) => {
                    let Some(identity) = self.identity(key).filter(|identity| identity.state.end() == Some(at)) else { continue };
                    let state = match identity.state {
                        State::Banned(_) => self.after_ban(key),
                        _ => State::Pending,
                    };
                    self.move_identity(key, state, now);
                }
                Subject::Account(key) => {
                    let Some(account) = self.accounts.get_mut(key as usize) else { continue };
                    if account.state != AccountState::Banned(Some(at)) {
                        continue;
                    }
                    account.state = AccountState::Active;
                    let members = std::mem::take(&mut account.members);
                    members.iter().for_each(|member| self.enqueue(*member, now));
                    if let Some(account) = self.accounts.get_mut(key as usize) {
                        account.members = members;
                    }
                }
            }
        }
    }

    /// The state after a ban: the policy of the `_default` group of the identity's client says.
    fn after_ban(&self, key: u32) -> State {
        let default = self
            .identity(key)
            .and_then(|identity| self.memberships.get(identity.membership as usize))
            .and_then(|membership| self.clients.get(*membership.clients.first()? as usize))
            .and_then(|client| self.group(*client.groups.first()?));
        match default.map(|group| group.rules.ban_expiry) {
            Some(BanExpiry::Active) => State::Active,
            Some(BanExpiry::Pending) | None => State::Pending,
        }
    }

    /// Evaluates a breaker after a risk report.
    pub(super) fn evaluate_after_risk(&mut self, group: u32, now: Ms) {
        let Some(place) = self.groups.get_mut(group as usize) else { return };
        if let Some(transition) = place.breaker.evaluate_after_risk(now, &place.rules.breaker) {
            self.moved(group, &transition, now);
        }
    }

    /// Evaluates the breakers that are due, as the job of every five seconds does.
    pub(super) fn evaluate(&mut self, now: Ms) {
        for index in 0..self.groups.len() {
            let Some(place) = self.groups.get_mut(index) else { break };
            if !place.breaker.wants_evaluation(now) {
                continue;
            }
            let rules = Arc::clone(&place.rules);
            if let (Some(transition), Ok(group)) = (place.breaker.evaluate(now, &rules.breaker), u32::try_from(index)) {
                self.moved(group, &transition, now);
            }
        }
    }

    /// A breaker moved: its cooldowns are taken back, and `_runtime` has to say so.
    pub(super) fn moved(&mut self, group: u32, transition: &Transition, now: Ms) {
        self.has_moved = true;
        self.note_move(group, transition, now);
        for revert in &transition.reverts {
            let key = revert.identity;
            let (Some(identity), Some(place)) = (self.identities.get_mut(key as usize), self.groups.get_mut(group as usize))
            else {
                continue;
            };
            let (running, streak) = match revert.reach {
                Reach::Endpoint => {
                    let state = place.states.entry(key);
                    (&mut state.cooldown, &mut state.streak)
                }
                Reach::Site => (&mut identity.site_cooldown, &mut identity.streak),
            };
            if *running == revert.applied_until {
                *running = revert.previous_until;
                *streak = revert.previous_streak;
                self.enqueue(key, now);
            }
        }
    }
}
