//! One site: its clients, endpoint groups, identities, accounts and leases, and when an identity is available where.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::effects::Journal;
use super::identity::{Account, Identity, InGroup, State};
use super::pages::Pages;
use super::rules::GroupRules;
use crate::dice::Dice;
use crate::plane::model::Ms;
use crate::plane::model::breaker::Breaker;
use crate::plane::model::counts::Counts;
use crate::plane::model::cross::Cross;
use crate::plane::model::groups::Groups;
use crate::plane::model::lease::{LeaseTable, ReportDedup, Retention, Reuse, ReuseMark, busy_until, lease_limit};
use crate::plane::model::proxy_pool::ProxyPool;
use crate::plane::model::ready::ReadyQueue;
use crate::plane::model::score::Score;
use crate::plane::model::sticky::StickyMap;
use crate::plane::model::strategy::Candidate;
use crate::plane::model::streak::Streak;

/// Shards of reports, which lease ids name. Everything is processed in order, so one does.
const SHARDS: u8 = 1;
/// Session keys remembered.
const STICKY_KEYS: usize = 1 << 16;
/// Report ids remembered.
const REPORT_IDS: usize = 1 << 20;

/// A site.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) name: Arc<str>,
    pub(super) clients: Vec<Client>,
    pub(super) groups: Vec<Group>,
    pub(super) memberships: Vec<Membership>,
    pub(super) identities: Vec<Identity>,
    pub(super) by_id: BTreeMap<Arc<str>, u32>,
    pub(super) accounts: Vec<Account>,
    pub(super) account_by_name: BTreeMap<Arc<str>, u32>,
    /// The proxies any of its identities may get, by their keys in the catalogue.
    pub(super) proxies: Vec<u32>,
    /// Those that are for this site only, reserved ones too.
    pub(super) own_proxies: Vec<u32>,
    pub(super) pool: ProxyPool,
    pub(super) proxy_health: Pages<ProxyHealth>,
    pub(super) leases: LeaseTable<Holding>,
    pub(super) dedup: ReportDedup,
    pub(super) sticky: StickyMap,
    pub(super) counts: Counts,
    pub(super) cross: Cross,
    pub(super) pause: Option<Pause>,
    /// When bans and quarantines are over.
    pub(super) ends: BTreeSet<(Ms, Subject)>,
    pub(super) books: ReportBooks,
    /// Whether a breaker moved since the `_runtime` items were rendered.
    pub(super) has_moved: bool,
    pub(super) scratch: Scratch,
    pub(super) journal: Journal,
}

/// A client of the site.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) name: Arc<str>,
    pub(super) routes: Groups,
    /// By the index of `routes`, the index of the site.
    pub(super) groups: Vec<u32>,
}

/// An endpoint group.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) name: Arc<str>,
    pub(super) rules: Arc<GroupRules>,
    pub(super) queue: ReadyQueue,
    pub(super) breaker: Breaker,
    /// The identity leased last.
    pub(super) cursor: Option<u32>,
    pub(super) states: Pages<InGroup>,
}

/// Identities of one type for the same clients.
#[derive(Debug)]
pub(super) struct Membership {
    /// The name of the type.
    pub(super) kind: Arc<str>,
    pub(super) clients: Vec<u32>,
    /// The groups that lease them.
    pub(super) groups: Vec<u32>,
}

/// A proxy on this site.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ProxyHealth {
    pub(super) score: Score,
    pub(super) streak: Streak,
}

/// What a lease holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Holding {
    pub(super) identity: u32,
    pub(super) group: u32,
    pub(super) proxy: Option<u32>,
    /// The span of the half-open breaker it probes for.
    pub(super) probe: Option<Ms>,
    pub(super) acquired: Ms,
    pub(super) concurrent: u32,
    pub(super) reuse: Reuse,
    pub(super) mark: ReuseMark,
}

/// A pause of the site.
#[derive(Debug, Clone)]
pub(super) struct Pause {
    pub(super) reason: Arc<str>,
    pub(super) since: Ms,
}

/// Whose ban or quarantine ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject {
    Identity(u32),
    Account(u32),
}

/// What became of reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ReportBooks {
    pub(super) accepted: u64,
    pub(super) duplicated: u64,
    pub(super) rejected: u64,
    /// Identities and proxies that reports sent to rest.
    pub(super) cooled: u64,
}

/// Lists used again and again.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) keys: Vec<u32>,
    pub(super) candidates: Vec<Candidate>,
    pub(super) used: Vec<u32>,
    pub(super) ended: Vec<crate::plane::model::lease::LeaseKey>,
}

/// What a decision takes from outside the site.
#[derive(Debug)]
pub(super) struct Outside<'a> {
    pub(super) catalogue: &'a mut super::catalogue::Catalogue,
    pub(super) dice: &'a mut Dice,
    pub(super) now: Ms,
}

/// Whether the rest between two leases counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    Counts,
    /// For the identity of a session key.
    Skipped,
}

