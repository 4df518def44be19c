//! The frontier: store, slots, scope and robots together, as one plain state machine.
//!
//! It takes orders and commands with the time they came, and at the end of each turn gives the facts to tell
//! and the time to be woken at. It lives outside the scheduler's actor, so that a successor goes on with the
//! same places taken, credits, waiting hops and untold facts. It never waits and starts nothing.
//!
//! Bounds: what waits here beside the store is one held job a slot, the hops of open tickets, and the
//! robots.txt requests that were given out; each stands for a request the engine has in flight or was given credit for.
//!
//! Each turn ends with a commit of the store, and nothing of the turn is told before. While commits fail, facts wait
//! here and nothing more is given out: they answer orders that were given already, so the window bounds them.

mod hops;
mod offer;
mod patience;
mod robots;
mod states;
#[cfg(test)]
mod tests;
mod throttled;

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use self::patience::Patience;
use self::states::States;
pub(crate) use self::states::Take;
use self::throttled::{THROTTLE, known, saving};
use super::Queue;
use super::clock::Clock;
use super::config::SchedulerConfig;
use super::intake::Intake;
use super::job::{Job, JobKind, Outcome, RequestId, SlotKey, host_of};
use super::memory::MemoryStore;
use super::message::{Control, Due, Hold, Order, Ready, Rest, Scope as GateScope, Verdict};
use super::robots_desk::{RobotsDesk, no_answer};
use super::robots_gate::Pass;
use super::slots::{Pick, SlotId, Slots};
use super::store::{Cursors, Pulled, Store, StoreError};
use crate::api::stats::Stats;
use crate::engine::message::Fact;
use crate::engine::ticket::Tag;

/// How long a slot is left alone after its store could not read.
const STORE_PAUSE: Duration = Duration::from_secs(1);

/// Everything the scheduler knows.
pub struct Frontier {
    store: Box<dyn Store>,
    clock: Clock,
    intake: Intake,
    slots: Slots,
    robots: RobotsDesk<SlotId>,
    seeds_stop_at: usize,
    max_bytes: usize,
    waiting: HashMap<SlotId, Waiting>,
    /// Jobs handed out in all, and up to how many may be.
    handed: u64,
    granted: u64,
    /// The last pull.
    pull: u64,
    stopped: bool,
    /// A pull was not answered yet.
    asked: bool,
    /// The last offer taken or refused.
    after_offer: u64,
    due: Vec<Due>,
    /// To be told once the turn is committed.
    facts: Vec<Fact>,
    /// That nothing can be read any more, which waits for no commit.
    unread: Vec<Fact>,
    /// Requests that ended, to be told with them; of stores that outlive their process only.
    settled: Vec<RequestId>,
    /// Whether the store outlives its process.
    is_durable: bool,
    patience: Patience,
    states: States,
    stats: Stats,
    /// Buffer of [`Self::offer`]: slots named by an offer, each with the highest priority seen.
    touched: Vec<(SlotId, i32)>,
}

/// What of a slot waits outside the store.
#[derive(Debug, Default)]
struct Waiting {
    hops: VecDeque<(Tag, Box<Job>)>,
    /// Robots.txt requests that were put back, with the time they may go again.
    robots: Vec<(Instant, Box<Job>)>,
    /// The slot's next job, pulled already: it waits for robots.txt or for a delay that robots.txt asked for.
    held: Option<Box<Job>>,
}

/// What a turn came to.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// To be told to the engine, in this order.
    pub(crate) facts: Vec<Fact>,
    /// When the next turn is due, if no message comes before.
    pub(crate) wake: Option<Instant>,
}

