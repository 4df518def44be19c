//! An identity and its account, as one site sees them, and the transitions of their states (wire contract, section 20).

use std::fmt;
use std::sync::Arc;

use crate::plane::model::Ms;
use crate::plane::model::action::{BanHistory, Length};
use crate::plane::model::lease::Occupancy;
use crate::plane::model::proxy_pool::{Binding, Symbol};
use crate::plane::model::quota::QuotaUse;
use crate::plane::model::score::Score;
use crate::plane::model::strategy::Standing;
use crate::plane::model::streak::Streak;
use crate::plane::seed::{AccountStart, Given};

/// Where an identity is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Pending,
    Active,
    Expired,
    Banned(Until),
    Quarantined(Ms),
    Disabled,
    Retired,
}

/// When something ends; `None`: never.
pub(super) type Until = Option<Ms>;

/// An identity.
pub(super) struct Identity {
    pub(super) id: Arc<str>,
    /// Its type and clients, by index.
    pub(super) membership: u32,
    /// Its account, by index.
    pub(super) account: Option<u32>,
    pub(super) region: Symbol,
    pub(super) given: Given,
    pub(super) state: State,
    /// When it became active, if that is known.
    pub(super) activated: Option<Ms>,
    pub(super) occupancy: Occupancy,
    pub(super) site_cooldown: Ms,
    pub(super) site_reuse: Ms,
    pub(super) score: Score,
    pub(super) streak: Streak,
    pub(super) bans: BanHistory,
    pub(super) binding: Binding,
    /// The proxy the file gives it; it is bound to that one in every mode.
    pub(super) own_proxy: Option<u32>,
    /// Whether its leases moved it back in a queue other than that of the lease at hand.
    pub(super) is_pushed: bool,
    pub(super) books: IdentityBooks,
}

/// An identity in one endpoint group.
#[derive(Debug, Default)]
pub(super) struct InGroup {
    pub(super) cooldown: Ms,
    pub(super) reuse: Ms,
    pub(super) last_used: Ms,
    pub(super) score: Score,
    pub(super) streak: Streak,
    pub(super) quota: QuotaUse,
}

/// What an identity went through.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct IdentityBooks {
    pub(super) acquired: u64,
    pub(super) released: u64,
    pub(super) expired: u64,
    pub(super) reports: u64,
    pub(super) cooldowns: u64,
    pub(super) bans: u64,
}

/// The owner of several identities.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) name: Arc<str>,
    pub(super) state: AccountState,
    /// What the file said last.
    pub(super) said: AccountStart,
    pub(super) cooldown: Ms,
    pub(super) bans: BanHistory,
    pub(super) members: Vec<u32>,
}

/// Where an account is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AccountState {
    Active,
    Banned(Until),
    Disabled,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("id", &self.id).field("state", &self.state).finish_non_exhaustive()
    }
}

impl State {
    /// Whether it is leased at all.
    pub(super) const fn is_scheduled(self) -> bool {
        matches!(self, Self::Pending | Self::Active)
    }

    /// How far it has proved itself.
    pub(super) const fn standing(self) -> Standing {
        match self {
            Self::Pending => Standing::Pending,
            _ => Standing::Active,
        }
    }

    /// The contract's word.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Active => "active",
            Self::Expired => "expired",
            Self::Banned(_) => "banned",
            Self::Quarantined(_) => "quarantined",
            Self::Disabled => "disabled",
            Self::Retired => "retired",
        }
    }

    /// When it ends by itself.
    pub(super) const fn end(self) -> Option<Ms> {
        match self {
            Self::Banned(end) => end,
            Self::Quarantined(end) => Some(end),
            _ => None,
        }
    }

    /// The state after the action `expire`; `None` when it is refused.
    pub(super) const fn expire(self) -> Option<Self> {
        match self {
            Self::Pending | Self::Active | Self::Quarantined(_) => Some(Self::Expired),
            Self::Expired | Self::Banned(_) | Self::Disabled | Self::Retired => None,
        }
    }

    /// The state after a quarantine until then; `None` when it is refused.
    pub(super) const fn quarantine(self, until: Ms) -> Option<Self> {
        match self {
            Self::Pending | Self::Active => Some(Self::Quarantined(until)),
            Self::Quarantined(end) if end < until => Some(Self::Quarantined(until)),
            Self::Quarantined(_) | Self::Expired | Self::Banned(_) | Self::Disabled | Self::Retired => None,
        }
    }

    /// The state after a ban until then; `None` when it is refused.
    pub(super) const fn ban(self, until: Until) -> Option<Self> {
        match (self, until) {
            (Self::Disabled | Self::Retired | Self::Banned(None), _) => None,
            (Self::Banned(Some(end)), Some(until)) if end >= until => None,
            _ => Some(Self::Banned(until)),
        }
    }
}

impl AccountState {
    /// The state after a ban until then; `None` when it is refused.
    pub(super) const fn ban(self, until: Until) -> Option<Self> {
        match (self, until) {
            (Self::Disabled | Self::Banned(None), _) => None,
            (Self::Banned(Some(end)), Some(until)) if end >= until => None,
            _ => Some(Self::Banned(until)),
        }
    }

    /// Until when its members are not to be leased; 0 when nothing hinders them.
    pub(super) const fn hinders_until(self, now: Ms) -> Ms {
        const LONG: Ms = 600_000;
        const OVERDUE: Ms = 10_000;
        match self {
            Self::Active => 0,
            Self::Banned(Some(end)) if end > now => end,
            Self::Banned(Some(_)) => now.saturating_add(OVERDUE),
            Self::Banned(None) | Self::Disabled => now.saturating_add(LONG),
        }
    }
}

/// When something that begins now and lasts so long ends.
pub(super) const fn until(length: Length, now: Ms) -> Until {
    match length {
        Length::For(length) => Some(now.saturating_add(length)),
        Length::Forever => None,
    }
}
