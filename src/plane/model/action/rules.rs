//! The numbers of an action policy: rules, escalation of bans, and the limits below which health alone acts (wire contract,
//! section 27).

use super::bans::Escalation;
use super::ladder::Ladder;
use crate::plane::model::{Ms, Outcome};
use std::sync::Arc;

const MINUTE: Ms = 60_000;
const HOUR: Ms = 60 * MINUTE;

/// How long something lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Length {
    /// Milliseconds.
    For(Ms),
    Forever,
}

/// Where an action holds, from narrow to broad for each subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    IdentityEndpoint,
    IdentitySite,
    Identity,
    Account,
    ProxySite,
    Proxy,
}

/// Whom an action is done to; each gets one action per report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Who {
    Identity,
    Account,
    Proxy,
}

/// What a rule does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Deed {
    Cooldown(Ladder),
    /// For so many milliseconds; `None`: as long as the policy's health limits say.
    Quarantine(Option<Ms>),
    Expire,
    Ban(Length),
}

/// A set of outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Outcomes(u16);

/// So often within so many milliseconds, the report at hand included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Often {
    pub(crate) gte: u32,
    pub(crate) within: Ms,
}

/// One rule: when, and what then.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rule {
    pub(crate) name: Arc<str>,
    pub(crate) outcomes: Outcomes,
    /// Counts the outcome of the report at hand, whatever else the rule names.
    pub(crate) often: Option<Often>,
    pub(crate) deed: Deed,
    pub(crate) scope: Scope,
}

/// Where health alone acts; the defaults are the contract's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct HealthLimits {
    pub(crate) endpoint_low_score: f64,
    pub(crate) endpoint_low_min_samples: u32,
    pub(crate) endpoint_low_cooldown: Ms,
    pub(crate) quarantine_score: f64,
    pub(crate) quarantine_min_samples: u32,
    pub(crate) quarantine_duration: Ms,
}

/// A policy made ready to be asked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rules {
    pub(super) rules: Vec<Rule>,
    pub(super) escalation: Vec<Escalation>,
    pub(super) limits: HealthLimits,
    /// Every outcome some rule names: most reports match none and end here.
    pub(super) any: Outcomes,
    counted: Vec<(Outcome, Who, Ms)>,
    failure_reset: Ms,
}

impl Scope {
    /// Whom it belongs to.
    pub(crate) const fn who(self) -> Who {
        match self {
            Self::IdentityEndpoint | Self::IdentitySite | Self::Identity => Who::Identity,
            Self::Account => Who::Account,
            Self::ProxySite | Self::Proxy => Who::Proxy,
        }
    }
}

impl Outcomes {
    pub(crate) fn of(outcomes: &[Outcome]) -> Self {
        Self(outcomes.iter().fold(0, |set, outcome| set | 1 << *outcome as u16))
    }

    pub(crate) const fn has(self, outcome: Outcome) -> bool {
        self.0 & (1 << outcome as u16) != 0
    }
}

impl Rule {
    /// Whether the contract allows this deed in this scope.
    #[cfg(test)]
    pub(crate) const fn is_allowed(&self) -> bool {
        match self.deed {
            Deed::Cooldown(_) => true,
            Deed::Ban(_) => matches!(self.scope, Scope::Identity | Scope::Account | Scope::Proxy),
            Deed::Expire => matches!(self.scope, Scope::Identity),
            Deed::Quarantine(_) => matches!(self.scope, Scope::Identity | Scope::Proxy),
        }
    }

    /// Whom it acts on: an account's rule falls back to the identity that has none.
    pub(super) const fn who(&self, has_account: bool) -> Who {
        match self.scope.who() {
            Who::Account if !has_account => Who::Identity,
            who => who,
        }
    }
}

impl Default for HealthLimits {
    fn default() -> Self {
        Self {
            endpoint_low_score: 15.0,
            endpoint_low_min_samples: 10,
            endpoint_low_cooldown: 6 * HOUR,
            quarantine_score: 20.0,
            quarantine_min_samples: 10,
            quarantine_duration: 24 * HOUR,
        }
    }
}

impl Rules {
    pub(crate) fn new(rules: Vec<Rule>, escalation: Vec<Escalation>, limits: HealthLimits) -> Self {
        let any = Outcomes(rules.iter().fold(0, |set, rule| set | rule.outcomes.0));
        let mut counted: Vec<(Outcome, Who, Ms)> = Vec::new();
        for outcome in Outcome::ALL {
            let named = rules.iter().filter(|rule| rule.outcomes.has(outcome));
            counted.extend(named.filter_map(|rule| rule.often.map(|often| (outcome, rule.scope.who(), often.within))));
        }
        counted.sort_unstable();
        counted.dedup();
        let resets = rules.iter().filter_map(|rule| match rule.deed {
            Deed::Cooldown(ladder) => Some(ladder.reset_after),
            _ => None,
        });
        let failure_reset = resets.max().unwrap_or(HOUR);
        Self { rules, escalation, limits, any, counted, failure_reset }
    }

    /// How long after the last failure a streak begins anew, in milliseconds: the longest any cooldown rule asks for.
    pub(crate) const fn failure_reset(&self) -> Ms {
        self.failure_reset
    }

