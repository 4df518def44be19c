//! The leases of one site: open ones until they end, ended ones as long as a report may still come (wire contract, section 22).
//!
//! A lease ends once: by a release, or by the reaper at its expiry. Its time and cap are frozen when it begins. Bounded: open
//! leases by a limit, kept records by another; the oldest are dropped first. What a lease holds is the caller's `T`.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::dice::Dice;
use crate::plane::model::Ms;
use crate::plane::model::lease_id::LeaseId;

/// How many leases the reaper ends at once, at most.
pub(crate) const REAP_BATCH: usize = 500;

/// Kept records looked at in passing when a lease begins: more than one, so that they become fewer.
const SWEEP: usize = 3;

/// How long a lease lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeaseTerms {
    pub(crate) ttl: Ms,
    /// Renewals never go beyond this from the beginning on.
    pub(crate) lifetime: Ms,
}

/// What is kept of ended leases, and how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Retention {
    /// A report this long after the end of its lease still has its full effect.
    pub(crate) late_window: Ms,
    /// The record outlives the last timely report by this.
    pub(crate) dedup_window: Ms,
    /// Open leases, at most.
    pub(crate) open: usize,
    /// Records of ended leases, at most; more are dropped when the next lease begins.
    pub(crate) kept: usize,
}

/// A place in the table; never means another lease later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LeaseKey {
    slot: u32,
    generation: u32,
}

/// Where a lease is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseState {
    Active,
    Released,
    Expired,
}

/// A lease, or the record of an ended one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lease<T> {
    id: LeaseId,
    /// Of an active lease its expiry, of an ended one its end.
    until: Ms,
    cap: Ms,
    ttl: Ms,
    last_timely: Option<Ms>,
    reports: u32,
    state: LeaseState,
    /// What it holds.
    pub(crate) holding: T,
}

/// What a release found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It ended now.
    Now(LeaseKey),
    /// It had ended before.
    Before,
}

/// Why a lease was not prolonged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RenewError {
    Unknown,
    Released,
    Expired,
    LifetimeExceeded,
}

/// Whether a report came in time for its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timeliness {
    Timely,
    /// For the statistics only.
    Late,
}

/// A report counted on its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) timeliness: Timeliness,
    /// Whether it costs a unit of quota: from the second on.
    pub(crate) costs_quota: bool,
}

/// The books: `acquired == released + expired + open`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LeaseCounts {
    pub(crate) acquired: u64,
    /// Aborted ones too.
    pub(crate) released: u64,
    pub(crate) aborted: u64,
    pub(crate) expired: u64,
    /// Expired without a single report.
    pub(crate) abandoned: u64,
    pub(crate) open: u64,
    /// Records dropped before their time, for want of room.
    pub(crate) dropped_early: u64,
}

/// The table.
#[derive(Debug)]
pub(crate) struct LeaseTable<T> {
    site: u64,
    shards: u8,
    retention: Retention,
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    /// When to look whether a lease is over: never later than its expiry.
    due: BinaryHeap<Reverse<(Ms, LeaseKey)>>,
    /// Ended, within the late window.
    recent: VecDeque<LeaseKey>,
    /// Ended, beyond it, kept for repeated reports.
    older: VecDeque<LeaseKey>,
    counts: LeaseCounts,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    lease: Option<Lease<T>>,
}

impl Default for LeaseTerms {
    fn default() -> Self {
        Self { ttl: 120_000, lifetime: 1_800_000 }
    }
}

impl Default for Retention {
    fn default() -> Self {
        Self { late_window: 600_000, dedup_window: 3_600_000, open: 1 << 20, kept: 1 << 18 }
    }
}

impl LeaseTerms {
    /// How long before its expiry a lease should be renewed.
    pub(crate) const fn renew_before(&self) -> Ms {
        self.ttl / 4
    }
}

impl<T> Lease<T> {
    /// Its id.
    pub(crate) const fn id(&self) -> LeaseId {
        self.id
    }

    /// Where it is in its life.
    pub(crate) const fn state(&self) -> LeaseState {
        self.state
    }

    /// When an active lease is over, or when an ended one ended.
    pub(crate) const fn until(&self) -> Ms {
        self.until
    }

    /// How many timely reports came.
    #[cfg(test)]
    pub(crate) const fn reports(&self) -> u32 {
        self.reports
    }

    /// Whether this is the record of an ended lease that nobody keeps at `now`.
    fn is_gone(&self, now: Ms, retention: &Retention) -> bool {
        self.state != LeaseState::Active && now > self.kept_until(retention)
    }

    fn kept_until(&self, retention: &Retention) -> Ms {
        let late = self.until.saturating_add(retention.late_window);
        self.last_timely.map_or(late, |at| late.max(at.saturating_add(retention.dedup_window)))
    }
}

