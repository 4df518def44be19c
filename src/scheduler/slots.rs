//! Slots: which host may have a request sent next, and when.
//!
//! Pure: it is told what waits, what was sent and what came back, and picks. It holds no job and reads no
//! clock. Each slot is filed by what it waits for (a place, a time, nothing), so that a pick costs the
//! logarithm of the slots that could go, and a host that waits costs the others nothing.
//!
//! Order of picks: hops first, of the slot served longest ago; then jobs, of the slot with the fewest places taken,
//! of those the one with the highest priority (as far as known: a slot's line is sorted by its store, and
//! only the priority of what was offered or pulled last is seen here), of those the one served longest ago.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::job::SlotKey;
use super::message::Pacing;
use crate::dice::Dice;

#[cfg(test)]
mod tests;

/// The slots of a crawl.
#[derive(Debug)]
pub(crate) struct Slots {
    pacing: Pacing,
    /// Jobs a slot without delay may have out beyond its places.
    ahead: usize,
    dice: Dice,
    ids: HashMap<Arc<str>, SlotId>,
    slab: Vec<Option<Slot>>,
    free: Vec<SlotId>,
    hops: Line,
    jobs: Line,
    /// Slots without work that are kept for their next send time or gate only.
    expiring: BTreeSet<(Instant, SlotId)>,
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

/// Slots by when their hop or job may go.
#[derive(Debug, Default)]
struct Line {
    ready: BTreeSet<(Rank, SlotId)>,
    timed: BTreeSet<(Instant, SlotId)>,
}

/// Places taken, priority, time of the last service: the least goes first.
type Rank = (usize, Reverse<i32>, u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Filed {
    Nowhere,
    Ready(Rank),
    At(Instant),
}

#[derive(Debug)]
struct Slot {
    key: SlotKey,
    /// Places taken.
    active: usize,
    /// Those of them that were given out under a delay and are not sent yet.
    unsent: usize,
    /// The last request sent, and the throw of the dice for the delay after it.
    last: Option<(Instant, f64)>,
    /// The delay its robots.txt asks for.
    crawl_delay: Duration,
    gate: Option<Instant>,
    hops: usize,
    robots_at: Option<Instant>,
    queued_at: Option<Instant>,
    /// Its next job waits for robots.txt.
    parked: bool,
    priority: i32,
    turn: u64,
    hop_filed: Filed,
    job_filed: Filed,
    expires: Option<Instant>,
}

impl Slots {
    pub(crate) fn new(pacing: Pacing, seed: u64) -> Self {
        Self {
            pacing,
            ahead: 0,
            dice: Dice::new(seed),
            ids: HashMap::new(),
            slab: Vec::new(),
            free: Vec::new(),
            hops: Line::default(),
            jobs: Line::default(),
            expiring: BTreeSet::new(),
            turn: 0,
        }
    }

    /// The id of a slot, which is made if need be; for a host that is about to get work.
    pub(crate) fn id(&mut self, host: &str) -> SlotId {
        if let Some(id) = self.ids.get(host) {
            return *id;
        }
        let key = SlotKey(Arc::from(host));
        self.turn += 1;
        let slot = Slot::new(key.clone(), self.turn);
        let id = if let Some(id) = self.free.pop()
            && let Some(place) = self.slab.get_mut(id.0 as usize)
        {
            *place = Some(slot);
            id
        } else {
            let id = SlotId(u32::try_from(self.slab.len()).unwrap_or(u32::MAX));
            self.slab.push(Some(slot));
            id
        };
        self.ids.insert(key.0, id);
        id
    }

    /// The name of a slot; the empty one for an id that is out of use.
    pub(crate) fn key(&self, id: SlotId) -> SlotKey {
        self.slot(id).map_or_else(|| SlotKey(Arc::from("")), |slot| slot.key.clone())
    }

    /// Number of slots kept.
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Changes delay and concurrency at once, also of delays that run.
    pub(crate) fn set_pacing(&mut self, pacing: Pacing, now: Instant) {
        let is_first_delay = self.pacing.delay.is_zero() && !pacing.delay.is_zero();
        self.pacing = pacing;
        let ids: Vec<SlotId> = self.ids.values().copied().collect();
        for id in ids {
            // Without a delay nobody told of what was sent: the last one may have gone just now.
            if is_first_delay && self.slot(id).is_some_and(|slot| slot.active > 0 && slot.crawl_delay.is_zero()) {
                let throw = self.dice.throw();
                self.change(id, now, |slot| slot.last = Some((now, throw)));
            }
            self.file(id, now);
        }
    }

    /// Changes how many jobs a slot may have out beyond its places; none that has a delay or a gate.
    pub(crate) fn set_ahead(&mut self, more: usize, now: Instant) {
        self.ahead = more;
        let places = self.pacing.per_slot.max(1);
        let full = self.slab.iter().flatten().filter(|slot| slot.active >= places);
        let full: Vec<SlotId> = full.filter_map(|slot| self.ids.get(&slot.key.0).copied()).collect();
        for id in full {
            self.file(id, now);
        }
    }

    /// The slot's queue holds a job of `priority` that may go at `at`.
    pub(crate) fn queued(&mut self, id: SlotId, at: Instant, priority: i32, now: Instant) {
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
        self.change(id, now, |slot| slot.queued_at = next);
    }

    /// The slot's next job waits for robots.txt, or no longer.
    pub(crate) fn park(&mut self, id: SlotId, parked: bool, now: Instant) {
        self.change(id, now, |slot| slot.parked = parked);
    }

    /// The slot has a robots.txt request that may go then, or none.
    pub(crate) fn robots_is(&mut self, id: SlotId, next: Option<Instant>, now: Instant) {
        self.change(id, now, |slot| slot.robots_at = next);
    }

    /// One more hop waits in the slot.
    pub(crate) fn hop(&mut self, id: SlotId, now: Instant) {
        self.change(id, now, |slot| slot.hops += 1);
    }

    /// Raises the delay robots.txt asks for, as origins of one host may ask for different ones; false when the
    /// slot's next job must wait for it now.
    pub(crate) fn set_crawl_delay(&mut self, id: SlotId, delay: Duration, now: Instant) -> bool {
        if self.slot(id).is_some_and(|slot| slot.crawl_delay < delay) {
            self.change(id, now, |slot| slot.crawl_delay = delay);
        }
        self.slot(id).is_some_and(|slot| matches!(slot.job_filed, Filed::Ready(_)))
    }

    /// Nothing of the slot goes before `until`; an earlier gate that lasts longer holds.
    pub(crate) fn gate(&mut self, host: &str, until: Instant, now: Instant) {
        let id = self.id(host);
        self.change(id, now, |slot| slot.gate = slot.gate.max(Some(until)));
    }

    /// Ends the host's gate before its time.
    pub(crate) fn lift(&mut self, host: &str, now: Instant) {
        let id = self.id(host);
        self.change(id, now, |slot| slot.gate = None);
    }

    /// What may go now; jobs and robots.txt requests only if `with_jobs`.
    pub(crate) fn pick(&mut self, now: Instant, with_jobs: bool) -> Option<Pick> {
        self.advance(now);
        if let Some((_, id)) = self.hops.ready.first() {
            return Some(Pick::Hop(*id));
        }
        let (_, id) = self.jobs.ready.first().filter(|_| with_jobs)?;
        let robots = self.slot(*id).is_some_and(|slot| slot.robots_at.is_some_and(|at| at <= now));
        Some(if robots { Pick::Robots(*id) } else { Pick::Queued(*id) })
    }

    /// Takes a place for a pick; true when its sending has to be told by [`Self::sent`].
    pub(crate) fn take(&mut self, pick: Pick, priority: i32, now: Instant) -> bool {
        let (Pick::Hop(id) | Pick::Robots(id) | Pick::Queued(id)) = pick;
        self.turn += 1;
        let turn = self.turn;
        let paced = self.slot(id).is_some_and(|slot| !slot.delay(&self.pacing).is_zero());
        let wants_sent = paced && !matches!(pick, Pick::Robots(_));
        self.change(id, now, |slot| {
            slot.turn = turn;
            slot.active += 1;
            slot.unsent += usize::from(wants_sent);
            match pick {
                Pick::Hop(_) => slot.hops = slot.hops.saturating_sub(1),
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
        self.change(id, now, |slot| {
            slot.unsent = slot.unsent.saturating_sub(1);
            if slot.last.is_none_or(|(last, _)| last <= at) {
                slot.last = Some((at, throw));
            }
        });
    }

    /// When the delay after the last request of the slot is over; gates aside.
    pub(crate) fn delayed_until(&self, host: &str) -> Option<Instant> {
        self.slot(*self.ids.get(host)?)?.delayed_until(&self.pacing)
    }

    /// The slot's delay, without jitter.
    pub(crate) fn delay(&self, id: SlotId) -> Duration {
        self.slot(id).map_or(Duration::ZERO, |slot| slot.delay(&self.pacing))
    }

    /// The slot has a place back.
    ///
    /// Whether the request had been sent is not told. If some were and some were not, one that was is assumed
    /// to have ended: at worst the slot waits until the rest of its places are back, but two requests
    /// never go out under one delay.
    pub(crate) fn freed(&mut self, host: &str, now: Instant) {
        if let Some(id) = self.ids.get(host).copied() {
            self.change(id, now, |slot| {
                slot.active = slot.active.saturating_sub(1);
                slot.unsent = slot.unsent.min(slot.active);
            });
        }
    }

    /// When the first job may go that waits for a time.
    pub(crate) fn next_job(&self) -> Option<Instant> {
        self.jobs.timed.first().map(|(at, _)| *at)
    }

    /// When the first hop or job may go that waits for a time.
    pub(crate) fn next(&self) -> Option<Instant> {
        let hop = self.hops.timed.first().map(|(at, _)| *at);
        hop.into_iter().chain(self.next_job()).min()
    }

    /// Files anew what waited for a time that has come, and drops slots that nothing speaks for any more.
    fn advance(&mut self, now: Instant) {
        while let Some((_, id)) = self.hops.timed.first().copied().filter(|(at, _)| *at <= now) {
            self.file(id, now);
        }
        while let Some((_, id)) = self.jobs.timed.first().copied().filter(|(at, _)| *at <= now) {
            self.file(id, now);
        }
        while let Some((_, id)) = self.expiring.first().copied().filter(|(at, _)| *at <= now) {
            self.file(id, now);
        }
    }

    fn slot(&self, id: SlotId) -> Option<&Slot> {
        self.slab.get(id.0 as usize).and_then(Option::as_ref)
    }

    fn change(&mut self, id: SlotId, now: Instant, change: impl FnOnce(&mut Slot)) {
        if let Some(slot) = self.slab.get_mut(id.0 as usize).and_then(Option::as_mut) {
            change(slot);
            self.file(id, now);
        }
    }

    /// Puts a slot where it belongs by its present state.
    fn file(&mut self, id: SlotId, now: Instant) {
        let Some(slot) = self.slab.get_mut(id.0 as usize).and_then(Option::as_mut) else {
            return;
        };
        let (hop, job) = slot.due(&self.pacing, self.ahead, now);
        let hop = filed(hop, now, (0, Reverse(0), slot.turn));
        let job = filed(job, now, (slot.active, Reverse(slot.priority), slot.turn));
        self.hops.refile(id, &mut slot.hop_filed, hop);
        self.jobs.refile(id, &mut slot.job_filed, job);
        let kept_until = if slot.is_idle() { slot.closed_until(&self.pacing) } else { None };
        if slot.expires != kept_until {
            if let Some(old) = slot.expires {
                self.expiring.remove(&(old, id));
            }
            if let Some(new) = kept_until {
                self.expiring.insert((new, id));
            }
            slot.expires = kept_until;
        }
        if slot.is_idle() && kept_until.is_none_or(|until| until <= now) {
            if let Some(until) = kept_until {
                self.expiring.remove(&(until, id));
            }
            self.ids.remove(&slot.key.0);
            if let Some(place) = self.slab.get_mut(id.0 as usize) {
                *place = None;
            }
            self.free.push(id);
        }
    }
}

impl Slot {
    fn new(key: SlotKey, turn: u64) -> Self {
        Self {
            key,
            active: 0,
            unsent: 0,
            last: None,
            crawl_delay: Duration::ZERO,
            gate: None,
            hops: 0,
            robots_at: None,
            queued_at: None,
            parked: false,
            priority: 0,
            turn,
            hop_filed: Filed::Nowhere,
            job_filed: Filed::Nowhere,
            expires: None,
        }
    }

    fn delay(&self, pacing: &Pacing) -> Duration {
        pacing.delay.max(self.crawl_delay)
    }

    fn is_idle(&self) -> bool {
        self.active == 0 && self.hops == 0 && self.robots_at.is_none() && self.queued_at.is_none() && !self.parked
    }

    /// The end of the delay after the last request and of the gate, whichever is later.
    fn closed_until(&self, pacing: &Pacing) -> Option<Instant> {
        self.delayed_until(pacing).max(self.gate)
    }

    fn delayed_until(&self, pacing: &Pacing) -> Option<Instant> {
        let delay = self.delay(pacing);
        self.last.filter(|_| !delay.is_zero()).map(|(at, throw)| {
            // A delay that robots.txt asks for is a least one, so the jitter may not shorten it.
            at + delay.mul_f64(throw.mul_add(pacing.jitter.clamp(0.0, 1.0), 1.0)).max(self.crawl_delay)
        })
    }

    /// When the first hop and the first job may go; `None` if there is none or it waits for something else.
    fn due(&self, pacing: &Pacing, ahead: usize, now: Instant) -> (Option<Instant>, Option<Instant>) {
        let is_held_back = !self.delay(pacing).is_zero() || self.gate.is_some_and(|gate| gate > now);
        if self.active >= pacing.per_slot.max(1) + if is_held_back { 0 } else { ahead } {
            return (None, None);
        }
        let robots = self.robots_at.map(|at| self.gate.map_or(at, |gate| gate.max(at)));
        if self.unsent > 0 && !self.delay(pacing).is_zero() {
            return (None, robots);
        }
        let open = self.closed_until(pacing).unwrap_or(now);
        if self.hops > 0 {
            return (Some(open), robots);
        }
        let queued = self.queued_at.filter(|_| !self.parked).map(|at| at.max(open));
        (None, robots.into_iter().chain(queued).min())
    }
}

impl Line {
    fn refile(&mut self, id: SlotId, from: &mut Filed, to: Filed) {
        if *from == to {
            return;
        }
        match *from {
            Filed::Nowhere => false,
            Filed::Ready(rank) => self.ready.remove(&(rank, id)),
            Filed::At(at) => self.timed.remove(&(at, id)),
        };
        match to {
            Filed::Nowhere => false,
            Filed::Ready(rank) => self.ready.insert((rank, id)),
            Filed::At(at) => self.timed.insert((at, id)),
        };
        *from = to;
    }
}

fn filed(due: Option<Instant>, now: Instant, rank: Rank) -> Filed {
    match due {
        None => Filed::Nowhere,
        Some(at) if at <= now => Filed::Ready(rank),
        Some(at) => Filed::At(at),
    }
}
