//! Site: the present state of a site's identities and proxies, and which of them serves an ask.
//!
//! Spreads by least recent use and is deterministic: the same calls at the same times choose the same.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::leases::after;
use super::roster::{self, DEFAULT_GROUP, ReuseAnchor};
use crate::plane::{Ask, Credential, IdentityKey, ProxyUrl, RefusalKind};

/// Session keys remembered per site; beyond that those used least recently are forgotten.
const STICKY_MOST: usize = 65_536;

/// A site as it stands now.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) rules: roster::Rules,
    clients: Vec<Arc<str>>,
    /// The default group comes first and has no prefixes.
    groups: Vec<roster::Group>,
    identities: Vec<Identity>,
    /// Its proxies, as indexes of the plane's table.
    pool: Vec<usize>,
    sticky: HashMap<(Arc<str>, Arc<str>), Sticky>,
}

#[derive(Debug)]
struct Identity {
    key: IdentityKey,
    clients: Vec<Arc<str>>,
    credential: Arc<Credential>,
    proxy: Option<usize>,
    concurrency: u32,
    reuse_interval: Duration,
    open: u32,
    used: u64,
    /// When it may be used again, by group.
    rests: Vec<Option<Instant>>,
}

#[derive(Debug, Clone, Copy)]
struct Sticky {
    identity: usize,
    used: Instant,
}

/// A proxy as it stands now; several sites may share it.
#[derive(Debug)]
pub(super) struct Proxy {
    url: ProxyUrl,
    concurrency: u32,
    open: u32,
    used: u64,
    rests: Option<Instant>,
}

/// What serves an ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pick {
    pub(super) identity: usize,
    pub(super) group: usize,
    pub(super) proxy: Option<usize>,
}

/// Why nothing does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NoPick {
    pub(super) why: RefusalKind,
    /// When something will, unless that hangs on a lease being given back.
    pub(super) free_at: Option<Instant>,
    pub(super) message: String,
}

/// When something is free. Ordered by how soon that may be: what hangs on a lease may be free at any moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Free {
    Now,
    WhenReleased,
    At(Instant),
}

impl Free {
    /// When both are free.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::WhenReleased, _) | (_, Self::WhenReleased) => Self::WhenReleased,
            (one, other) => one.max(other),
        }
    }

    fn of(open: u32, concurrency: u32, rests: Option<Instant>, now: Instant) -> Self {
        match rests.filter(|until| *until > now) {
            _ if open >= concurrency => Self::WhenReleased,
            Some(until) => Self::At(until),
            None => Self::Now,
        }
    }
}

impl Proxy {
    pub(super) fn new(proxy: &roster::Proxy) -> Self {
        Self { url: proxy.url.clone(), concurrency: proxy.concurrency.max(1), open: 0, used: 0, rests: None }
    }

    pub(super) fn url(&self) -> ProxyUrl {
        self.url.clone()
    }

    pub(super) fn rest(&mut self, until: Instant) {
        self.rests = self.rests.max(Some(until));
    }

    pub(super) fn take(&mut self, turn: u64) {
        self.open += 1;
        self.used = turn;
    }

    pub(super) fn give_back(&mut self) {
        self.open = self.open.saturating_sub(1);
    }

    fn free(&self, now: Instant) -> Free {
        Free::of(self.open, self.concurrency, self.rests, now)
    }
}

impl Site {
    /// The site of a roster, its proxies entered into `proxies`; `shared` are the roster's own there.
    pub(super) fn new(site: &roster::Site, shared: &[usize], proxies: &mut Vec<Proxy>) -> Self {
        let enter = |proxy: &roster::Proxy, proxies: &mut Vec<Proxy>| {
            proxies.push(Proxy::new(proxy));
            proxies.len() - 1
        };
        let mut groups = vec![roster::Group { name: DEFAULT_GROUP.into(), prefixes: Vec::new() }];
        groups.extend(site.groups.iter().cloned());
        let identities = site
            .identities
            .iter()
            .map(|identity| Identity {
                key: IdentityKey { site: Arc::clone(&site.name), name: Arc::clone(&identity.name) },
                clients: identity.clients.clone(),
                credential: Arc::clone(&identity.credential),
                proxy: identity.proxy.as_ref().map(|proxy| enter(proxy, proxies)),
                concurrency: identity.concurrency.max(1),
                reuse_interval: identity.reuse_interval,
                open: 0,
                used: 0,
                rests: vec![None; groups.len()],
            })
            .collect();
        let pool = match &site.pool {
            roster::Pool::None => Vec::new(),
            roster::Pool::Shared => shared.to_vec(),
            roster::Pool::Own(own) => own.iter().map(|proxy| enter(proxy, proxies)).collect(),
        };
        Self { rules: site.rules, clients: site.clients.clone(), groups, identities, pool, sticky: HashMap::new() }
    }