impl Frontier {
    /// A frontier over `store`, whose lost jobs were recovered before.
    #[must_use]
    pub fn new(config: SchedulerConfig, mut store: Box<dyn Store>, stats: Stats, clock: Clock, now: Instant) -> Self {
        let known = known(store.as_ref());
        let is_durable = store.medium().is_durable();
        let mut states = States::default();
        if is_durable && config.pacing.throttles_any() {
            states.keep(THROTTLE, saving(&known), now);
        }
        let mut slots = Slots::knowing(known, config.pacing.clone(), config.seed);
        for (slot, until) in store.gates(clock.unix(now)) {
            slots.pause(&slot.0, clock.instant(until), now);
        }
        for (slot, not_before) in store.slots() {
            let id = slots.id(&slot.0);
            slots.queued(id, clock.instant(not_before), 0, now);
        }
        Self {
            clock,
            intake: Intake::new(&config, stats.clone(), store.medium()),
            slots,
            robots: RobotsDesk::new(config.robots_agent),
            is_durable,
            patience: Patience::new(config.disk_wait, is_durable),
            states,
            settled: Vec::new(),
            unread: Vec::new(),
            stats,
            seeds_stop_at: config.seeds_stop_at,
            max_bytes: config.max_bytes,
            waiting: HashMap::new(),
            handed: 0,
            granted: 0,
            pull: 0,
            stopped: false,
            asked: false,
            after_offer: 0,
            due: Vec::new(),
            facts: Vec::new(),
            touched: Vec::new(),
            store,
        }
    }

    /// Takes an order. Answers come with the turn's end.
    pub(crate) fn order(&mut self, order: Order, now: Instant) {
        match order {
            Order::Offer { offer, jobs, seeds } => self.offer(offer, jobs, seeds, now),
            Order::Pull { seq, upto } => {
                self.granted = if self.stopped { 0 } else { upto };
                self.pull = seq;
                self.asked = true;
            }
            Order::Settle { id, outcome } => self.settle(id, outcome, now),
            Order::PutBack { job, delay } => self.put_back(job, delay, now),
            Order::Hop { tag, job } => self.hop(tag, job, now),
            Order::Sent { slot, at, .. } => self.sent(&slot, at, now),
            Order::Freed { slot, unsent, .. } => self.slots.freed(&slot.0, unsent, now),
            Order::Answered { slot, status, latency, sent } => self.heard(&slot, (status, latency), sent, now),
            // What concerns other workers concerns nobody here.
            Order::StartOver | Order::IdleOver => {}
        }
    }

    /// Takes a command.
    pub(crate) fn control(&mut self, control: Control, now: Instant) {
        match control {
            Control::Gate { scope: GateScope::Slot(slot), until, hold } => {
                if hold == Hold::Job {
                    self.slots.pause(&slot.0, until, now);
                    self.keep_gate(&slot, until);
                } else {
                    self.slots.gate(&slot.0, until, now);
                }
            }
            Control::Lift { scope: GateScope::Slot(slot) } => self.slots.lift(&slot.0, now),
            Control::Robots { origin, rules } => self.robots_answer(&origin, rules, now),
            Control::Pacing(pacing) => self.set_pacing(pacing, now),
            Control::Ahead(more) => self.slots.set_ahead(more, now),
            Control::Stop => {
                self.stopped = true;
                self.granted = 0;
            }
            Control::StopAll { .. } | Control::Finish | Control::Tick => {}
        }
    }

    /// Ends a turn: gives out what may go, and everything there is to tell.
    pub(crate) fn turn(&mut self, now: Instant) -> Turn {
        let mut told = Vec::new();
        loop {
            let was_blocked = self.patience.is_blocked();
            if !was_blocked {
                self.give_out(now);
            }
            if !self.patience.may_commit(now) {
                break;
            }
            match self.save_states(now).and_then(|()| self.store.commit()) {
                Ok(()) => {
                    told.extend(self.patience.wrote(now));
                    if !self.settled.is_empty() {
                        told.push(Fact::Settled(std::mem::take(&mut self.settled)));
                    }
                    told.append(&mut self.facts);
                }
                Err(error) => {
                    if !was_blocked {
                        self.stats.inc("scheduler/blocked");
                    }
                    told.extend(self.patience.refused(&error.to_string(), now));
                }
            }
            // After trouble there is work left that nothing was given out for.
            if !was_blocked || self.patience.is_blocked() {
                break;
            }
        }
        if !self.facts.is_empty() {
            self.stats.max("scheduler/held_facts_max", i64::try_from(self.facts.len()).unwrap_or(i64::MAX));
        }
        told.append(&mut self.unread);
        // While commits fail there is nothing to look for but another try.
        let wake = match self.patience.due() {
            Some(retry) => Some(retry),
            None => self.slots.next().into_iter().chain(self.states.due()).min(),
        };
        Turn { facts: told, wake }
    }

