//! Slots: which host may have a request sent next, and when.
//!
//! Pure: it is told what waits, what was sent and what came back, and picks. It holds no job and reads no
//! clock. Each slot is filed by what it waits for (a place, a time, nothing), so that a pick costs the
//! logarithm of the slots that could go, and a host that waits costs the others nothing.
//!
//! Order of picks: hops first, of the slot served longest ago; then jobs, of the slot with the fewest places taken,
//! of those the one with the highest priority (as far as known: a slot's line is sorted by its store, and
//! only the priority of what was offered or pulled last is seen here), of those the one served longest ago.

pub(crate) mod known;
mod minute;
mod names;
mod slot;
#[cfg(test)]
mod tests;
mod when;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use self::known::Known;
use self::names::Names;
use self::slot::{Filed, Rank, Slot};
use self::when::{Era, When};
use super::job::SlotKey;
use super::pacing::Pacing;
use super::throttle::{Heard, Throttled};
use crate::dice::Dice;

/// The slots of a crawl.
#[derive(Debug)]
pub(crate) struct Slots {
    pacing: Pacing,
    /// Jobs a slot without delay may have out beyond its places.
    ahead: usize,
    dice: Dice,
    era: Era,
    names: Names,
    /// What the throttle knows, also of hosts that have no slot.
    known: Known,
    slab: Slab,
    free: Vec<SlotId>,
    hops: Lane,
    jobs: Lane,
    /// Slots without work that are kept for their next send time or gate only.
    expiring: BTreeSet<(When, SlotId)>,
    turn: u64,
}

/// Names a slot as long as it has work or places taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SlotId(u32);

/// What may go now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pick {
    /// The slot's first waiting hop.
    Hop(SlotId),
    /// A robots.txt request of the slot.
    Robots(SlotId),
    /// The next job of the slot's queue.
    Queued(SlotId),
}

/// What a host's throttle has to know of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// From sending to the head of the answer.
    pub(crate) latency: Duration,
    pub(crate) sent: Instant,
}

/// The slots by their ids.
#[derive(Debug, Default)]
struct Slab(Vec<Option<Slot>>);

/// Slots by when their hop or job may go.
#[derive(Debug, Default)]
struct Lane {
    ready: BTreeSet<(Rank, SlotId)>,
    timed: BTreeSet<(When, SlotId)>,
}

impl Slots {
    #[cfg(test)]
    pub(crate) fn new(pacing: Pacing, seed: u64) -> Self {
        Self::knowing(Known::default(), pacing, seed)
    }

    /// Slots of a crawl that goes on from what the throttle knew.
    pub(crate) fn knowing(known: Known, pacing: Pacing, seed: u64) -> Self {
        Self {
            pacing,
            known,
            ahead: 0,
            dice: Dice::new(seed),
            era: Era::default(),
            names: Names::default(),
            slab: Slab::default(),
            free: Vec::new(),
            hops: Lane::default(),
            jobs: Lane::default(),
            expiring: BTreeSet::new(),
            turn: 0,
        }
    }

    /// The id of a slot, which is made if need be; for a host that is about to get work.
    pub(crate) fn id(&mut self, host: &str) -> SlotId {
        if let Some(id) = self.find(host) {
            return id;
        }
        self.turn += 1;
        let mut slot = Slot::new(SlotKey(Arc::from(host)), self.turn);
        if slot.rates(&self.pacing).throttles
            && let Some(throttled) = self.known.get(host)
        {
            slot.rare_mut().throttled = Some(throttled);
        }
        let id = if let Some(id) = self.free.pop()
            && let Some(place) = self.slab.0.get_mut(id.0 as usize)
        {
            *place = Some(slot);
            id
        } else {
            let id = SlotId(u32::try_from(self.slab.0.len()).unwrap_or(u32::MAX));
            self.slab.0.push(Some(slot));
            id
        };
        self.names.add(host, id);
        id
    }

    /// The name of a slot; the empty one for an id that is out of use.
    pub(crate) fn key(&self, id: SlotId) -> SlotKey {
        self.slot(id).map_or_else(|| SlotKey(Arc::from("")), |slot| slot.key.clone())
    }

    #[cfg(test)]
    pub(crate) const fn pacing(&self) -> &Pacing {
        &self.pacing
    }

    /// What the throttle knows.
    pub(crate) const fn known(&self) -> &Known {
        &self.known
    }

    /// Whether every answer's effect is logged (`AUTOTHROTTLE_DEBUG`).
    pub(crate) const fn tells_throttle(&self) -> bool {
        self.pacing.throttle.debug
    }

