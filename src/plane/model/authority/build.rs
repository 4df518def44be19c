//! A plane made of a seed: its policies resolved for every endpoint group (wire contract, section 32).

use std::sync::Arc;

use super::catalogue::Catalogue;
use super::names::Names;
use super::reload::Written;
use super::rules::{Governing, GroupRules};
use super::{Changes, Plane};
use crate::dice::Dice;
use crate::plane::model::Ms;
use crate::plane::model::config_center::ConfigCenter;
use crate::plane::model::policy::{ActionPolicy, Bindings, BreakerPolicy, Kind, PolicyError, RotationPolicy, SignalPolicy};
use crate::plane::model::refusal::Refusal;
use crate::plane::model::runtime_items::Raise;
use crate::plane::model::token::{TokenTextError, Tokens};
use crate::plane::seed::{Seed, SeedPolicies};

/// What versions of config items count from: the seconds since then, so that a plane that begins anew is above the one
/// before.
const VERSIONS_SINCE: Ms = 1_700_000_000_000;

/// A seed that cannot be used. One that was read from a file has been checked for all of this.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum BuildError {
    /// Policies that contradict each other.
    #[error("{0}")]
    Policy(Box<PolicyError>),
    /// A token that could never be used.
    #[error(transparent)]
    Token(#[from] TokenTextError),
    /// A config item or secret outside its bounds.
    #[error("{0}")]
    Config(Box<Refusal>),
}

impl From<PolicyError> for BuildError {
    fn from(error: PolicyError) -> Self {
        Self::Policy(Box::new(error))
    }
}

impl From<Refusal> for BuildError {
    fn from(refusal: Refusal) -> Self {
        Self::Config(Box::new(refusal))
    }
}

impl Plane {
    /// A plane with everything the seed names, as it is at `now`.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub(crate) fn new(seed: Seed, now: Ms, dice: Dice) -> Result<Self, BuildError> {
        let namespace = Arc::clone(&seed.namespace);
        let floor = i32::try_from(now.saturating_sub(VERSIONS_SINCE) / 1_000).unwrap_or(i32::MAX / 2);
        let mut plane = Self {
            center: ConfigCenter::new(Arc::clone(&namespace), floor, &[]),
            namespace,
            tokens: Tokens::default(),
            sites: Vec::new(),
            by_name: std::collections::BTreeMap::new(),
            catalogue: Catalogue::default(),
            shared: Vec::new(),
            names: Names::default(),
            dice,
            woken: Vec::new(),
            stray_reports: 0,
            reaped_at: now,
            evaluated_at: now,
            ended_at: now,
            written: Written::default(),
            picked: Vec::new(),
        };
        plane.load(seed, now)?;
        plane.raise(Raise::Both);
        Ok(plane)
    }

    /// Takes over what the file says now, and keeps all else: leases, states, health, books, and what operators changed since.
    /// Each token has its whole rate again.
    ///
    /// # Errors
    /// See [`BuildError`]; then sites, tokens and policies are as before.
    pub(crate) fn reload(&mut self, seed: Seed, now: Ms) -> Result<Changes, BuildError> {
        let changes = self.load(seed, now)?;
        if changes.sites() {
            self.raise(Raise::Both);
        }
        self.raise_moved();
        Ok(changes)
    }
}

/// The policies of a seed, by where they hold.
#[derive(Debug)]
pub(super) struct Policies {
    rotation: Bindings<Arc<RotationPolicy>>,
    signal: Bindings<Arc<SignalPolicy>>,
    action: Bindings<Arc<ActionPolicy>>,
    breaker: Bindings<Arc<BreakerPolicy>>,
    signals: Vec<Arc<SignalPolicy>>,
    built_in: (RotationPolicy, SignalPolicy, ActionPolicy, BreakerPolicy),
}

impl Policies {
    pub(super) fn of(policies: SeedPolicies) -> Result<Self, PolicyError> {
        Ok(Self {
            rotation: Bindings::of(&policies.rotation)?,
            signal: Bindings::of(&policies.signal)?,
            action: Bindings::of(&policies.action)?,
            breaker: Bindings::of(&policies.breaker)?,
            signals: policies.signal,
            built_in: Default::default(),
        })
    }

    /// The rules of a group: the nearest policy of each kind.
    pub(super) fn rules(&self, site: &str, client: &str, group: &str, names: &mut Names) -> Result<GroupRules, PolicyError> {
        let (rotation, signal, action, breaker) = &self.built_in;
        let governing = Governing {
            rotation: self.rotation.find(site, client, group).map_or(rotation, |(policy, _)| policy),
            signal: self.signal.find(site, client, group).map_or(signal, |(policy, _)| policy),
            action: self.action.find(site, client, group).map_or(action, |(policy, _)| policy),
            breaker: self.breaker.find(site, client, group).map_or(breaker, |(policy, _)| policy),
        };
        let parent = |name: &str| {
            let named = self.signals.iter().find(|policy| *policy.head.name == *name).map(|policy| &**policy);
            named.or_else(|| (name == Kind::Signal.built_in()).then_some(signal))
        };
        GroupRules::of(governing, parent, names)
    }
}
