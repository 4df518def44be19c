//! Slots: which host may have a request sent next, and when.
//!
//! Pure: it is told what waits, what was sent and what came back, and picks. It holds no job and reads no
//! clock. Each slot is filed by what it waits for (a place, a time, nothing), so that a pick costs the
//! logarithm of the slots that could go, and a host that waits costs the others nothing.
//!
//! Order of picks: hops first, of the slot served longest ago; then jobs, of the slot with the fewest places taken,
//! of those the one with the highest priority (as far as known: a slot's line is sorted by its store, and
//! only the priority of what was offered or pulled last is seen here), of those the one served longest ago.

mod heap;
mod names;
mod slot;
#[cfg(test)]
mod tests;
mod when;

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use self::heap::Heap;
use self::names::Names;
use self::slot::{Place, Slot};
use self::when::{Era, When};
use super::job::SlotKey;
use super::message::Pacing;
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
    slab: Slab,
    free: Vec<SlotId>,
    hops: Lane,
    jobs: Lane,
    /// Slots without work that are kept for their next send time or gate only.
    expiring: Heap<When>,
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

/// The slots by their ids.
#[derive(Debug, Default)]
struct Slab(Vec<Option<Slot>>);

/// Slots by when their hop or job may go.
#[derive(Debug, Default)]
struct Lane {
    ready: Heap<Rank>,
    timed: Heap<When>,
}

/// Which place of a slot a filing is about.
#[derive(Debug, Clone, Copy)]
enum Of {
    Hop,
    Job,
}

/// Places taken, priority, time of the last service: the least goes first.
type Rank = (u32, Reverse<i32>, u64);

/// Where a hop or a job belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Never,
    Now(Rank),
    At(When),
}

impl Slots {
    pub(crate) fn new(pacing: Pacing, seed: u64) -> Self {
        Self {
            pacing,
            ahead: 0,
            dice: Dice::new(seed),
            era: Era::default(),
            names: Names::default(),
            slab: Slab::default(),
            free: Vec::new(),
            hops: Lane::default(),
            jobs: Lane::default(),
            expiring: Heap::default(),
            turn: 0,
        }
    }