    /// Number of slots kept.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// Changes delay and concurrency at once, also of delays that run.
    pub(crate) fn set_pacing(&mut self, pacing: Pacing, now: Instant) {
        let before = std::mem::replace(&mut self.pacing, pacing);
        for id in self.slab.ids() {
            let Some(slot) = self.slab.get(id) else { continue };
            // Without a delay nobody told of what was sent: the last one may have gone just now.
            if slot.active > 0 && !slot.is_paced(&before) && slot.is_paced(&self.pacing) {
                let throw = self.dice.throw();
                let at = self.era.when(now);
                let per_minute = slot.rates(&self.pacing).per_minute;
                self.change(id, now, |slot| {
                    slot.rare_mut().last = Some((at, throw));
                    if per_minute > 0 {
                        slot.rare_mut().minute.sent(at, per_minute);
                    }
                });
            }
            self.file(id, now);
        }
    }

    /// Changes how many jobs a slot may have out beyond its places; none that has a delay or a gate.
    pub(crate) fn set_ahead(&mut self, more: usize, now: Instant) {
        self.ahead = more;
        // Without more places than its own: those that are full with them are filed nowhere.
        let is_full = |id: &SlotId| self.slab.get(*id).is_some_and(|slot| slot.is_full(&self.pacing, 0));
        let full: Vec<SlotId> = self.slab.ids().filter(is_full).collect();
        for id in full {
            self.file(id, now);
        }
    }

    /// The slot's queue holds a job of `priority` that may go at `at`.
    pub(crate) fn queued(&mut self, id: SlotId, at: Instant, priority: i32, now: Instant) {
        let at = self.era.when(at);
        self.change(id, now, |slot| {
            slot.priority = if slot.queued_at.is_some() { slot.priority.max(priority) } else { priority };
            slot.queued_at = Some(slot.queued_at.map_or(at, |present| present.min(at)));
        });
    }

    /// Drops the slot if nothing speaks for it, as one that got an id and then no work.
    pub(crate) fn review(&mut self, id: SlotId, now: Instant) {
        self.file(id, now);
    }

    /// The slot's queue has nothing before this time, or nothing at all.
    pub(crate) fn queue_is(&mut self, id: SlotId, next: Option<Instant>, now: Instant) {
        let next = next.map(|at| self.era.when(at));
        self.change(id, now, |slot| slot.queued_at = next);
    }

    /// The slot's next job waits for robots.txt, or no longer.
    pub(crate) fn park(&mut self, id: SlotId, parked: bool, now: Instant) {
        self.change(id, now, |slot| slot.rare_mut().parked = parked);
    }

    /// The slot has a robots.txt request that may go then, or none.
    pub(crate) fn robots_is(&mut self, id: SlotId, next: Option<Instant>, now: Instant) {
        let next = next.map(|at| self.era.when(at));
        self.change(id, now, |slot| slot.rare_mut().robots_at = next);
    }

    /// One more hop waits in the slot.
    pub(crate) fn hop(&mut self, id: SlotId, now: Instant) {
        self.change(id, now, |slot| slot.rare_mut().hops += 1);
    }

    /// Raises the delay robots.txt asks for, as origins of one host may ask for different ones; false when the
    /// slot's next job must wait for it now.
    pub(crate) fn set_crawl_delay(&mut self, id: SlotId, delay: Duration, now: Instant) -> bool {
        if self.slot(id).is_some_and(|slot| slot.rare().crawl_delay < delay) {
            self.change(id, now, |slot| slot.rare_mut().crawl_delay = delay);
        }
        self.slot(id).is_some_and(|slot| slot.filed == Filed::Ready)
    }

    /// Nothing of the slot goes before `until`; an earlier gate that lasts longer holds.
    pub(crate) fn gate(&mut self, host: &str, until: Instant, now: Instant) {
        let id = self.id(host);
        let until = self.era.when(until);
        self.change(id, now, |slot| slot.rare_mut().gate = slot.rare().gate.max(Some(until)));
    }

    /// Nothing of the slot goes before `until`, whoever lifts its gate.
    pub(crate) fn pause(&mut self, host: &str, until: Instant, now: Instant) {
        let id = self.id(host);
        let until = self.era.when(until);
        self.change(id, now, |slot| slot.rare_mut().pause = slot.rare().pause.max(Some(until)));
    }

    /// How the host answered a request of that time, for its throttle: the delay before and now, if it is throttled.
    pub(crate) fn heard(&mut self, host: &str, answer: Answer, now: Instant) -> Option<(Duration, Duration)> {
        let rates = self.pacing.of(host);
        if !rates.throttles {
            return None;
        }
        let id = self.id(host);
        let (sent, at) = (self.era.when(answer.sent), self.era.when(now));
        let rules = self.pacing.throttle;
        let mut throttled = self.slot(id)?.rare().throttled.unwrap_or_else(|| Throttled::new(&rules, rates.delay));
        let before = throttled.delay;
        let mut heard = Heard::of(answer.status);
        // Those that were under way when it refused say the same once more, and were not asked any slower.
        if heard == Heard::Refused && self.slot(id)?.rare().refused.is_some_and(|refused| sent < refused) {
            heard = Heard::Otherwise;
        }
        throttled.hear(heard, answer.latency, &rules, rates.delay);
        self.known.set(host, throttled);
        self.change(id, now, |slot| {
            let rare = slot.rare_mut();
            rare.throttled = Some(throttled);
            if heard == Heard::Refused {
                rare.refused = Some(at);
            }
        });
        Some((before, throttled.delay))
    }

