//! Runtime state: what the plane's configuration says is switched off, so that doomed leases are not asked for.
//!
//! Read from the items `_runtime/breakers` and `_runtime/site_switches` (wire contract, 29). Asks nobody by
//! itself: [`watch_runtime`] follows a feed and tells the broker.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;
use tokio::time::Instant;

use super::gate::{Gates, Origin};
use super::message::Control;
use crate::actor::Controls;
use crate::plane::{ConfigFeed, Configured};
use crate::spinneret::ConfigKey;

/// The group of both items.
const GROUP: &str = "_runtime";
const BREAKERS: &str = "breakers";
const SWITCHES: &str = "site_switches";

/// The items the state is read from.
#[must_use]
pub fn runtime_keys() -> [ConfigKey; 2] {
    [ConfigKey::new(GROUP, BREAKERS), ConfigKey::new(GROUP, SWITCHES)]
}

/// What the plane switched off: sites, and endpoint groups whose circuit is open. Holds nothing it was not told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuntimeState {
    breakers: Option<BTreeMap<String, Breakers>>,
    switches: Option<BTreeMap<String, Switch>>,
}

/// The content of either item; unknown fields are for others.
#[derive(Debug, Deserialize)]
struct Content<T> {
    sites: BTreeMap<String, T>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Breakers {
    #[serde(deserialize_with = "or_default")]
    paused: bool,
    /// Circuits that are not closed, by `client/group`.
    #[serde(deserialize_with = "or_default")]
    groups: BTreeMap<String, Circuit>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Circuit {
    /// `open` or `half_open`.
    #[serde(deserialize_with = "or_default")]
    state: String,
    /// None: until someone closes it.
    open_until: Option<Timestamp>,
    #[serde(deserialize_with = "or_default")]
    reason: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Switch {
    #[serde(deserialize_with = "or_default")]
    paused: bool,
    #[serde(deserialize_with = "or_default")]
    reason: String,
}

impl RuntimeState {
    /// Takes an item in. A content that cannot be read, and one of an earlier run, is as good as none.
    ///
    /// # Errors
    /// With what is wrong with the content.
    pub fn take(&mut self, configured: &Configured) -> Result<(), String> {
        let item = &configured.item;
        if item.group != GROUP {
            return Ok(());
        }
        match item.key.as_str() {
            BREAKERS => {
                self.breakers = None;
                self.breakers = read(configured)?;
            }
            SWITCHES => {
                self.switches = None;
                self.switches = read(configured)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether the plane has told anything.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.breakers.is_some() || self.switches.is_some()
    }

    /// Makes `gates` hold what is off, and lets probe what is on again since `before`. `wall` is the time at `now`.
    pub(super) fn apply(&self, before: &Self, gates: &mut Gates, now: Instant, wall: Timestamp) {
        gates.resume(now, |origin, by_runtime| match *origin {
            Origin::Site(site) if by_runtime => self.paused(site).is_none(),
            Origin::Site(site) => self.says_on(site),
            Origin::Group(site, client, group) => {
                let open = self.open().any(|(s, c, g, _)| (s, c, g) == (site, client, group));
                !open && (by_runtime || self.breakers.is_some())
            }
            Origin::Paths(site, client) => {
                // Which group held a path is not known: one that is open no more may have been it.
                let of_client = |state: &Self| -> Vec<String> {
                    state.open().filter(|(s, c, ..)| (*s, *c) == (site, client)).map(|(_, _, g, _)| g.to_owned()).collect()
                };
                let open = of_client(self);
                self.breakers.is_some() && (open.is_empty() || of_client(before).iter().any(|group| !open.contains(group)))
            }
        });
        for (site, reason) in self.paused_sites() {
            let message = format!("site {site} is switched off at the control plane{}", because(reason));
            gates.hold_by_runtime(&Origin::Site(site), message, None, now);
        }
        for (site, client, group, circuit) in self.open() {
            let until = circuit.open_until.map(|at| {
                let left = std::time::Duration::try_from(at.duration_since(wall)).unwrap_or_default();
                now.checked_add(left).unwrap_or(now)
            });
            let message = format!(
                "the circuit of endpoint group {group} of site {site}, client {client} is open{}",
                because(&circuit.reason)
            );
            gates.hold_by_runtime(&Origin::Group(site, client, group), message, until, now);
        }
    }

    /// What is off, or on again, since `before`, in lines for people; of the sites that are `asked` for.
    pub(super) fn news(&self, before: &Self, asked: impl Fn(&str) -> bool) -> Vec<String> {
        let mut lines = Vec::new();
        for (site, reason) in self.paused_sites().filter(|(site, reason)| asked(site) && before.paused(site) != Some(*reason)) {
            lines.push(format!("site {site} is paused at the control plane{}; its requests wait", because(reason)));
        }
        let was_open = |of: (&str, &str, &str)| before.open().any(|(site, client, group, _)| (site, client, group) == of);
        let is_open = |of: (&str, &str, &str)| self.open().any(|(site, client, group, _)| (site, client, group) == of);
        for (site, client, group, circuit) in
            self.open().filter(|(site, client, group, _)| asked(site) && !was_open((site, client, group)))
        {
            let until = circuit.open_until.map(|at| format!(" until {at:.0}")).unwrap_or_default();
            let reason = because(&circuit.reason);
            lines.push(format!(
                "the breaker of {site}/{client}/{group} is open{until}{reason}; requests of that endpoint group wait"
            ));
        }
        // Who is told nothing any more does not know that anything is on again.
        if self.is_known() {
            for (site, _) in before.paused_sites().filter(|(site, _)| asked(site) && self.paused(site).is_none()) {
                lines.push(format!("site {site} is paused no more; its requests go on"));
            }
            for (site, client, group, _) in
                before.open().filter(|(site, client, group, _)| asked(site) && !is_open((site, client, group)))
            {
                lines.push(format!(
                    "the breaker of {site}/{client}/{group} is open no more; requests of that endpoint group go on"
                ));
            }
        }
        lines
    }

    /// The reason a site is off, if it is.
    fn paused(&self, site: &str) -> Option<&str> {
        self.paused_sites().find(|(name, _)| *name == site).map(|(_, reason)| reason)
    }

    /// Whether an item lists the site as on.
    fn says_on(&self, site: &str) -> bool {
        match (&self.switches, &self.breakers) {
            (Some(switches), _) => switches.get(site).is_some_and(|switch| !switch.paused),
            (None, Some(breakers)) => breakers.get(site).is_some_and(|site| !site.paused),
            (None, None) => false,
        }
    }

    /// Sites that are off, with the reason. The switches have the last word: both items change with every pause.
    fn paused_sites(&self) -> impl Iterator<Item = (&str, &str)> {
        let by_switch = self.switches.iter().flatten().filter(|(_, switch)| switch.paused);
        let by_breakers = self.breakers.iter().flatten().filter(|(_, site)| self.switches.is_none() && site.paused);
        let by_switch = by_switch.map(|(site, switch)| (site.as_str(), switch.reason.as_str()));
        by_switch.chain(by_breakers.map(|(site, _)| (site.as_str(), "")))
    }

    /// Open circuits: site, client, group. A half-open one is to be probed, and not held.
    fn open(&self) -> impl Iterator<Item = (&str, &str, &str, &Circuit)> {
        let sites = self.breakers.iter().flatten();
        let circuits = sites.flat_map(|(site, breakers)| breakers.groups.iter().map(move |(name, it)| (site, name, it)));
        circuits.filter(|(_, _, circuit)| circuit.state == "open").filter_map(|(site, name, circuit)| {
            let (client, group) = name.split_once('/')?;
            Some((site.as_str(), client, group, circuit))
        })
    }
}

/// Keeps `broker` told of what `feed`, which follows [`runtime_keys`], says is off. Ends with the feed, and then
/// lifts what was held for it: nobody would tell any more that it is on again.
pub async fn watch_runtime(feed: Arc<dyn ConfigFeed>, broker: Controls<Control>) {
    let mut state = RuntimeState::default();
    let mut unreadable = [false; 2];
    for key in &runtime_keys() {
        if let Some(configured) = feed.get(key) {
            take(&mut state, &configured, &mut unreadable);
        }
    }
    broker.tell(Control::Runtime(state.clone()));
    while let Some(configured) = feed.changed().await {
        let before = state.clone();
        take(&mut state, &configured, &mut unreadable);
        if state != before && !broker.tell(Control::Runtime(state.clone())) {
            return;
        }
    }
    broker.tell(Control::Runtime(RuntimeState::default()));
}

/// Takes an item in; says once of each that it cannot be read, until it can.
fn take(state: &mut RuntimeState, configured: &Configured, unreadable: &mut [bool; 2]) {
    let item = &configured.item;
    let said = usize::from(item.key == SWITCHES);
    let read = state.take(configured);
    let Some(said) = unreadable.get_mut(said) else { return };
    match read {
        Ok(()) => *said = false,
        Err(e) => {
            if !std::mem::replace(said, true) {
                tracing::warn!(
                    "config item {GROUP}/{} cannot be read and is ignored, leases are asked for as without it: {e}",
                    item.key
                );
            }
        }
    }
}

fn read<T: for<'de> Deserialize<'de>>(configured: &Configured) -> Result<Option<BTreeMap<String, T>>, String> {
    if configured.from_snapshot {
        return Ok(None); // of an earlier run: what was off then may be on
    }
    serde_json::from_str::<Content<T>>(&configured.item.content).map(|content| Some(content.sites)).map_err(|e| e.to_string())
}

fn or_default<'de, T: Default + Deserialize<'de>, D: serde::Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    Option::<T>::deserialize(from).map(Option::unwrap_or_default)
}

fn because(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": {reason}") }
}

#[cfg(test)]
mod tests;