impl Site {
    /// A site without anything, whose leases carry the key `key`.
    pub(super) fn new(name: Arc<str>, key: u32) -> Self {
        Self {
            name,
            clients: Vec::new(),
            groups: Vec::new(),
            memberships: Vec::new(),
            identities: Vec::new(),
            by_id: BTreeMap::new(),
            accounts: Vec::new(),
            account_by_name: BTreeMap::new(),
            proxies: Vec::new(),
            own_proxies: Vec::new(),
            pool: ProxyPool::default(),
            proxy_health: Pages::default(),
            leases: LeaseTable::new(u64::from(key), SHARDS, Retention::default()),
            dedup: ReportDedup::new(REPORT_IDS),
            sticky: StickyMap::new(STICKY_KEYS),
            counts: Counts::new(),
            cross: Cross::new(),
            pause: None,
            ends: BTreeSet::new(),
            books: ReportBooks::default(),
            has_moved: false,
            scratch: Scratch::default(),
            journal: Journal::default(),
        }
    }

    pub(super) fn client(&self, name: &str) -> Option<u32> {
        self.clients.iter().position(|client| *client.name == *name).and_then(|index| u32::try_from(index).ok())
    }

    pub(super) fn group(&self, group: u32) -> Option<&Group> {
        self.groups.get(group as usize)
    }

    pub(super) fn group_mut(&mut self, group: u32) -> Option<&mut Group> {
        self.groups.get_mut(group as usize)
    }

    pub(super) fn identity(&self, identity: u32) -> Option<&Identity> {
        self.identities.get(identity as usize)
    }

    pub(super) fn identity_mut(&mut self, identity: u32) -> Option<&mut Identity> {
        self.identities.get_mut(identity as usize)
    }

    /// Takes in a new identity, at the end of its groups' queues.
    pub(super) fn add_identity(&mut self, identity: Identity) -> u32 {
        let key = u32::try_from(self.identities.len()).unwrap_or(u32::MAX);
        if let Some(account) = identity.account.and_then(|account| self.accounts.get_mut(account as usize)) {
            account.members.push(key);
        }
        self.by_id.insert(Arc::clone(&identity.id), key);
        self.identities.push(identity);
        self.enqueue(key, 0);
        key
    }

    /// Moves an identity to another state, into or out of its queues, and notes when that ends.
    pub(super) fn move_identity(&mut self, key: u32, state: State, now: Ms) {
        let Some(identity) = self.identity_mut(key) else { return };
        identity.state = state;
        if state == State::Active && identity.activated.is_none() {
            identity.activated = Some(now);
        }
        if let Some(end) = state.end() {
            self.ends.insert((end, Subject::Identity(key)));
        }
        self.enqueue(key, now);
    }

    /// Puts an identity where it belongs in each of its groups' queues, or takes it out of all.
    pub(super) fn enqueue(&mut self, key: u32, now: Ms) {
        let Some(identity) = self.identities.get_mut(key as usize) else { return };
        identity.is_pushed = identity.occupancy.active() > 0;
        let (membership, is_scheduled) = (identity.membership, identity.state.is_scheduled());
        let mut index = 0;
        while let Some(group) = self.memberships.get(membership as usize).and_then(|all| all.groups.get(index)).copied() {
            index += 1;
            if is_scheduled {
                self.place(key, group, now);
            } else if let Some(group) = self.groups.get_mut(group as usize) {
                group.queue.remove(key);
            }
        }
    }

    /// Puts an identity where it belongs in one group's queue, whichever group its leases are in. Nowhere if that group no
    /// longer leases it: a lease may outlive the file that said so.
    pub(super) fn requeue(&mut self, key: u32, group: u32, now: Ms) {
        if !self.group(group).is_some_and(|group| group.queue.contains(key)) {
            return;
        }
        if let Some(identity) = self.identities.get_mut(key as usize) {
            identity.is_pushed |= identity.occupancy.active() > 0;
        }
        self.place(key, group, now);
    }

    /// The same in the group of the lease that begins or ends: nothing else has to be remembered.
    pub(super) fn place(&mut self, key: u32, group: u32, now: Ms) {
        let Some(identity) = self.identities.get(key as usize).filter(|identity| identity.state.is_scheduled()) else { return };
        let mut at = self.available(key, group, Rest::Counts, now);
        let Some(group) = self.groups.get_mut(group as usize) else { return };
        let rules = &group.rules;
        if identity.occupancy.active() >= lease_limit(identity.state.standing(), rules.concurrent, rules.probe_leases) {
            at = at.max(busy_until(now, rules.terms.ttl));
        }
        group.queue.set(key, at);
    }

    /// When an identity is available in a group, as far as time alone tells (section 20).
    pub(super) fn available(&self, key: u32, group: u32, rest: Rest, now: Ms) -> Ms {
        let (Some(identity), Some(group)) = (self.identity(key), self.group(group)) else { return Ms::MAX };
        let mut at = identity.site_cooldown.max(identity.occupancy.exclusive_until());
        if let Some(state) = group.states.get(key) {
            at = at.max(state.cooldown);
            if rest == Rest::Counts {
                at = at.max(state.reuse);
            }
        }
        if rest == Rest::Counts {
            at = at.max(identity.site_reuse);
        }
        match identity.account.and_then(|account| self.accounts.get(account as usize)) {
            Some(account) => at.max(account.cooldown).max(account.state.hinders_until(now)),
            None => at,
        }
    }
}
