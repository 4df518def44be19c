//! What operators do to one identity by hand (wire contract, section 20, the last row of its table).

use super::Plane;
use super::identity::{State, until};
use crate::plane::model::Ms;
use crate::plane::model::action::Length;
use crate::plane::model::refusal::Refusal;

/// A change of an identity's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manual {
    Ban(Length),
    Unban,
    Quarantine(Ms),
    Unquarantine,
    Expire,
    Disable,
    Enable,
    Archive,
    Restore,
    Activate,
}

impl Manual {
    /// The contract's word.
    const fn name(self) -> &'static str {
        match self {
            Self::Ban(_) => "ban",
            Self::Unban => "unban",
            Self::Quarantine(_) => "quarantine",
            Self::Unquarantine => "unquarantine",
            Self::Expire => "expire",
            Self::Disable => "disable",
            Self::Enable => "enable",
            Self::Archive => "archive",
            Self::Restore => "restore",
            Self::Activate => "activate",
        }
    }

    /// The state it leads to from this one; `None` when it is refused there.
    fn from(self, state: State, now: Ms) -> Option<State> {
        match (self, state) {
            (Self::Ban(length), State::Active | State::Pending | State::Quarantined(_) | State::Expired | State::Disabled) => {
                Some(State::Banned(until(length, now)))
            }
            (Self::Quarantine(length), State::Active | State::Pending) => Some(State::Quarantined(now.saturating_add(length))),
            (Self::Unban, State::Banned(_)) | (Self::Unquarantine, State::Quarantined(_)) | (Self::Restore, State::Retired) => {
                Some(State::Pending)
            }
            (Self::Expire, State::Active | State::Pending | State::Quarantined(_)) => Some(State::Expired),
            (Self::Disable, State::Retired) => None,
            (Self::Disable, _) => Some(State::Disabled),
            (Self::Enable, State::Disabled) | (Self::Activate, State::Pending) => Some(State::Active),
            (Self::Archive, _) => Some(State::Retired),
            _ => None,
        }
    }
}

impl Plane {
    /// Changes the state of an identity by hand. Its leases go on.
    ///
    /// # Errors
    /// `site_unknown`, `not_found` for the identity, `failed_precondition` for a state that the change does not begin from.
    pub(crate) fn change(&mut self, site: &str, identity: &str, change: Manual, now: Ms) -> Result<(), Refusal> {
        let place = self.named_mut(site)?;
        let key = place.by_id.get(identity).copied();
        let found = key.and_then(|key| Some((key, place.identity(key)?.state)));
        let (key, state) = found.ok_or_else(|| Refusal::not_found(format!("the site {site} has no identity {identity}")))?;
        let to = change.from(state, now).ok_or_else(|| {
            let (change, state) = (change.name(), state.name());
            Refusal::failed_precondition(format!("invalid_transition: {change} is not for an identity that is {state}"))
        })?;
        place.move_identity(key, to, now);
        if let Manual::Ban(_) = change
            && let Some(identity) = place.identity_mut(key)
        {
            identity.books.bans += 1;
        }
        Ok(())
    }
}
