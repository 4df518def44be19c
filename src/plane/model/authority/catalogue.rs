//! The proxies of a namespace: what is known of them on every site (wire contract, sections 20 and 23).
//!
//! They are judged by the reports of leases alone: nothing here connects to a proxy to see whether it is alive, so the
//! contract's state `dead` does not exist.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::identity::Until;
use crate::plane::model::Ms;
use crate::plane::model::proxy_pool::ProxyTraits;
use crate::plane::model::proxy_url::{ProxyUrl, SessionTemplate};

/// All proxies, by key.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    entries: Vec<Proxy>,
    traits: Vec<ProxyTraits>,
    ends: BTreeSet<(Ms, u32)>,
}

/// A proxy.
pub(super) struct Proxy {
    pub(super) id: Arc<str>,
    pub(super) url: ProxyUrl,
    /// The same as a text, user and password included.
    pub(super) revealed: Arc<str>,
    pub(super) template: Option<SessionTemplate>,
    pub(super) kind: Arc<str>,
    pub(super) region: Arc<str>,
    state: ProxyState,
}

/// Where a proxy is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProxyState {
    Active,
    Banned(Until),
    Quarantined(Ms),
    Disabled,
}

impl Proxy {
    pub(super) fn new(id: Arc<str>, url: ProxyUrl, kind: &str, region: &str, template: Option<SessionTemplate>) -> Self {
        Self {
            id,
            revealed: url.reveal().into(),
            url,
            template,
            kind: kind.into(),
            region: region.into(),
            state: ProxyState::Active,
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("id", &self.id).field("state", &self.state).finish_non_exhaustive()
    }
}

impl Catalogue {
    /// Takes in a proxy; answers its key.
    pub(super) fn add(&mut self, proxy: Proxy, traits: ProxyTraits) -> u32 {
        let key = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        self.entries.push(proxy);
        self.traits.push(traits);
        key
    }

    /// The key of the proxy with this id.
    #[cfg(test)]
    pub(super) fn find(&self, id: &str) -> Option<u32> {
        self.entries.iter().position(|proxy| *proxy.id == *id).and_then(|key| u32::try_from(key).ok())
    }

    pub(super) fn get(&self, key: u32) -> Option<&Proxy> {
        self.entries.get(key as usize)
    }

    pub(super) fn traits(&self) -> &[ProxyTraits] {
        &self.traits
    }

    /// Puts what a file says anew in the place of what it said; the state stays, unless it was disabled.
    pub(super) fn replace(&mut self, key: u32, proxy: Proxy, traits: ProxyTraits) {
        if let (Some(old), Some(known)) = (self.entries.get_mut(key as usize), self.traits.get_mut(key as usize)) {
            let state = if old.state == ProxyState::Disabled { ProxyState::Active } else { old.state };
            *old = Proxy { state, ..proxy };
            *known = ProxyTraits { active: state == ProxyState::Active, cooldown: known.cooldown, ..traits };
        }
    }

    /// Takes a proxy out of use; its leases end by themselves.
    pub(super) fn disable(&mut self, key: u32) {
        self.move_to(key, ProxyState::Disabled);
    }

    /// Cools a proxy down on every site; `false` when it cools down as long already.
    pub(super) fn cool(&mut self, key: u32, until: Ms) -> bool {
        let Some(traits) = self.traits.get_mut(key as usize).filter(|traits| traits.cooldown < until) else { return false };
        traits.cooldown = until;
        true
    }

    /// Bans a proxy; `false` when it is disabled, or banned as long already.
    pub(super) fn ban(&mut self, key: u32, until: Until) -> bool {
        let to = match (self.state(key), until) {
            (None | Some(ProxyState::Disabled | ProxyState::Banned(None)), _) => return false,
            (Some(ProxyState::Banned(Some(end))), Some(until)) if end >= until => return false,
            _ => ProxyState::Banned(until),
        };
        self.move_to(key, to);
        true
    }

    /// Puts a proxy in quarantine; `false` when its state refuses that.
    pub(super) fn quarantine(&mut self, key: u32, until: Ms) -> bool {
        match self.state(key) {
            Some(ProxyState::Active) => {}
            Some(ProxyState::Quarantined(end)) if end < until => {}
            _ => return false,
        }
        self.move_to(key, ProxyState::Quarantined(until));
        true
    }

    /// Makes those active again whose ban or quarantine is over, and names them.
    pub(super) fn end(&mut self, now: Ms) -> Vec<u32> {
        let mut back = Vec::new();
        while let Some((at, key)) = self.ends.first().copied().filter(|(at, _)| *at <= now) {
            self.ends.pop_first();
            let is_over = match self.state(key) {
                Some(ProxyState::Banned(Some(end)) | ProxyState::Quarantined(end)) => end == at,
                _ => false,
            };
            if is_over {
                self.move_to(key, ProxyState::Active);
                back.push(key);
            }
        }
        back
    }

    /// When the next ban or quarantine is over.
    pub(super) fn next_end(&self) -> Option<Ms> {
        self.ends.first().map(|(at, _)| *at)
    }

    pub(super) fn state(&self, key: u32) -> Option<ProxyState> {
        self.entries.get(key as usize).map(|proxy| proxy.state)
    }

    fn move_to(&mut self, key: u32, state: ProxyState) {
        if let (Some(proxy), Some(traits)) = (self.entries.get_mut(key as usize), self.traits.get_mut(key as usize)) {
            proxy.state = state;
            traits.active = state == ProxyState::Active;
        }
        if let ProxyState::Banned(Some(end)) | ProxyState::Quarantined(end) = state {
            self.ends.insert((end, key));
        }
    }
}