    /// What has to be counted for a report of this outcome before the rules are asked: subjects and windows, each once.
    pub(crate) fn counted(&self, outcome: Outcome, has_account: bool) -> impl Iterator<Item = (Who, Ms)> {
        self.counted.iter().filter(move |(counted, ..)| *counted == outcome).filter_map(move |(_, who, within)| match who {
            // The identity stands in for the account, and may have the same window on its own.
            Who::Account if !has_account => {
                let own = self.counted.binary_search(&(outcome, Who::Identity, *within)).is_ok();
                (!own).then_some((Who::Identity, *within))
            }
            who => Some((*who, *within)),
        })
    }
}

impl Default for Rules {
    /// The contract's default policy.
    fn default() -> Self {
        let rule = |name: &str, outcome, often: Option<(u32, Ms)>, deed, scope| Rule {
            name: name.into(),
            outcomes: Outcomes::of(&[outcome]),
            often: often.map(|(gte, within)| Often { gte, within }),
            deed,
            scope,
        };
        let cooldown = |base, multiplier, max| Deed::Cooldown(Ladder { base, multiplier, max, ..Ladder::default() });
        let rules = vec![
            rule("rate-limited", Outcome::RateLimited, None, cooldown(MINUTE, 2.0, 30 * MINUTE), Scope::IdentityEndpoint),
            rule(
                "empty-results",
                Outcome::Empty,
                Some((3, 10 * MINUTE)),
                cooldown(5 * MINUTE, 1.0, 24 * HOUR),
                Scope::IdentityEndpoint,
            ),
            rule("captcha", Outcome::Captcha, None, cooldown(30 * MINUTE, 2.0, 6 * HOUR), Scope::IdentitySite),
            rule("repeated-captcha", Outcome::Captcha, Some((3, 24 * HOUR)), Deed::Ban(Length::For(12 * HOUR)), Scope::Identity),
            rule("auth-invalid", Outcome::AuthInvalid, None, Deed::Expire, Scope::Identity),
            rule("banned", Outcome::Banned, None, Deed::Ban(Length::Forever), Scope::Account),
            rule("proxy-error", Outcome::ProxyError, None, cooldown(2 * MINUTE, 1.0, 30 * MINUTE), Scope::ProxySite),
        ];
        let escalation = vec![
            Escalation { gte: 2, within: 7 * 24 * HOUR, length: Length::For(72 * HOUR) },
            Escalation { gte: 3, within: 30 * 24 * HOUR, length: Length::Forever },
        ];
        Self::new(rules, escalation, HealthLimits::default())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn only_the_contracts_pairs_of_deed_and_scope_are_allowed() {
        use Scope::{Account, Identity, IdentityEndpoint, IdentitySite, Proxy, ProxySite};
        let scopes = [IdentityEndpoint, IdentitySite, Identity, Account, ProxySite, Proxy];
        let allowed = |deed| {
            scopes.map(|scope| Rule { name: "r".into(), outcomes: Outcomes::default(), often: None, deed, scope }.is_allowed())
        };
        assert_eq!(allowed(Deed::Cooldown(Ladder::default())), [true; 6]);
        assert_eq!(allowed(Deed::Ban(Length::Forever)), [false, false, true, true, false, true]);
        assert_eq!(allowed(Deed::Expire), [false, false, true, false, false, false]);
        assert_eq!(allowed(Deed::Quarantine(None)), [false, false, true, false, false, true]);
        assert!(Rules::default().rules.iter().all(Rule::is_allowed));
    }

    #[test]
    fn each_subject_and_window_is_counted_once() {
        let often = Some(Often { gte: 2, within: HOUR });
        let outcomes = Outcomes::of(&[Outcome::Captcha, Outcome::Forbidden]);
        let rule = |scope| Rule { name: "r".into(), outcomes, often, deed: Deed::Cooldown(Ladder::default()), scope };
        let scopes = [Scope::IdentitySite, Scope::Account, Scope::IdentityEndpoint, Scope::Proxy];
        let rules = Rules::new(scopes.map(rule).to_vec(), Vec::new(), HealthLimits::default());
        let counted = |has_account| rules.counted(Outcome::Forbidden, has_account).collect::<Vec<_>>();
        assert_eq!(counted(true), [(Who::Identity, HOUR), (Who::Account, HOUR), (Who::Proxy, HOUR)]);
        assert_eq!(counted(false), [(Who::Identity, HOUR), (Who::Proxy, HOUR)]);
        let account = Rules::new(vec![rule(Scope::Account)], Vec::new(), HealthLimits::default());
        assert_eq!(account.counted(Outcome::Captcha, false).collect::<Vec<_>>(), [(Who::Identity, HOUR)]);
        assert_eq!(rules.counted(Outcome::Empty, true).count(), 0);
    }

    #[test]
    fn streaks_reset_after_the_longest_time_a_cooldown_rule_asks_for() {
        assert_eq!(Rules::default().failure_reset(), HOUR);
        let rule = |hours| Rule {
            name: "r".into(),
            outcomes: Outcomes::default(),
            often: None,
            deed: Deed::Cooldown(Ladder { reset_after: hours * HOUR, ..Ladder::default() }),
            scope: Scope::Proxy,
        };
        assert_eq!(Rules::new(vec![rule(2), rule(5), rule(1)], Vec::new(), HealthLimits::default()).failure_reset(), 5 * HOUR);
        assert_eq!(Rules::new(Vec::new(), Vec::new(), HealthLimits::default()).failure_reset(), HOUR);
    }
}
