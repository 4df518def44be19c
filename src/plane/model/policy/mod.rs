//! The typed policies of the server's model: rotation (with its proxies), signal, action and breaker.
//!
//! Each has the contract's values as its `Default`, is read strictly from TOML, JSON or YAML (an unknown key is an error),
//! and has every limit checked when it exists: the modules that decide trust the numbers. Wire contract, sections 21.1, 25,
//! 27, 28, 32 and 37. Nothing here decides anything about an identity.

mod action;
mod bindings;
mod breaker;
mod duration;
mod error;
mod head;
mod health;
mod lineage;
mod pattern;
mod proxy;
mod read;
mod rotation;
mod rule;
mod signal;
#[cfg(test)]
mod tests;
mod written;

use serde_json::Value;

pub(crate) use action::{ActionPolicy, BanExpiry, Escalation, Mode};
pub(crate) use bindings::Bindings;
pub(crate) use breaker::{BreakerPolicy, Revert};
pub(crate) use duration::{LONGEST, Term, millis};
pub(crate) use error::PolicyError;
pub(crate) use head::{Binding, Head, Kind};
pub(crate) use health::Observations;
pub(crate) use lineage::lineage;
pub(crate) use proxy::{ProxyMode, ProxyPolicy};
pub(crate) use rotation::{ReuseAnchor, ReuseScope, RotationPolicy, Strategy};
pub(crate) use rule::{Action, ActionRule, Cooldown, Outcomes, Scope};
pub(crate) use signal::{ErrorKinds, SignalPolicy, SignalRule, Status, UriCondition, When};

/// One of the four kinds of policy.
pub(crate) trait Policy: Sized {
    /// Which.
    const KIND: Kind;

    /// Its name, description and bindings.
    fn head(&self) -> &Head;

    /// Reads a document; every key that is left out has the contract's default, `null` counts as left out.
    ///
    /// # Errors
    ///
    /// An unknown key, a value of the wrong type or out of its limits, fields that contradict each other.
    fn read(document: &Value) -> Result<Self, PolicyError>;
}

/// The one way in from any format of serde.
macro_rules! deserialize {
    ($($policy:ty),+) => { $(
        impl<'de> serde::Deserialize<'de> for $policy {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let document = written::Written::deserialize(deserializer)?;
                <Self as Policy>::read(&document.0).map_err(serde::de::Error::custom)
            }
        }
    )+ };
}

deserialize!(RotationPolicy, SignalPolicy, ActionPolicy, BreakerPolicy);