    /// The id of a slot, which is made if need be; for a host that is about to get work.
    pub(crate) fn id(&mut self, host: &str) -> SlotId {
        if let Some(id) = self.find(host) {
            return id;
        }
        self.turn += 1;
        let slot = Slot::new(SlotKey(Arc::from(host)), self.turn);
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

    /// Number of slots kept.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// Changes delay and concurrency at once, also of delays that run.
    pub(crate) fn set_pacing(&mut self, pacing: Pacing, now: Instant) {
        let is_first_delay = self.pacing.delay.is_zero() && !pacing.delay.is_zero();
        self.pacing = pacing;
        for id in self.slab.ids() {
            // Without a delay nobody told of what was sent: the last one may have gone just now.
            if is_first_delay && self.slot(id).is_some_and(|slot| slot.active > 0 && slot.rare().crawl_delay.is_zero()) {
                let throw = self.dice.throw();
                let at = self.era.when(now);
                self.change(id, now, |slot| slot.rare_mut().last = Some((at, throw)));
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
        self.slot(id).is_some_and(|slot| matches!(slot.filed, Place::Ready(_)))
    }

    /// Nothing of the slot goes before `until`; an earlier gate that lasts longer holds.
    pub(crate) fn gate(&mut self, host: &str, until: Instant, now: Instant) {
        let id = self.id(host);
        let until = self.era.when(until);
        self.change(id, now, |slot| slot.rare_mut().gate = slot.rare().gate.max(Some(until)));
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
            return Some(Pick::Hop(id));
        }
        let (_, id) = self.jobs.ready.first().filter(|_| with_jobs)?;
        let now = self.era.when(now);
        let robots = self.slot(id).is_some_and(|slot| slot.rare().robots_at.is_some_and(|at| at <= now));
        Some(if robots { Pick::Robots(id) } else { Pick::Queued(id) })
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
            if wants_sent {
                slot.rare_mut().unsent += 1;
            }
            match pick {
                Pick::Hop(_) => slot.rare_mut().hops = slot.rare().hops.saturating_sub(1),
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
        self.change(id, now, |slot| {
            let rare = slot.rare_mut();
            rare.unsent = rare.unsent.saturating_sub(1);
            if rare.last.is_none_or(|(last, _)| last <= at) {
                rare.last = Some((at, throw));
            }
        });
    }

    /// The slot has a place back.
    ///
    /// Whether the request had been sent is not told. If some were and some were not, one that was is assumed
    /// to have ended: at worst the slot waits until the rest of its places are back, but two requests
    /// never go out under one delay.
    pub(crate) fn freed(&mut self, host: &str, now: Instant) {
        if let Some(id) = self.find(host) {
            self.change(id, now, |slot| {
                slot.active = slot.active.saturating_sub(1);
                if slot.rare().unsent > slot.active {
                    slot.rare_mut().unsent = slot.active;
                }
            });
        }
    }

    /// When the first job may go that waits for a time.
    pub(crate) fn next_job(&self) -> Option<Instant> {
        self.jobs.timed.first().and_then(|(at, _)| self.era.instant(at))
    }

    /// When the first hop or job may go that waits for a time.
    pub(crate) fn next(&self) -> Option<Instant> {
        let hop = self.hops.timed.first().and_then(|(at, _)| self.era.instant(at));
        hop.into_iter().chain(self.next_job()).min()
    }

    /// Files anew what waited for a time that has come, and drops slots that nothing speaks for any more.
    fn advance(&mut self, now: Instant) {
        let when = self.era.when(now);
        while let Some((_, id)) = self.hops.timed.first().filter(|(at, _)| *at <= when) {
            self.file(id, now);
        }
        while let Some((_, id)) = self.jobs.timed.first().filter(|(at, _)| *at <= when) {
            self.file(id, now);
        }
        while let Some((_, id)) = self.expiring.first().filter(|(at, _)| *at <= when) {
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
            change(slot);
            self.file(id, now);
        }
    }

    /// Puts a slot where it belongs by its present state.
    fn file(&mut self, id: SlotId, now: Instant) {
        let now = self.era.when(now);
        let Some(slot) = self.slab.get(id) else {
            return;
        };
        let (hop, job) = slot.due(&self.pacing, self.ahead, now);
        let hop = Due::of(hop, now, (0, Reverse(0), slot.turn));
        let job = Due::of(job, now, (slot.active, Reverse(slot.priority), slot.turn));
        let is_idle = slot.is_idle();
        let kept_until = if is_idle { slot.closed_until(&self.pacing) } else { None };
        self.hops.file(&mut self.slab, Of::Hop, id, hop);
        self.keep(id, None);
        self.jobs.file(&mut self.slab, Of::Job, id, job);
        if !is_idle {
            if let Some(slot) = self.slab.get_mut(id) {
                slot.slim();
            }
        } else if kept_until.is_some_and(|until| until > now) {
            self.keep(id, kept_until);
        } else {
            self.drop_slot(id);
        }
    }

    /// Keeps a slot without work until then, or no longer.
    fn keep(&mut self, id: SlotId, until: Option<When>) {
        let Some(slot) = self.slab.get_mut(id) else { return };
        let filed = slot.filed;
        if let (Place::Expiring(place), None) = (filed, until) {
            slot.filed = Place::Nowhere;
            self.expiring.remove(place, |id, place| self.slab.set(Of::Job, id, Place::Expiring(place)));
        }
        if let Some(until) = until {
            self.expiring.push(until, id, |id, place| self.slab.set(Of::Job, id, Place::Expiring(place)));
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

    fn filed(&self, of: Of, id: SlotId) -> Place {
        self.get(id).map_or(Place::Nowhere, |slot| match of {
            Of::Hop => slot.rare().hop_filed,
            Of::Job => slot.filed,
        })
    }

    fn set(&mut self, of: Of, id: SlotId, place: Place) {
        let Some(slot) = self.get_mut(id) else { return };
        match of {
            Of::Hop => slot.rare_mut().hop_filed = place,
            Of::Job => slot.filed = place,
        }
    }
}

impl Lane {
    fn file(&mut self, slab: &mut Slab, of: Of, id: SlotId, due: Due) {
        let from = slab.filed(of, id);
        match (from, due) {
            (Place::Ready(place), Due::Now(rank)) => {
                if self.ready.key(place) != Some(rank) {
                    self.ready.change(place, rank, |id, place| slab.set(of, id, Place::Ready(place)));
                }
                return;
            }
            (Place::Timed(place), Due::At(at)) => {
                if self.timed.key(place) != Some(at) {
                    self.timed.change(place, at, |id, place| slab.set(of, id, Place::Timed(place)));
                }
                return;
            }
            (Place::Ready(place), _) => self.ready.remove(place, |id, place| slab.set(of, id, Place::Ready(place))),
            (Place::Timed(place), _) => self.timed.remove(place, |id, place| slab.set(of, id, Place::Timed(place))),
            (Place::Nowhere | Place::Expiring(_), _) => {}
        }
        match due {
            Due::Never if from == Place::Nowhere => {}
            Due::Never => slab.set(of, id, Place::Nowhere),
            Due::Now(rank) => self.ready.push(rank, id, |id, place| slab.set(of, id, Place::Ready(place))),
            Due::At(at) => self.timed.push(at, id, |id, place| slab.set(of, id, Place::Timed(place))),
        }
    }
}

impl Due {
    fn of(due: Option<When>, now: When, rank: Rank) -> Self {
        match due {
            None => Self::Never,
            Some(at) if at <= now => Self::Now(rank),
            Some(at) => Self::At(at),
        }
    }
}
