//! One rule of an action policy: after which outcome what is done to whom (wire contract, section 27).

use std::sync::Arc;
use std::time::Duration;

use super::duration::{LONGEST, Term, text};
use super::error::PolicyError;
use super::read::{Field, Table};
use crate::plane::model::Outcome;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);
const SHORTEST: Duration = Duration::from_millis(1);

/// The longest a count or a ban reaches back.
pub(super) const MAX_WITHIN: Duration = Duration::from_secs(30 * 86_400);

/// The rule.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ActionRule {
    /// Empty if it has none.
    pub(crate) name: Arc<str>,
    pub(crate) outcomes: Outcomes,
    /// How often the outcome must have come, this time included.
    pub(crate) count: Option<Count>,
    pub(crate) action: Action,
    pub(crate) scope: Scope,
}

/// A set of outcomes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outcomes(u16);

/// So many, within so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) gte: u32,
    pub(crate) within: Duration,
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Action {
    Cooldown(Cooldown),
    Ban(Term),
    /// For so long, or as long as the policy's health says.
    Quarantine(Option<Duration>),
    Expire,
}

/// How long a cool-down is: `min(base · multiplier^min(streak − 1, max_exponent), max)`, before jitter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cooldown {
    pub(crate) base: Duration,
    pub(crate) multiplier: f64,
    pub(crate) max: Duration,
    pub(crate) max_exponent: u32,
    /// A failure that comes later than this after the last one starts a new streak.
    pub(crate) failure_reset_after: Duration,
}

/// To whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    IdentityEndpoint,
    IdentitySite,
    /// The identity itself; a cool-down of it is one of [`IdentitySite`](Self::IdentitySite).
    Identity,
    Account,
    ProxySite,
    Proxy,
}

impl Outcomes {
    pub(crate) const fn of(outcome: Outcome) -> Self {
        Self(1 << outcome as u16)
    }

    pub(crate) const fn contains(self, outcome: Outcome) -> bool {
        self.0 & Self::of(outcome).0 != 0
    }

    fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl std::fmt::Debug for Outcomes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(Outcome::ALL.into_iter().filter(|outcome| self.contains(*outcome))).finish()
    }
}

impl Scope {
    /// The contract's spelling.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::IdentityEndpoint => "identity_endpoint",
            Self::IdentitySite => "identity_site",
            Self::Identity => "identity",
            Self::Account => "account",
            Self::ProxySite => "proxy_site",
            Self::Proxy => "proxy",
        }
    }
}

impl Cooldown {
    /// A cool-down of this length, however often it comes, with the contract's other values.
    pub(crate) const fn constant(base: Duration) -> Self {
        Self { base, multiplier: 1.0, max: Duration::from_secs(24 * 3_600), max_exponent: 10, failure_reset_after: HOUR }
    }
}

/// Every outcome by its name.
pub(super) const OUTCOMES: [(&str, Outcome); 12] = {
    let mut names = [("", Outcome::Unknown); 12];
    let mut index = 0;
    // No iterator runs in a constant; the index is below both lengths.
    #[allow(clippy::indexing_slicing, reason = "checked at compile time")]
    while index < Outcome::ALL.len() {
        names[index] = (Outcome::ALL[index].name(), Outcome::ALL[index]);
        index += 1;
    }
    names
};

/// A rule's name, which may be left out.
pub(super) fn rule_name(table: &Table<'_>) -> Result<Arc<str>, PolicyError> {
    Ok(table.field("name").text(64)?.unwrap_or_default().into())
}

/// Reads one rule.
pub(super) fn read(item: Field<'_>) -> Result<ActionRule, PolicyError> {
    let at = item.at.clone();
    let Some(table) = item.table(&[
        "name",
        "when",
        "action",
        "scope",
        "base",
        "multiplier",
        "max",
        "max_exponent",
        "failure_reset_after",
        "duration",
    ])?
    else {
        return Err(at.missing("a table with when, action and scope"));
    };
    let when = table.table("when", &["outcome", "outcomes", "count"])?;
    let (action, scope) = action(&table)?;
    Ok(ActionRule { name: rule_name(&table)?, outcomes: outcomes(&when)?, count: count(&when)?, action, scope })
}

fn outcomes(when: &Table<'_>) -> Result<Outcomes, PolicyError> {
    let (one, many) = (when.field("outcome"), when.field("outcomes"));
    let field = match (one.value, many.value) {
        (Some(_), Some(_)) => return Err(many.at.wrong("written beside outcome", "one of outcome and outcomes")),
        (_, None) => one.required("the outcome the rule is for, or a list of them")?,
        (None, Some(_)) => many,
    };
    let mut set = Outcomes(0);
    for item in field.some_items(Outcome::ALL.len())?.unwrap_or_default() {
        match item.choice(&OUTCOMES)? {
            Some(outcome) => set = set.and(Outcomes::of(outcome)),
            None => return Err(item.at.wrong("nothing", "the name of an outcome")),
        }
    }
    Ok(set)
}

