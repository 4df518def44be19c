//! What a file says, taken over by a plane that may be running: what is new is added, what is gone is put aside, what stays
//! keeps its leases, states and health.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use secrecy::ExposeSecret;
use serde::Serialize;

use super::Plane;
use super::build::{BuildError, Policies};
use super::catalogue::Proxy;
use super::identity::{Account, AccountState, Identity, IdentityBooks, State};
use super::rules::GroupRules;
use super::site::{Client, Group, Membership, Pause, Site};
use crate::plane::model::Ms;
use crate::plane::model::action::BanHistory;
use crate::plane::model::breaker::{Breaker, Phase};
use crate::plane::model::config_center::{Format, ItemName};
use crate::plane::model::lease::Occupancy;
use crate::plane::model::proxy_pool::{Binding, ProxyTraits};
use crate::plane::model::score::Score;
use crate::plane::model::streak::Streak;
use crate::plane::model::token::Tokens;
use crate::plane::seed::{
    AccountStart, Given, Seed, SeedAccount, SeedClient, SeedIdentity, SeedItem, SeedProxy, SeedSecret, SeedSite, Start,
};

/// What a reload changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub(crate) struct Changes {
    pub(crate) sites_added: u32,
    pub(crate) sites_removed: u32,
    /// Paused or resumed.
    pub(crate) sites_switched: u32,
    pub(crate) identities_added: u32,
    /// Those with another credential.
    pub(crate) identities_changed: u32,
    pub(crate) identities_removed: u32,
    pub(crate) proxies_added: u32,
    pub(crate) proxies_removed: u32,
    pub(crate) items_published: u32,
    pub(crate) items_deleted: u32,
    pub(crate) secrets_changed: u32,
    /// Whether a token has another text, or may do something else.
    pub(crate) tokens_changed: bool,
}

/// The membership of those the file no longer has.
const NOWHERE: u32 = u32::MAX;

/// Group and key of a config item.
type ItemKey = (Arc<str>, Arc<str>);

/// What the file said last, to tell its changes from those of operators.
#[derive(Debug, Default)]
pub(super) struct Written {
    paused: BTreeMap<Arc<str>, Arc<str>>,
    items: BTreeMap<ItemKey, (Format, Arc<str>)>,
    secrets: BTreeSet<Arc<str>>,
}

impl Changes {
    /// Whether `_runtime` has to be rendered anew.
    pub(super) const fn sites(&self) -> bool {
        self.sites_added > 0 || self.sites_removed > 0 || self.sites_switched > 0
    }
}

impl Plane {
    /// Takes over what the seed says.
    pub(super) fn load(&mut self, seed: Seed, now: Ms) -> Result<Changes, BuildError> {
        let mut changes = Changes::default();
        // All that can fail comes first.
        let mut tokens = Tokens::default();
        for token in seed.tokens {
            let name = Arc::clone(&token.token.name);
            tokens.admit(&token.text, token.token)?;
            if token.is_revoked {
                tokens.revoke(&name);
            }
        }
        let policies = Policies::of(seed.policies)?;
        let mut sites = Vec::with_capacity(seed.sites.len());
        for site in seed.sites {
            let mut rules = Vec::new();
            for client in &site.clients {
                for group in client.groups.names() {
                    rules.push(Arc::new(policies.rules(&site.name, &client.name, group, &mut self.names)?));
                }
            }
            sites.push((site, rules));
        }
        self.load_config(seed.config, seed.secrets, now, &mut changes)?;
        changes.tokens_changed = !self.tokens.is_alike(&tokens);
        self.tokens = tokens;
        let shared = std::mem::take(&mut self.shared);
        self.shared = self.load_proxies(shared, &seed.proxies, &mut changes);
        let reserved: BTreeSet<u32> = reserved(&self.shared, &seed.proxies);
        let gone: Vec<Arc<str>> =
            self.by_name.keys().filter(|name| !sites.iter().any(|(site, _)| site.name == **name)).cloned().collect();
        for name in gone {
            self.by_name.remove(&name);
            self.written.paused.remove(&name);
            changes.sites_removed += 1;
        }
        for (site, rules) in sites {
            self.load_site(site, rules, &reserved, now, &mut changes);
        }
        Ok(changes)
    }