    /// Chooses for `ask`, changing nothing but the memory of session keys.
    pub(super) fn pick(&mut self, ask: &Ask, proxies: &[Proxy], now: Instant) -> Result<Pick, NoPick> {
        let no = |why, message: String| NoPick { why, free_at: None, message };
        if !self.clients.is_empty() && !self.clients.contains(&ask.client) {
            let known = self.clients.join(", ");
            let message = format!("site {:?} has no client {:?}; it has {known}", ask.site, ask.client);
            return Err(no(RefusalKind::ClientUnknown, message));
        }
        let Some(group) = self.group(&ask.group, &ask.path) else {
            let known = self.groups.iter().map(|g| &*g.name).collect::<Vec<_>>().join(", ");
            let message = format!("site {:?} has no endpoint group {:?}; it has {known}", ask.site, ask.group);
            return Err(no(RefusalKind::Invalid, message));
        };
        let sticky = ask.session_key.as_ref().map(|key| (Arc::clone(&ask.client), Arc::clone(key)));
        let bound = sticky.as_ref().and_then(|key| self.bound(key, now));
        let mut best: Option<(u64, Pick)> = None;
        let mut soonest: Option<Free> = None;
        let mut why = RefusalKind::NoIdentity;
        for (index, identity) in self.identities.iter().enumerate() {
            if bound.is_some_and(|bound| bound != index) || !identity.serves(&ask.client) {
                continue;
            }
            let own = identity.free(group, now);
            let (through, proxy) = self.proxy(identity, proxies, now);
            let both = own.and(through);
            if both == Free::Now {
                if best.is_none_or(|(used, _)| identity.used < used) {
                    best = Some((identity.used, Pick { identity: index, group, proxy }));
                }
            } else if own == Free::Now {
                why = RefusalKind::NoProxy;
            }
            soonest = Some(soonest.map_or(both, |soonest| soonest.min(both)));
        }
        let names = || format!("{}/{}/{}", ask.site, ask.client, self.groups.get(group).map_or("", |g| &g.name));
        let Some(soonest) = soonest else {
            let message = format!("{}: no identity of the site serves this client", names());
            return Err(no(RefusalKind::ClientUnknown, message));
        };
        let Some((_, pick)) = best else {
            let free_at = if let Free::At(at) = soonest { Some(at) } else { None };
            let what = match (why, bound) {
                (RefusalKind::NoProxy, _) => "every proxy is in use or resting",
                (_, Some(_)) => "the identity of the session is in use or resting",
                (_, None) => "every identity is in use or resting",
            };
            return Err(NoPick { why, free_at, message: format!("{}: {what}", names()) });
        };
        if let Some(key) = sticky {
            self.bind(key, pick.identity, now);
        }
        Ok(pick)
    }

    /// Books a lease on what was picked; `turn` rises with every lease of the plane.
    pub(super) fn take(&mut self, pick: Pick, turn: u64, now: Instant) -> Option<(IdentityKey, Arc<Credential>)> {
        let anchored = self.rules.reuse_anchor == ReuseAnchor::Acquired;
        let identity = self.identities.get_mut(pick.identity)?;
        identity.open += 1;
        identity.used = turn;
        if anchored && !identity.reuse_interval.is_zero() {
            identity.rest(pick.group, after(now, identity.reuse_interval));
        }
        Some((identity.key.clone(), Arc::clone(&identity.credential)))
    }

    /// Books the end of a lease at `at`.
    pub(super) fn give_back(&mut self, identity: usize, group: usize, at: Instant) {
        let anchored = self.rules.reuse_anchor == ReuseAnchor::Released;
        if let Some(identity) = self.identities.get_mut(identity) {
            identity.open = identity.open.saturating_sub(1);
            if anchored && !identity.reuse_interval.is_zero() {
                identity.rest(group, after(at, identity.reuse_interval));
            }
        }
    }

    /// Lets an identity rest in one group.
    pub(super) fn rest(&mut self, identity: usize, group: usize, until: Instant) {
        if let Some(identity) = self.identities.get_mut(identity) {
            identity.rest(group, until);
        }
    }

    /// The group of this name, or of this path when no name is given.
    fn group(&self, name: &str, path: &str) -> Option<usize> {
        if !name.is_empty() {
            return self.groups.iter().position(|group| &*group.name == name);
        }
        let mut longest = (0, 0);
        for (index, group) in self.groups.iter().enumerate() {
            for prefix in &group.prefixes {
                if prefix.len() > longest.0 && path.starts_with(prefix.as_str()) {
                    longest = (prefix.len(), index);
                }
            }
        }
        Some(longest.1)
    }

    /// The proxy an identity would go through, and when.
    fn proxy(&self, identity: &Identity, proxies: &[Proxy], now: Instant) -> (Free, Option<usize>) {
        let pool = match &identity.proxy {
            Some(own) => std::slice::from_ref(own),
            None => &self.pool,
        };
        pool.iter()
            .filter_map(|index| proxies.get(*index).map(|proxy| (proxy.free(now), proxy.used, *index)))
            .min()
            .map_or((Free::Now, None), |(free, _, index)| (free, Some(index)))
    }

    fn bound(&self, key: &(Arc<str>, Arc<str>), now: Instant) -> Option<usize> {
        let sticky = self.sticky.get(key)?;
        (now.duration_since(sticky.used) < self.rules.sticky_ttl).then_some(sticky.identity)
    }

    fn bind(&mut self, key: (Arc<str>, Arc<str>), identity: usize, now: Instant) {
        if self.sticky.len() >= STICKY_MOST && !self.sticky.contains_key(&key) {
            // One pass for many inserts: what is over goes, and if nothing is, the older half.
            let mut used: Vec<Instant> = self.sticky.values().map(|sticky| sticky.used).collect();
            used.sort_unstable();
            let median = used.get(used.len() / 2).copied().unwrap_or(now);
            let ttl = self.rules.sticky_ttl;
            self.sticky.retain(|_, sticky| sticky.used > median && now.duration_since(sticky.used) < ttl);
        }
        self.sticky.insert(key, Sticky { identity, used: now });
    }
}

impl Identity {
    fn serves(&self, client: &Arc<str>) -> bool {
        self.clients.is_empty() || self.clients.contains(client)
    }

    fn free(&self, group: usize, now: Instant) -> Free {
        Free::of(self.open, self.concurrency, self.rests.get(group).copied().flatten(), now)
    }

    fn rest(&mut self, group: usize, until: Instant) {
        if let Some(rests) = self.rests.get_mut(group) {
            *rests = (*rests).max(Some(until));
        }
    }
}