fn count(when: &Table<'_>) -> Result<Option<Count>, PolicyError> {
    let field = when.field("count");
    if field.value.is_none() {
        return Ok(None);
    }
    counted(field, SECOND).map(Some)
}

/// A table `{gte, within}`.
pub(super) fn counted(field: Field<'_>, shortest: Duration) -> Result<Count, PolicyError> {
    let at = field.at.clone();
    let missing = || at.missing("a table with gte and within");
    let table = field.table(&["gte", "within"])?.ok_or_else(missing)?;
    let gte = table.field("gte").required("how many, 1 or more")?.count(1..=1_000_000)?;
    let within = table.field("within").required("the time it reaches back, such as \"10m\"")?.duration(shortest..=MAX_WITHIN)?;
    Ok(Count { gte: gte.ok_or_else(missing)?, within: within.ok_or_else(missing)? })
}

#[derive(Clone, Copy, PartialEq)]
enum Verb {
    Cooldown,
    Ban,
    Quarantine,
    Expire,
}

fn action(table: &Table<'_>) -> Result<(Action, Scope), PolicyError> {
    use Scope::{Account, Identity, IdentityEndpoint, IdentitySite, Proxy, ProxySite};
    let field = table.field("action").required("what the rule does")?;
    let at = field.at.clone();
    let verb = field
        .choice(&[("cooldown", Verb::Cooldown), ("ban", Verb::Ban), ("quarantine", Verb::Quarantine), ("expire", Verb::Expire)])?
        .ok_or_else(|| at.missing("what the rule does"))?;
    let scopes: &[Scope] = match verb {
        Verb::Cooldown => &[IdentityEndpoint, IdentitySite, Identity, Account, ProxySite, Proxy],
        Verb::Ban => &[Identity, Account, Proxy],
        Verb::Quarantine => &[Identity, Proxy],
        Verb::Expire => &[Identity],
    };
    let names: Vec<_> = scopes.iter().map(|scope| (scope.name(), *scope)).collect();
    let field = table.field("scope");
    let at = field.at.clone();
    let scope = match field.choice(&names)? {
        Some(Identity) if verb == Verb::Cooldown => IdentitySite,
        Some(scope) => scope,
        None if verb == Verb::Expire => Identity,
        None => return Err(at.missing("to whom it is done")),
    };
    let of_others: &[&str] = match verb {
        Verb::Cooldown => &["duration"],
        Verb::Ban | Verb::Quarantine => &COOLDOWN_KEYS,
        Verb::Expire => &["duration", "base", "multiplier", "max", "max_exponent", "failure_reset_after"],
    };
    for key in of_others {
        let field = table.field(key);
        if field.value.is_some() {
            let allowed = match verb {
                Verb::Cooldown => "base in its place: a cooldown has no duration",
                Verb::Ban | Verb::Quarantine => "duration only: this key belongs to a cooldown",
                Verb::Expire => "neither duration nor the keys of a cooldown: expire has no end",
            };
            return Err(field.at.wrong("written", allowed));
        }
    }
    let action = match verb {
        Verb::Cooldown => Action::Cooldown(cooldown(table)?),
        Verb::Ban => {
            let field = table.field("duration").required("how long the ban is, such as \"12h\" or \"permanent\"")?;
            let at = field.at.clone();
            Action::Ban(field.term(SHORTEST..=LONGEST)?.ok_or_else(|| at.missing("how long the ban is"))?)
        }
        Verb::Quarantine => Action::Quarantine(table.field("duration").duration(SHORTEST..=LONGEST)?),
        Verb::Expire => Action::Expire,
    };
    Ok((action, scope))
}

const COOLDOWN_KEYS: [&str; 5] = ["base", "multiplier", "max", "max_exponent", "failure_reset_after"];

fn cooldown(table: &Table<'_>) -> Result<Cooldown, PolicyError> {
    let base = table.field("base").required("the length of the first cool-down, such as \"60s\"")?;
    let at = base.at.clone();
    let base = base.duration(SHORTEST..=LONGEST)?.ok_or_else(|| at.missing("the length of the first cool-down"))?;
    let usual = Cooldown::constant(base);
    let cooldown = Cooldown {
        base,
        multiplier: table.field("multiplier").number(1.0..=1000.0)?.unwrap_or(usual.multiplier),
        max: table.field("max").duration(SHORTEST..=LONGEST)?.unwrap_or(usual.max),
        max_exponent: table.field("max_exponent").count(0..=64)?.unwrap_or(usual.max_exponent),
        failure_reset_after: table
            .field("failure_reset_after")
            .duration(SHORTEST..=LONGEST)?
            .unwrap_or(usual.failure_reset_after),
    };
    if cooldown.base > cooldown.max {
        return Err(at.wrong(text(base), format!("at most max, which is {}", text(cooldown.max))));
    }
    Ok(cooldown)
}