    fn load_site(
        &mut self,
        seed: SeedSite,
        rules: Vec<Arc<GroupRules>>,
        reserved_shared: &BTreeSet<u32>,
        now: Ms,
        changes: &mut Changes,
    ) {
        let known = self.sites.iter().position(|site| site.name == seed.name).and_then(|key| u32::try_from(key).ok());
        let key = known.unwrap_or_else(|| {
            let key = u32::try_from(self.sites.len()).unwrap_or(u32::MAX);
            self.sites.push(Site::new(Arc::clone(&seed.name), key));
            key
        });
        if self.by_name.insert(Arc::clone(&seed.name), key).is_none() {
            changes.sites_added += 1;
        }
        let own = self.sites.get_mut(key as usize).map(|site| std::mem::take(&mut site.own_proxies)).unwrap_or_default();
        let own = self.load_proxies(own, &seed.proxies, changes);
        let reserved_own = reserved(&own, &seed.proxies);
        let Some(site) = self.sites.get_mut(key as usize) else { return };
        let (usable, reserved) = if own.is_empty() { (&self.shared, reserved_shared) } else { (&own, &reserved_own) };
        site.load_clients(seed.clients, rules);
        site.use_proxies(usable, reserved, now);
        site.load_accounts(&seed.accounts);
        let catalogue = &self.catalogue;
        // A bound proxy is one of the site's own, or else a shared one.
        let by_id: BTreeMap<&str, u32> =
            self.shared.iter().chain(&own).filter_map(|key| Some((&*catalogue.get(*key)?.id, *key))).collect();
        let mut present = BTreeSet::new();
        for identity in seed.identities {
            present.insert(Arc::clone(&identity.id));
            let region = self.names.symbol(identity.attributes.region.as_deref().unwrap_or_default());
            let proxy = identity.proxy.as_deref().and_then(|id| by_id.get(id)).copied();
            site.load_identity(identity, region, proxy, now, changes);
        }
        let gone: Vec<u32> = site.by_id.iter().filter(|(id, _)| !present.contains(*id)).map(|(_, key)| *key).collect();
        for key in gone {
            if site.identity(key).is_some_and(|identity| identity.state != State::Retired) {
                site.move_identity(key, State::Retired, now);
                changes.identities_removed += 1;
            }
            // The types and clients are numbered anew: without a line in the file it has none, whoever restores it.
            if let Some(identity) = site.identity_mut(key) {
                identity.membership = NOWHERE;
            }
        }
        // Whoever was bound to a proxy that the file now keeps for another identity has to let it go.
        for identity in &mut site.identities {
            let bound = identity.binding.proxy();
            if bound != identity.own_proxy && bound.is_some_and(|proxy| reserved.contains(&proxy)) {
                identity.binding.loosen();
            }
        }
        site.own_proxies = own;
        if self.written.paused.get(&seed.name) != seed.paused.as_ref() {
            changes.sites_switched += 1;
            site.pause = seed.paused.clone().map(|reason| Pause { reason, since: now });
        }
        match seed.paused {
            Some(reason) => self.written.paused.insert(seed.name, reason),
            None => self.written.paused.remove(&seed.name),
        };
    }

    /// Brings a list of proxies up to date; answers its keys in the order of the seed.
    fn load_proxies(&mut self, known: Vec<u32>, seed: &[SeedProxy], changes: &mut Changes) -> Vec<u32> {
        let named = known.into_iter().filter_map(|key| Some((Arc::clone(&self.catalogue.get(key)?.id), key)));
        let mut known: BTreeMap<Arc<str>, u32> = named.collect();
        let mut keys = Vec::with_capacity(seed.len());
        for SeedProxy { id, proxy, .. } in seed {
            let entry = Proxy::new(Arc::clone(id), proxy.url.clone(), &proxy.kind, &proxy.region, proxy.session_template.clone());
            let traits = ProxyTraits {
                active: true,
                kind: self.names.symbol(&proxy.kind),
                provider: self.names.symbol(&proxy.provider),
                region: self.names.symbol(&proxy.region),
                tags: proxy.tags.iter().map(|tag| self.names.symbol(tag)).collect(),
                max_concurrency: proxy.max_concurrency,
                cooldown: 0,
            };
            keys.push(match known.remove(id) {
                Some(key) => {
                    self.catalogue.replace(key, entry, traits);
                    key
                }
                None => {
                    changes.proxies_added += 1;
                    self.catalogue.add(entry, traits)
                }
            });
        }
        for key in known.into_values() {
            self.catalogue.disable(key);
            changes.proxies_removed += 1;
        }
        keys
    }