    fn give_out(&mut self, now: Instant) {
        // Ends: each pick gives a hop or a job, or leaves its slot waiting for something.
        while let Some(pick) = self.slots.pick(now, self.granted > self.handed) {
            match pick {
                Pick::Hop(id) => self.give_hop(id, now),
                Pick::Robots(id) => self.give_robots_put_back(id, now),
                Pick::Queued(id) => self.give_queued(id, now),
            }
        }
        if self.asked || !self.due.is_empty() {
            self.asked = false;
            let ready = Ready {
                jobs: std::mem::take(&mut self.due),
                books: self.store.books(),
                next_due: self.slots.next_job(),
                after_offer: self.after_offer,
                seq: self.pull,
                rest: Rest::Ours,
            };
            self.facts.push(Fact::Ready(ready));
        }
    }

    /// Keeps a state of another part of the job with the store, where that outlives its process.
    pub(crate) fn keep(&mut self, name: &'static str, take: Take, now: Instant) {
        if self.is_durable {
            self.states.keep(name, take, now);
        }
    }

    /// Saves the states of all others, commits and lets the store go. `last` is saved with them.
    ///
    /// # Errors
    /// When the store cannot write; the next run finds what the last commit left.
    pub(crate) fn close(&mut self, last: Option<(&'static str, Vec<u8>)>) -> Result<(), StoreError> {
        let mut store = std::mem::replace(&mut self.store, Box::new(MemoryStore::new(0)));
        if self.is_durable {
            self.states.save_all(store.as_mut())?;
            if let Some((name, state)) = last {
                store.save(name, state)?;
            }
        }
        store.close()
    }

    fn save_states(&mut self, now: Instant) -> Result<(), StoreError> {
        if self.states.save_due(self.store.as_mut(), now)? {
            drop(self.store.gates(self.clock.unix(now)));
        }
        Ok(())
    }

    fn sent(&mut self, slot: &SlotKey, at: Instant, now: Instant) {
        self.slots.sent(&slot.0, at, now);
        if let Some(until) = self.slots.delayed_until(&slot.0) {
            self.keep_gate(slot, until);
        }
    }

    /// The slot is left alone until then by the next run, too.
    fn keep_gate(&mut self, slot: &SlotKey, until: Instant) {
        if self.is_durable
            && let Err(error) = self.store.gate(slot, self.clock.unix(until))
        {
            report("keep a slot's gate", &error);
        }
    }

    /// Jobs handed out in all.
    #[cfg(test)]
    pub(crate) fn handed(&self) -> u64 {
        self.handed
    }

    /// How many requests of `start()` and `idle` were accepted: where they go on.
    #[must_use]
    pub fn cursors(&self) -> Cursors {
        self.store.cursors()
    }

    /// The books as they stand.
    #[must_use]
    pub fn books(&self) -> super::job::Books {
        self.store.books()
    }

    fn settle(&mut self, id: RequestId, outcome: Outcome, now: Instant) {
        self.intake.ended(id);
        match self.store.settle(id, outcome) {
            Ok(_) if self.is_durable => self.settled.push(id),
            Ok(_) => {}
            Err(error) => report("settle a request", &error),
        }
        if let Some(origin) = self.robots.ended(id) {
            self.robots_answer(&origin, no_answer(), now);
        }
    }

    fn put_back(&mut self, job: Box<Job>, delay: Duration, now: Instant) {
        let at = now.checked_add(delay).unwrap_or(now);
        let id = self.slots.id(host_of(job.url()));
        if job.kind == JobKind::Robots {
            let waiting = self.waiting.entry(id).or_default();
            waiting.robots.push((at, job));
            let next = waiting.next_robots();
            self.slots.robots_is(id, next, now);
            return;
        }
        let priority = job.request.priority_value();
        self.intake.page_came_back(&job);
        self.intake.counters.enqueued(1);
        if let Err(error) = self.store.put_back(*job, self.clock.unix(at)) {
            report("put a request back", &error);
        }
        self.slots.queued(id, at, priority, now);
    }

    fn give_queued(&mut self, id: SlotId, now: Instant) {
        let Some(job) = self.next_job(id, now) else {
            return;
        };
        if let Some(verdict) = self.intake.judge_queued(&job) {
            self.give_refused(id, job, verdict);
            return;
        }
        match self.robots.look(&job, now) {
            Pass::Go { crawl_delay } if crawl_delay > Duration::ZERO && !self.slots.set_crawl_delay(id, crawl_delay, now) => {
                self.waiting.entry(id).or_default().held = Some(job);
            }
            Pass::Go { .. } if !self.intake.takes_page(&job) => self.give_refused(id, job, Verdict::HostFull),
            Pass::Go { .. } => self.give(Pick::Queued(id), job, now),
            Pass::Forbidden => {
                self.intake.counters.forbidden();
                self.give_refused(id, job, Verdict::Forbidden);
            }
            Pass::Unavailable(why) => self.give_refused(id, job, Verdict::RobotsUnavailable(why)),
            Pass::Wait => self.hold_for_robots(id, job, now),
            Pass::Ask => self.ask_robots(id, job, now),
        }
    }

    /// The slot's next job: the held one, else the first of its queue.
    fn next_job(&mut self, id: SlotId, now: Instant) -> Option<Box<Job>> {
        if let Some(held) = self.waiting.get_mut(&id).and_then(|waiting| waiting.held.take()) {
            self.tidy(id);
            return Some(held);
        }
        let next = match self.store.pull(&self.slots.key(id), self.clock.unix(now)) {
            Ok(Pulled::Job(job)) => {
                self.intake.counters.dequeued(1);
                self.patience.read();
                return Some(job);
            }
            Ok(Pulled::NotBefore(at)) => Some(self.clock.instant(at)),
            Ok(Pulled::Empty) => None,
            Err(error) => {
                report("read a slot's queue", &error);
                self.unread.extend(self.patience.unread(&error.to_string(), now));
                Some(now + STORE_PAUSE)
            }
        };
        self.slots.queue_is(id, next, now);
        None
    }

    /// Gives a job out: it takes a place of its slot and a credit.
    fn give(&mut self, pick: Pick, job: Box<Job>, now: Instant) {
        let (Pick::Hop(id) | Pick::Robots(id) | Pick::Queued(id)) = pick;
        let slot = self.slots.key(id);
        let wants_sent = self.slots.take(pick, job.request.priority_value(), now);
        if wants_sent {
            // It may be sent, and this process end, before the sending is heard of.
            let delay = self.slots.delay(id);
            if !delay.is_zero() {
                self.keep_gate(&slot, now + delay);
            }
        }
        self.push_due(Due { job, slot, wants_sent, verdict: Verdict::Go });
    }

    /// Gives a job out that must not be fetched: it takes a credit, since the answer has room for no more, but
    /// no place.
    fn give_refused(&mut self, id: SlotId, job: Box<Job>, verdict: Verdict) {
        let slot = self.slots.key(id);
        self.push_due(Due { job, slot, wants_sent: false, verdict });
    }

    fn push_due(&mut self, due: Due) {
        self.handed += 1;
        self.due.push(due);
    }

    /// Forgets a slot's record when nothing waits in it.
    fn tidy(&mut self, id: SlotId) {
        if self.waiting.get(&id).is_some_and(Waiting::is_empty) {
            self.waiting.remove(&id);
        }
    }
}

impl Queue for Frontier {
    fn order(&mut self, order: Order, now: Instant) {
        Self::order(self, order, now);
    }

    fn control(&mut self, control: Control, now: Instant) {
        Self::control(self, control, now);
    }

    fn turn(&mut self, now: Instant) -> Turn {
        Self::turn(self, now)
    }
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.hops.is_empty() && self.robots.is_empty() && self.held.is_none()
    }

    fn next_robots(&self) -> Option<Instant> {
        self.robots.iter().map(|(at, _)| *at).min()
    }
}

impl std::fmt::Debug for Frontier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frontier")
            .field("books", &self.store.books())
            .field("slots", &self.slots.len())
            .field("credits", &self.granted.saturating_sub(self.handed))
            .field("stopped", &self.stopped)
            .finish_non_exhaustive()
    }
}

fn report(what: &str, error: &StoreError) {
    tracing::error!(%error, "could not {what}");
}