    /// Ends the host's gate before its time.
    pub(crate) fn lift(&mut self, host: &str, now: Instant) {
        let id = self.id(host);
        self.change(id, now, |slot| slot.rare_mut().gate = None);
    }

    /// What may go now; jobs and robots.txt requests only if `with_jobs`.
    pub(crate) fn pick(&mut self, now: Instant, with_jobs: bool) -> Option<Pick> {
        self.advance(now);
        if let Some((_, id)) = self.hops.ready.first() {
            return Some(Pick::Hop(*id));
        }
        let (_, id) = self.jobs.ready.first().copied().filter(|_| with_jobs)?;
        let now = self.era.when(now);
        let robots = self.slot(id).is_some_and(|slot| slot.rare().robots_at.is_some_and(|at| at <= now));
        Some(if robots { Pick::Robots(id) } else { Pick::Queued(id) })
    }

    /// Takes a place for a pick; true when its sending has to be told by [`Self::sent`].
    pub(crate) fn take(&mut self, pick: Pick, priority: i32, now: Instant) -> bool {
        let (Pick::Hop(id) | Pick::Robots(id) | Pick::Queued(id)) = pick;
        self.turn += 1;
        let turn = self.turn;
        let paced = self.slot(id).is_some_and(|slot| slot.is_paced(&self.pacing));
        let per_minute = self.slot(id).map_or(0, |slot| slot.rates(&self.pacing).per_minute);
        let at = self.era.when(now);
        let wants_sent = paced && !matches!(pick, Pick::Robots(_));
        self.change(id, now, |slot| {
            slot.turn = turn;
            slot.active += 1;
            if wants_sent {
                slot.rare_mut().unsent += 1;
            }
            match pick {
                Pick::Hop(_) => slot.rare_mut().hops = slot.rare().hops.saturating_sub(1),
                // Its sending is not told, and it waits for nothing.
                Pick::Robots(_) if per_minute > 0 => slot.rare_mut().minute.sent(at, per_minute),
                Pick::Robots(_) => {}
                // What is left in the queue has no higher priority.
                Pick::Queued(_) => slot.priority = priority,
            }
        });
        wants_sent
    }

    /// A request of the slot was sent: the delay counts from `at`.
    pub(crate) fn sent(&mut self, host: &str, at: Instant, now: Instant) {
        let id = self.id(host);
        let throw = self.dice.throw();
        let at = self.era.when(at);
        let per_minute = self.pacing.of(host).per_minute;
        self.change(id, now, |slot| {
            let rare = slot.rare_mut();
            rare.unsent = rare.unsent.saturating_sub(1);
            if per_minute > 0 {
                rare.minute.sent(at, per_minute);
            }
            if rare.last.is_none_or(|(last, _)| last <= at) {
                rare.last = Some((at, throw));
            }
        });
    }

    /// When the delay after the last request of the slot is over; gates aside.
    pub(crate) fn delayed_until(&self, host: &str) -> Option<Instant> {
        self.slot(self.find(host)?)?.delayed_until(&self.pacing).and_then(|at| self.era.instant(at))
    }

    /// The slot's delay, without jitter.
    pub(crate) fn delay(&self, id: SlotId) -> Duration {
        self.slot(id).map_or(Duration::ZERO, |slot| slot.delay(&self.pacing))
    }

    /// The slot has a place back. `unsent`: its sending was to be told, and it never was sent; others may be under way for
    /// long, and the next request need not wait for one of them to end.
    pub(crate) fn freed(&mut self, host: &str, unsent: bool, now: Instant) {
        if let Some(id) = self.find(host) {
            self.change(id, now, |slot| {
                slot.active = slot.active.saturating_sub(1);
                if unsent && slot.rare().unsent > 0 {
                    slot.rare_mut().unsent -= 1;
                }
                // Whatever was lost on the way: there are no more of them than places taken.
                if slot.rare().unsent > slot.active {
                    slot.rare_mut().unsent = slot.active;
                }
            });
        }
    }

    /// When the first job may go that waits for a time.
    pub(crate) fn next_job(&self) -> Option<Instant> {
        self.jobs.timed.first().and_then(|(at, _)| self.era.instant(*at))
    }