    fn load_config(
        &mut self,
        items: Vec<SeedItem>,
        secrets: Vec<SeedSecret>,
        now: Ms,
        changes: &mut Changes,
    ) -> Result<(), BuildError> {
        let mut paths = BTreeSet::new();
        for SeedSecret { path, value, expires_at } in secrets {
            let is_known = self
                .center
                .secrets()
                .find(&path, 0)
                .is_some_and(|known| known.value.expose_secret() == value.expose_secret() && known.expires_at == expires_at);
            if !is_known {
                self.center.secrets_mut().put(&path, value, expires_at)?;
                changes.secrets_changed += 1;
            }
            paths.insert(path);
        }
        let mut written = BTreeMap::new();
        for SeedItem { group, key, format, content } in items {
            let is_as_before = self
                .written
                .items
                .get(&(Arc::clone(&group), Arc::clone(&key)))
                .is_some_and(|(was, text)| *was == format && *text == content);
            let name = ItemName { group: &group, key: &key };
            if !is_as_before && !self.center.holds(name, format, &content) {
                self.publish(name, format, &content, now)?;
                changes.items_published += 1;
            }
            written.insert((group, key), (format, content));
        }
        for (group, key) in self.written.items.keys().filter(|name| !written.contains_key(*name)) {
            if self.center.delete(ItemName { group, key }) {
                changes.items_deleted += 1;
            }
        }
        for path in self.written.secrets.difference(&paths) {
            if self.center.secrets_mut().delete(path) {
                changes.secrets_changed += 1;
            }
        }
        self.written.items = written;
        self.written.secrets = paths;
        Ok(())
    }
}

impl Site {
    fn load_clients(&mut self, seed: Vec<SeedClient>, rules: Vec<Arc<GroupRules>>) {
        let mut known: BTreeMap<(Arc<str>, Arc<str>), u32> = BTreeMap::new();
        for client in std::mem::take(&mut self.clients) {
            for index in client.groups {
                if let Some(group) = self.group(index) {
                    known.insert((Arc::clone(&client.name), Arc::clone(&group.name)), index);
                }
            }
        }
        let mut rules = rules.into_iter();
        for client in seed {
            let mut groups = Vec::with_capacity(client.groups.names().len());
            for (name, rules) in client.groups.names().iter().zip(&mut rules) {
                let old = known.remove(&(Arc::clone(&client.name), Arc::clone(name)));
                let index = old.unwrap_or_else(|| u32::try_from(self.groups.len()).unwrap_or(u32::MAX));
                match self.groups.get_mut(index as usize) {
                    Some(group) => group.rules = rules,
                    None => self.groups.push(Group {
                        name: Arc::clone(name),
                        rules,
                        queue: Default::default(),
                        breaker: Breaker::new(),
                        cursor: None,
                        states: Default::default(),
                    }),
                }
                groups.push(index);
            }
            self.clients.push(Client { name: client.name, routes: client.groups, groups });
        }
        // `_runtime` must not go on telling of a breaker that is gone.
        self.has_moved |=
            known.values().filter_map(|index| self.group(*index)).any(|group| group.breaker.phase() != Phase::Closed);
        // Who leases whom follows from the clients; identities are put into the queues again as they are loaded.
        for group in &mut self.groups {
            group.queue = Default::default();
        }
        self.memberships.clear();
    }

    fn use_proxies(&mut self, usable: &[u32], reserved: &BTreeSet<u32>, now: Ms) {
        let known: BTreeSet<u32> = usable.iter().copied().collect();
        for key in self.proxies.iter().filter(|key| !known.contains(key) || reserved.contains(key)) {
            self.pool.dismiss(*key);
        }
        for key in usable.iter().filter(|key| !reserved.contains(key)) {
            self.pool.admit(*key, now);
        }
        self.proxies = usable.iter().filter(|key| !reserved.contains(key)).copied().collect();
    }

    fn load_accounts(&mut self, seed: &[SeedAccount]) {
        for account in seed {
            let start = match account.state {
                AccountStart::Active => AccountState::Active,
                AccountStart::Banned => AccountState::Banned(None),
                AccountStart::Disabled => AccountState::Disabled,
            };
            let known = self.account_by_name.get(&account.name).and_then(|place| self.accounts.get_mut(*place as usize));
            match known {
                // What reports led to is kept until the file says something else than it did.
                Some(known) => {
                    if std::mem::replace(&mut known.said, account.state) != account.state {
                        known.state = start;
                    }
                }
                None => {
                    let place = u32::try_from(self.accounts.len()).unwrap_or(u32::MAX);
                    self.account_by_name.insert(Arc::clone(&account.name), place);
                    self.accounts.push(Account {
                        name: Arc::clone(&account.name),
                        state: start,
                        said: account.state,
                        cooldown: 0,
                        bans: BanHistory::default(),
                        members: Vec::new(),
                    });
                }
            }
        }
    }

