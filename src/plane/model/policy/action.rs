//! Action policy: what an outcome does to the identity, its account and the proxy (wire contract, section 27).

use std::time::Duration;

use serde_json::Value;

use super::Policy;
use super::duration::{LONGEST, Term};
use super::error::PolicyError;
use super::head::{Head, KEYS, Kind};
use super::health::{self, CrossAttribution, Health};
use super::read::{At, Field, Table};
use super::rule::{self, Action, ActionRule, Cooldown, Count, Outcomes, Scope};
use crate::plane::model::Outcome;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

/// Most rules of one policy.
const MAX_RULES: usize = 500;

/// Most steps of an escalation.
const MAX_STEPS: usize = 64;

/// The policy.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ActionPolicy {
    pub(crate) head: Head,
    pub(crate) mode: Mode,
    /// What an identity is after its ban.
    pub(crate) ban_expiry_state: BanExpiry,
    pub(crate) rules: Vec<ActionRule>,
    pub(crate) escalation: Vec<Escalation>,
    pub(crate) health: Health,
    pub(crate) cross_attribution: CrossAttribution,
}

/// Whether actions are done or only noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Enforce,
    Shadow,
}

/// The state after a ban.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BanExpiry {
    Pending,
    Active,
}

/// After so many bans within so long, this one included, the ban takes this long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Escalation {
    pub(crate) bans: Count,
    pub(crate) duration: Term,
}

impl ActionPolicy {
    /// How long after a failure the next one starts a new streak: the longest of the cool-down rules, 1 h without any.
    #[cfg(test)]
    pub(crate) fn failure_reset(&self) -> Duration {
        let reset = |rule: &ActionRule| match rule.action {
            Action::Cooldown(cooldown) => Some(cooldown.failure_reset_after),
            Action::Ban(_) | Action::Quarantine(_) | Action::Expire => None,
        };
        self.rules.iter().filter_map(reset).max().unwrap_or(HOUR)
    }
}

impl Default for ActionPolicy {
    fn default() -> Self {
        let rule = |name: &str, outcome, action, scope| ActionRule {
            name: name.into(),
            outcomes: Outcomes::of(outcome),
            count: None,
            action,
            scope,
        };
        let third = |rule: ActionRule, within| ActionRule { count: Some(Count { gte: 3, within }), ..rule };
        let doubling = |base, max| Action::Cooldown(Cooldown { multiplier: 2.0, max, ..Cooldown::constant(base) });
        let constant = |base| Action::Cooldown(Cooldown::constant(base));
        let proxy = Action::Cooldown(Cooldown { max: 30 * MINUTE, ..Cooldown::constant(2 * MINUTE) });
        let ban = |hours| Action::Ban(Term::For(hours * HOUR));
        let step = |gte, days, duration| Escalation { bans: Count { gte, within: days * DAY }, duration };
        Self {
            head: Head::built_in(Kind::Action),
            mode: Mode::Enforce,
            ban_expiry_state: BanExpiry::Pending,
            rules: vec![
                rule("rate-limited-cooldown", Outcome::RateLimited, doubling(MINUTE, 30 * MINUTE), Scope::IdentityEndpoint),
                third(rule("empty-cooldown", Outcome::Empty, constant(5 * MINUTE), Scope::IdentityEndpoint), 10 * MINUTE),
                rule("captcha-cooldown", Outcome::Captcha, doubling(30 * MINUTE, 6 * HOUR), Scope::IdentitySite),
                third(rule("captcha-ban", Outcome::Captcha, ban(12), Scope::Identity), DAY),
                rule("auth-invalid-expire", Outcome::AuthInvalid, Action::Expire, Scope::Identity),
                rule("banned-account", Outcome::Banned, Action::Ban(Term::Permanent), Scope::Account),
                rule("proxy-error-cooldown", Outcome::ProxyError, proxy, Scope::ProxySite),
            ],
            escalation: vec![step(2, 7, Term::For(72 * HOUR)), step(3, 30, Term::Permanent)],
            health: Health::default(),
            cross_attribution: CrossAttribution::default(),
        }
    }
}

impl Policy for ActionPolicy {
    const KIND: Kind = Kind::Action;

    fn head(&self) -> &Head {
        &self.head
    }

    fn read(document: &Value) -> Result<Self, PolicyError> {
        let [name, description, bind] = KEYS;
        let at = At::top(Self::KIND, document);
        let keys = [name, description, bind, "mode", "ban_expiry_state", "rules", "escalation", "health", "cross_attribution"];
        let top = Table::of(document, at, &keys)?;
        Ok(Self {
            head: Head::read(&top)?,
            mode: top.field("mode").choice(&[("enforce", Mode::Enforce), ("shadow", Mode::Shadow)])?.unwrap_or(Mode::Enforce),
            ban_expiry_state: top
                .field("ban_expiry_state")
                .choice(&[("pending", BanExpiry::Pending), ("active", BanExpiry::Active)])?
                .unwrap_or(BanExpiry::Pending),
            rules: top.field("rules").items(MAX_RULES)?.into_iter().map(rule::read).collect::<Result<_, _>>()?,
            escalation: escalation(&top.field("escalation"))?,
            health: health::health(&top)?,
            cross_attribution: health::cross_attribution(&top)?,
        })
    }
}

fn escalation(field: &Field<'_>) -> Result<Vec<Escalation>, PolicyError> {
    let mut steps: Vec<Escalation> = Vec::new();
    for item in field.items(MAX_STEPS)? {
        let at = item.at.clone();
        let missing = || at.missing("a table with when and duration");
        let table = item.table(&["when", "duration"])?.ok_or_else(missing)?;
        let bans = table.table("when", &["bans"])?.field("bans").required("a table with gte and within")?;
        let place = bans.at.clone();
        let bans = rule::counted(bans, SECOND)?;
        if steps.iter().any(|step| step.bans == bans) {
            return Err(place.wrong("the same as in a step before", "one step for a number of bans within a time"));
        }
        let duration = table.field("duration").required("how long the ban is then, such as \"72h\" or \"permanent\"")?;
        let duration = duration.term(Duration::from_millis(1)..=LONGEST)?.ok_or_else(missing)?;
        steps.push(Escalation { bans, duration });
    }
    Ok(steps)
}
