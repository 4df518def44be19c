//! What an operator does to a plane in process: pause a site, open a breaker, ban an identity, publish an item.

use std::time::Duration;

use super::{Embedded, refusals};
use crate::plane::PlaneError;
use crate::plane::model::Ms;
use crate::plane::model::action::Length;
use crate::plane::model::authority::Manual;
use crate::plane::model::config_center::{Format, ItemName};
use crate::plane::model::refusal::Refusal;

/// Something to do by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation<'a> {
    /// Nothing of the site is leased until it is resumed.
    Pause {
        /// The site.
        site: &'a str,
        /// Why, at most 1,024 characters.
        reason: &'a str,
    },
    /// Ends a pause.
    Resume {
        /// The site.
        site: &'a str,
    },
    /// Opens a breaker.
    OpenBreaker {
        /// The site.
        site: &'a str,
        /// Its client.
        client: &'a str,
        /// The client's endpoint group.
        group: &'a str,
        /// For how long; `None` until it is closed by hand.
        time: Option<Duration>,
    },
    /// Closes a breaker, without probes.
    CloseBreaker {
        /// The site.
        site: &'a str,
        /// Its client.
        client: &'a str,
        /// The client's endpoint group.
        group: &'a str,
    },
    /// Changes the state of an identity.
    Identity {
        /// The site.
        site: &'a str,
        /// The identity's name.
        identity: &'a str,
        /// To what.
        change: IdentityChange,
    },
    /// Publishes a config item.
    Publish {
        /// Its group.
        group: &'a str,
        /// Its key.
        key: &'a str,
        /// `json`, `yaml` or `text`.
        format: &'a str,
        /// Its content.
        content: &'a str,
    },
}

/// A change of an identity's state (wire contract, section 20).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum IdentityChange {
    /// Bans it, for a time or for ever (`None`).
    Ban(Option<Duration>),
    /// A banned one is pending again.
    Unban,
    /// Lets it rest for a time, whatever its success.
    Quarantine(Duration),
    /// One in quarantine is pending again.
    Unquarantine,
    /// Its credential is no longer good.
    Expire,
    /// Takes it out of use.
    Disable,
    /// Takes a disabled one into use.
    Enable,
    /// Puts it aside.
    Archive,
    /// One that was put aside is pending again.
    Restore,
    /// A pending one counts as proved.
    Activate,
}

impl Embedded {
    /// Does it; answers whether anything changed.
    ///
    /// # Errors
    /// [`PlaneError::NotFound`] for a config item or an identity that is not there, and for a change that does not begin from
    /// the identity's state; [`PlaneError::Invalid`] for all else that is not there or not allowed.
    pub fn operate(&self, operation: Operation<'_>) -> Result<bool, PlaneError> {
        self.with(|plane, now| match operation {
            Operation::Pause { site, reason } => plane.pause(site, reason, now),
            Operation::Resume { site } => plane.resume(site),
            Operation::OpenBreaker { site, client, group, time } => {
                plane.open_breaker(site, client, group, time.map(millis), "", now).map(|()| true)
            }
            Operation::CloseBreaker { site, client, group } => plane.close_breaker(site, client, group, "", now),
            Operation::Identity { site, identity, change } => plane.change(site, identity, change.into(), now).map(|()| true),
            Operation::Publish { group, key, format, content } => {
                let format = Format::of(format).ok_or_else(|| Refusal::invalid_argument("a format is json, yaml or text"))?;
                plane.publish(ItemName { group, key }, format, content, now).map(|_| true)
            }
        })
        .map_err(refusals::failed)
    }
}

impl From<IdentityChange> for Manual {
    fn from(change: IdentityChange) -> Self {
        match change {
            IdentityChange::Ban(time) => Self::Ban(time.map_or(Length::Forever, |time| Length::For(millis(time)))),
            IdentityChange::Unban => Self::Unban,
            IdentityChange::Quarantine(time) => Self::Quarantine(millis(time)),
            IdentityChange::Unquarantine => Self::Unquarantine,
            IdentityChange::Expire => Self::Expire,
            IdentityChange::Disable => Self::Disable,
            IdentityChange::Enable => Self::Enable,
            IdentityChange::Archive => Self::Archive,
            IdentityChange::Restore => Self::Restore,
            IdentityChange::Activate => Self::Activate,
        }
    }
}

fn millis(time: Duration) -> Ms {
    Ms::try_from(time.as_millis()).unwrap_or(Ms::MAX)
}