    fn load_identity(&mut self, seed: SeedIdentity, region: u32, proxy: Option<u32>, now: Ms, changes: &mut Changes) {
        let membership = self.membership(&seed.kind, &seed.clients);
        let account = seed.attributes.account.as_deref().and_then(|name| self.account_by_name.get(name)).copied();
        let start = match seed.state {
            Start::Pending => State::Pending,
            Start::Active => State::Active,
            Start::Disabled => State::Disabled,
        };
        let Some(key) = self.by_id.get(&seed.id).copied() else {
            let mut binding = Binding::default();
            if let Some(proxy) = proxy {
                binding.bind(proxy, now);
            }
            changes.identities_added += 1;
            self.add_identity(Identity {
                id: seed.id,
                membership,
                account,
                region,
                given: seed.given,
                state: start,
                activated: (start == State::Active).then_some(now),
                occupancy: Occupancy::default(),
                site_cooldown: 0,
                site_reuse: 0,
                score: Score::default(),
                streak: Streak::default(),
                bans: BanHistory::default(),
                binding,
                own_proxy: proxy,
                is_pushed: false,
                books: IdentityBooks::default(),
            });
            return;
        };
        self.join(key, account);
        let Some(identity) = self.identities.get_mut(key as usize) else { return };
        let is_changed = !is_same(&identity.given, &seed.given);
        let state = match (identity.state, start) {
            (_, State::Disabled) => State::Disabled,
            (State::Disabled | State::Retired, start) => start,
            (State::Banned(end), _) => State::Banned(end),
            (_, start) if is_changed => start,
            (state, _) => state,
        };
        identity.membership = membership;
        identity.region = region;
        identity.given = seed.given;
        if proxy != identity.own_proxy
            && let Some(proxy) = proxy
        {
            identity.binding.bind(proxy, now);
        }
        identity.own_proxy = proxy;
        if is_changed {
            changes.identities_changed += 1;
            identity.score = Score::default();
            identity.streak = Streak::default();
            for group in &mut self.groups {
                if group.states.get(key).is_some() {
                    let state = group.states.entry(key);
                    state.score = Score::default();
                    state.streak = Streak::default();
                }
            }
        }
        self.move_identity(key, state, now);
    }

    fn join(&mut self, key: u32, account: Option<u32>) {
        let Some(identity) = self.identities.get_mut(key as usize) else { return };
        if identity.account == account {
            return;
        }
        let old = std::mem::replace(&mut identity.account, account);
        if let Some(old) = old.and_then(|old| self.accounts.get_mut(old as usize)) {
            old.members.retain(|member| *member != key);
        }
        if let Some(new) = account.and_then(|new| self.accounts.get_mut(new as usize)) {
            new.members.push(key);
        }
    }

    /// The index of those of this type for these clients.
    fn membership(&mut self, kind: &Arc<str>, clients: &[Arc<str>]) -> u32 {
        let clients: Vec<u32> = clients.iter().filter_map(|name| self.client(name)).collect();
        let known = self.memberships.iter().position(|known| known.kind == *kind && known.clients == clients);
        if let Some(known) = known.and_then(|known| u32::try_from(known).ok()) {
            return known;
        }
        let groups = clients.iter().filter_map(|client| self.clients.get(*client as usize)).flat_map(|client| &client.groups);
        let admits = |group: &&u32| self.group(**group).is_some_and(|group| group.rules.admits(kind));
        let groups = groups.filter(admits).copied().collect();
        self.memberships.push(Membership { kind: Arc::clone(kind), clients, groups });
        u32::try_from(self.memberships.len() - 1).unwrap_or(u32::MAX)
    }
}

/// The keys of those that one identity alone is ever given.
fn reserved(keys: &[u32], seed: &[SeedProxy]) -> BTreeSet<u32> {
    keys.iter().zip(seed).filter(|(_, proxy)| proxy.reserved_for.is_some()).map(|(key, _)| *key).collect()
}

fn is_same(one: &Given, other: &Given) -> bool {
    match (one, other) {
        (Given::Plain(one), Given::Plain(other)) => one == other,
        // The payload counts fields by their place in the type.
        (Given::Typed { kind: of_one, payload: one }, Given::Typed { kind: of_other, payload: other }) => {
            of_one.name == of_other.name && of_one.fields == of_other.fields && one == other
        }
        _ => false,
    }
}