    /// When the first hop or job may go that waits for a time.
    pub(crate) fn next(&self) -> Option<Instant> {
        let hop = self.hops.timed.first().and_then(|(at, _)| self.era.instant(*at));
        hop.into_iter().chain(self.next_job()).min()
    }

    /// Files anew what waited for a time that has come, and drops slots that nothing speaks for any more.
    fn advance(&mut self, now: Instant) {
        let when = self.era.when(now);
        while let Some((_, id)) = self.hops.timed.first().copied().filter(|(at, _)| *at <= when) {
            self.file(id, now);
        }
        while let Some((_, id)) = self.jobs.timed.first().copied().filter(|(at, _)| *at <= when) {
            self.file(id, now);
        }
        while let Some((_, id)) = self.expiring.first().copied().filter(|(at, _)| *at <= when) {
            self.file(id, now);
        }
    }

    fn find(&self, host: &str) -> Option<SlotId> {
        self.names.find(host, |id| self.slot(id).is_some_and(|slot| *slot.key.0 == *host))
    }

    fn slot(&self, id: SlotId) -> Option<&Slot> {
        self.slab.get(id)
    }

    fn change(&mut self, id: SlotId, now: Instant, change: impl FnOnce(&mut Slot)) {
        if let Some(slot) = self.slab.get_mut(id) {
            let was = [slot.hop_rank(), slot.rank()];
            change(slot);
            self.file_from(was, id, now);
        }
    }

    /// Puts a slot where it belongs by its present state, and by the present pacing.
    fn file(&mut self, id: SlotId, now: Instant) {
        if let Some(slot) = self.slab.get(id) {
            self.file_from([slot.hop_rank(), slot.rank()], id, now);
        }
    }

    /// The same for a slot whose hop and job are filed under these ranks, if they may go.
    fn file_from(&mut self, [hop_was, job_was]: [Rank; 2], id: SlotId, now: Instant) {
        let now = self.era.when(now);
        let Some(slot) = self.slab.get_mut(id) else {
            return;
        };
        let (hop, job) = slot.due(&self.pacing, self.ahead, now);
        let (hop, mut job) = (filed(hop, now), filed(job, now));
        let is_idle = slot.is_idle();
        if is_idle && let Some(until) = slot.closed_until(&self.pacing).filter(|until| *until > now) {
            job = Filed::Kept(until);
        }
        if !slot.rare().minute.is_empty() {
            slot.rare_mut().minute.tidy(now);
        }
        let (hop_from, job_from) = (slot.rare().hop_filed, slot.filed);
        if hop_from != hop {
            slot.rare_mut().hop_filed = hop;
        }
        slot.filed = job;
        slot.slim();
        self.hops.refile(id, (hop_from, hop_was), (hop, slot.hop_rank()));
        self.jobs.refile(id, (job_from, job_was), (job, slot.rank()));
        if job_from != job {
            if let Filed::Kept(until) = job_from {
                self.expiring.remove(&(until, id));
            }
            if let Filed::Kept(until) = job {
                self.expiring.insert((until, id));
            }
        }
        if is_idle && job == Filed::Nowhere {
            self.drop_slot(id);
        }
    }

    fn drop_slot(&mut self, id: SlotId) {
        if let Some(slot) = self.slab.0.get_mut(id.0 as usize).and_then(Option::take) {
            self.names.remove(&slot.key.0, id);
            self.free.push(id);
        }
    }
}

impl Slab {
    fn ids(&self) -> impl Iterator<Item = SlotId> + use<> {
        (0..u32::try_from(self.0.len()).unwrap_or(u32::MAX)).map(SlotId)
    }

    fn get(&self, id: SlotId) -> Option<&Slot> {
        self.0.get(id.0 as usize).and_then(Option::as_ref)
    }

    fn get_mut(&mut self, id: SlotId) -> Option<&mut Slot> {
        self.0.get_mut(id.0 as usize).and_then(Option::as_mut)
    }
}

impl Lane {
    fn refile(&mut self, id: SlotId, from: (Filed, Rank), to: (Filed, Rank)) {
        if from.0 == to.0 && (from.1 == to.1 || from.0 != Filed::Ready) {
            return;
        }
        match from {
            (Filed::Ready, rank) => self.ready.remove(&(rank, id)),
            (Filed::At(at), _) => self.timed.remove(&(at, id)),
            (Filed::Nowhere | Filed::Kept(_), _) => false,
        };
        match to {
            (Filed::Ready, rank) => self.ready.insert((rank, id)),
            (Filed::At(at), _) => self.timed.insert((at, id)),
            (Filed::Nowhere | Filed::Kept(_), _) => false,
        };
    }
}

fn filed(due: Option<When>, now: When) -> Filed {
    match due {
        None => Filed::Nowhere,
        Some(at) if at <= now => Filed::Ready,
        Some(at) => Filed::At(at),
    }
}