impl<T> LeaseTable<T> {
    /// No leases of the site with the key `site`, whose reports go to one of `shards` shards.
    pub(crate) fn new(site: u64, shards: u8, retention: Retention) -> Self {
        Self {
            site,
            shards,
            retention,
            slots: Vec::new(),
            free: Vec::new(),
            due: BinaryHeap::new(),
            recent: VecDeque::new(),
            older: VecDeque::new(),
            counts: LeaseCounts::default(),
        }
    }

    /// Begins a lease at `now`.
    ///
    /// # Errors
    /// `holding` comes back when as many leases are open as may be.
    pub(crate) fn begin(&mut self, terms: LeaseTerms, holding: T, now: Ms, dice: &mut Dice) -> Result<(LeaseKey, &Lease<T>), T> {
        if self.counts.open >= self.retention.open as u64 {
            return Err(holding);
        }
        self.forget(now, SWEEP);
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => match u32::try_from(self.slots.len()) {
                Ok(slot) => {
                    self.slots.push(Slot { generation: 0, lease: None });
                    slot
                }
                Err(_) => return Err(holding),
            },
        };
        let id = LeaseId::new(now, self.site, self.shards, slot, dice);
        if self.due.len() as u64 >= 2 * self.counts.open + 64 {
            self.rebuild_due();
        }
        let Some(place) = self.slots.get_mut(slot as usize) else { return Err(holding) };
        let cap = now.saturating_add(terms.lifetime);
        let until = now.saturating_add(terms.ttl).min(cap);
        let key = LeaseKey { slot, generation: place.generation };
        self.due.push(Reverse((until, key)));
        self.counts.acquired += 1;
        self.counts.open += 1;
        let lease = Lease { id, until, cap, ttl: terms.ttl, last_timely: None, reports: 0, state: LeaseState::Active, holding };
        Ok((key, place.lease.insert(lease)))
    }

    /// The lease or record with this id; `None` when it is not known (any more) at `now`.
    pub(crate) fn find(&self, id: LeaseId, now: Ms) -> Option<LeaseKey> {
        let slot = id.slot();
        let place = self.slots.get(slot as usize)?;
        let lease = place.lease.as_ref()?;
        let known = lease.id == id && !lease.is_gone(now, &self.retention);
        known.then_some(LeaseKey { slot, generation: place.generation })
    }

    /// The lease or record at `key`.
    pub(crate) fn get(&self, key: LeaseKey) -> Option<&Lease<T>> {
        let place = self.slots.get(key.slot as usize)?;
        if place.generation == key.generation { place.lease.as_ref() } else { None }
    }

    /// What the lease at `key` holds, to be changed.
    #[cfg(test)]
    pub(crate) fn holding_mut(&mut self, key: LeaseKey) -> Option<&mut T> {
        self.lease_mut(key).map(|lease| &mut lease.holding)
    }

    /// Prolongs a lease by `extend` (its own time when 0) from `now` on: never shortened, never past its cap.
    ///
    /// # Errors
    /// It is not known, ended, over, or at its cap.
    pub(crate) fn renew(&mut self, id: LeaseId, extend: Ms, now: Ms) -> Result<(LeaseKey, &Lease<T>), RenewError> {
        let key = self.find(id, now).ok_or(RenewError::Unknown)?;
        let lease = self.lease_mut(key).ok_or(RenewError::Unknown)?;
        match lease.state {
            LeaseState::Released => return Err(RenewError::Released),
            LeaseState::Expired => return Err(RenewError::Expired),
            LeaseState::Active if now >= lease.until => return Err(RenewError::Expired),
            LeaseState::Active if lease.until >= lease.cap => return Err(RenewError::LifetimeExceeded),
            LeaseState::Active => {}
        }
        let wanted = now.saturating_add(if extend == 0 { lease.ttl } else { extend });
        lease.until = wanted.max(lease.until).min(lease.cap);
        Ok((key, lease))
    }

    /// Releases a lease, even an overdue one; `None` when it is not known.
    pub(crate) fn release(&mut self, id: LeaseId, now: Ms) -> Option<Ended> {
        let key = self.find(id, now)?;
        Some(if self.end(key, now, LeaseState::Released) { Ended::Now(key) } else { Ended::Before })
    }

    /// Releases the lease at `key`; `false` when it is not active.
    pub(crate) fn release_at(&mut self, key: LeaseKey, now: Ms) -> bool {
        self.end(key, now, LeaseState::Released)
    }

    /// Releases a lease that was never delivered; `false` when it is not active. What it took, the caller gives back.
    pub(crate) fn abort(&mut self, key: LeaseKey, now: Ms) -> bool {
        let ended = self.end(key, now, LeaseState::Released);
        self.counts.aborted += u64::from(ended);
        ended
    }

    /// Counts a report received at `received`; `None` when there is no such lease or record.
    pub(crate) fn count_report(&mut self, key: LeaseKey, received: Ms) -> Option<Counted> {
        let late_window = self.retention.late_window;
        let lease = self.lease_mut(key)?;
        if lease.state != LeaseState::Active && received.saturating_sub(lease.until) > late_window {
            return Some(Counted { timeliness: Timeliness::Late, costs_quota: false });
        }
        lease.reports = lease.reports.saturating_add(1);
        lease.last_timely = lease.last_timely.max(Some(received));
        Some(Counted { timeliness: Timeliness::Timely, costs_quota: lease.reports > 1 })
    }

    /// Ends up to `limit` leases whose time is over at `now`, at their expiry, and names them in `into`; the earliest first.
    /// Fewer than `limit` means that there are no more. Their records stay at least until the next lease begins.
    pub(crate) fn reap(&mut self, now: Ms, limit: usize, into: &mut Vec<LeaseKey>) -> usize {
        // Before, not after: the records of those that end now are the caller's to read.
        self.forget(now, REAP_BATCH);
        let mut ended = 0;
        while ended < limit {
            let Some(Reverse((at, key))) = self.due.peek().copied() else { break };
            if at > now {
                break;
            }
            self.due.pop();
            let Some(until) = self.get(key).filter(|lease| lease.state == LeaseState::Active).map(|lease| lease.until) else {
                continue;
            };
            if until > at {
                // It was renewed since.
                self.due.push(Reverse((until, key)));
            } else if self.end(key, until, LeaseState::Expired) {
                into.push(key);
                ended += 1;
            }
        }
        ended
    }

    /// When the reaper may find something next.
    pub(crate) fn next_due(&self) -> Option<Ms> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    /// The books.
    pub(crate) const fn counts(&self) -> LeaseCounts {
        self.counts
    }

    /// How many records of ended leases there are.
    pub(crate) fn kept(&self) -> usize {
        self.recent.len() + self.older.len()
    }

    fn lease_mut(&mut self, key: LeaseKey) -> Option<&mut Lease<T>> {
        let place = self.slots.get_mut(key.slot as usize)?;
        if place.generation == key.generation { place.lease.as_mut() } else { None }
    }

    fn end(&mut self, key: LeaseKey, at: Ms, state: LeaseState) -> bool {
        let Some(lease) = self.lease_mut(key).filter(|lease| lease.state == LeaseState::Active) else { return false };
        lease.state = state;
        lease.until = at;
        let abandoned = state == LeaseState::Expired && lease.reports == 0;
        self.counts.open -= 1;
        match state {
            LeaseState::Expired => self.counts.expired += 1,
            LeaseState::Active | LeaseState::Released => self.counts.released += 1,
        }
        self.counts.abandoned += u64::from(abandoned);
        self.recent.push_back(key);
        true
    }

    /// Drops records nobody keeps any more, up to `steps` of each age, and the oldest beyond the limit.
    fn forget(&mut self, now: Ms, steps: usize) {
        for _ in 0..steps {
            let Some(key) = self.recent.front().copied() else { break };
            match self.get(key).map(|lease| (lease.until, lease.kept_until(&self.retention))) {
                Some((ended, _)) if now <= ended.saturating_add(self.retention.late_window) => break,
                Some((_, kept)) if now <= kept => self.older.push_back(key),
                _ => self.drop_record(key),
            }
            self.recent.pop_front();
        }
        for _ in 0..steps {
            let Some(key) = self.older.front().copied() else { break };
            if self.get(key).is_some_and(|lease| now <= lease.kept_until(&self.retention)) {
                break;
            }
            self.older.pop_front();
            self.drop_record(key);
        }
        while self.kept() > self.retention.kept {
            let Some(key) = self.older.pop_front().or_else(|| self.recent.pop_front()) else { break };
            self.drop_record(key);
            self.counts.dropped_early += 1;
        }
    }

    fn drop_record(&mut self, key: LeaseKey) {
        let Some(place) = self.slots.get_mut(key.slot as usize).filter(|place| place.generation == key.generation) else {
            return;
        };
        if place.lease.take().is_some() {
            place.generation = place.generation.wrapping_add(1);
            self.free.push(key.slot);
        }
    }

    /// Most leases end long before their expiry; without this their entries would pile up until then.
    fn rebuild_due(&mut self) {
        let slots = &self.slots;
        self.due.retain(|Reverse((_, key))| {
            slots
                .get(key.slot as usize)
                .filter(|place| place.generation == key.generation)
                .and_then(|place| place.lease.as_ref())
                .is_some_and(|lease| lease.state == LeaseState::Active)
        });
    }
}

#[cfg(test)]
mod tests;
