//! A server in memory on the paused clock, for any number of workers: what the scripts of the real one do, in few words.
//! It can be out of reach, and it can lose an answer after it has done what was asked.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use super::place::Waiting;
use super::step::{Exchange, Server, Step};
use crate::scheduler::job::{Books, Job, Outcome, RequestId, SlotKey};
use crate::scheduler::pacing::Pacing;
use crate::scheduler::redis::{Answer, Applied, Claim, FleetState, Leased, Origin, Place, RedisError, View};
use crate::scheduler::store::{Cursors, Offered};

/// What all workers share.
pub(crate) struct World {
    jobs: HashMap<RequestId, Held>,
    seen: HashSet<u128>,
    hosts: HashMap<SlotKey, Host>,
    ages: u64,
    pub(crate) books: Books,
    pub(crate) cursors: Cursors,
    claims: HashMap<&'static str, String>,
    start_done: bool,
    pub(crate) state: FleetState,
    states: HashMap<&'static str, Vec<u8>>,
    beats: HashMap<String, Instant>,
    returned: u64,
    /// Given up with too many workers.
    pub(crate) given_up: u64,
    /// Out of reach.
    pub(crate) is_down: bool,
    /// The next exchange is done, and its answer lost.
    pub(crate) loses_answer: bool,
    /// Exchanges done.
    pub(crate) exchanges: u64,
    lost: HashMap<String, Applied>,
    /// When anybody was last heard.
    heard: Instant,
}

struct Held {
    job: Job,
    age: u64,
    not_before: Instant,
    out: Option<Out>,
}

struct Out {
    worker: String,
    until: Instant,
    has_place: bool,
}

struct Host {
    places: usize,
    unsent: Option<RequestId>,
    closed: Instant,
    crawl: Duration,
    gate: Instant,
}

/// One worker's way to it.
pub(crate) struct Fake {
    pub(crate) world: Arc<Mutex<World>>,
    worker: String,
    visibility: Duration,
    pacing: Pacing,
}

impl World {
    pub(crate) fn new() -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self {
            jobs: HashMap::new(),
            seen: HashSet::new(),
            hosts: HashMap::new(),
            ages: 0,
            books: Books::default(),
            cursors: Cursors::default(),
            claims: HashMap::new(),
            start_done: false,
            state: FleetState::Running,
            states: HashMap::new(),
            beats: HashMap::new(),
            returned: 0,
            given_up: 0,
            is_down: false,
            loses_answer: false,
            exchanges: 0,
            lost: HashMap::new(),
            heard: Instant::now(),
        }))
    }

    /// `start()` was run elsewhere and has nothing more.
    pub(crate) fn without_start(self_: &Arc<Mutex<Self>>) {
        self_.lock().unwrap().start_done = true;
    }

    /// Requests that are out.
    pub(crate) fn out(&self) -> usize {
        self.jobs.values().filter(|held| held.out.is_some()).count()
    }

    /// Places of the host that are taken.
    pub(crate) fn places(&self, host: &str) -> usize {
        self.hosts.get(&SlotKey(host.into())).map_or(0, |host| host.places)
    }

    /// The delay that the host's robots.txt asks for, as far as the fleet was told.
    pub(crate) fn crawl_delay(&self, host: &str) -> Duration {
        self.hosts.get(&SlotKey(host.into())).map_or(Duration::ZERO, |host| host.crawl)
    }

    pub(crate) fn forget_crawl_delays(&mut self) {
        self.hosts.values_mut().for_each(|host| host.crawl = Duration::ZERO);
    }

    fn host(&mut self, slot: &SlotKey) -> &mut Host {
        let now = Instant::now();
        let fresh = || Host { places: 0, unsent: None, closed: now, crawl: Duration::ZERO, gate: now };
        self.hosts.entry(slot.clone()).or_insert_with(fresh)
    }

    fn is_out(&self, id: RequestId, worker: &str) -> bool {
        self.jobs.get(&id).is_some_and(|held| held.out.as_ref().is_some_and(|out| out.worker == worker))
    }

    fn free(&mut self, id: RequestId) -> bool {
        let Some(out) = self.jobs.get_mut(&id).and_then(|held| held.out.as_mut()) else { return false };
        if !std::mem::take(&mut out.has_place) {
            return false;
        }
        let slot = SlotKey::of(self.jobs[&id].job.url());
        let host = self.host(&slot);
        host.places -= 1;
        host.unsent.take_if(|unsent| *unsent == id);
        true
    }

    fn back(&mut self, id: RequestId, not_before: Instant, renamed: Option<&Job>) {
        self.free(id);
        self.ages += 1;
        let ages = self.ages;
        let held = self.jobs.get_mut(&id).unwrap();
        held.out = None;
        held.not_before = not_before;
        if let Some(job) = renamed {
            held.job = job.clone();
            held.age = ages;
        }
    }

    fn replace(&mut self, job: &Job) {
        if SlotKey::of(self.jobs[&job.id].job.url()) != SlotKey::of(job.url()) {
            self.free(job.id);
        }
        self.jobs.get_mut(&job.id).unwrap().job = job.clone();
    }

    fn expire(&mut self, now: Instant) {
        let late: Vec<RequestId> = self
            .jobs
            .iter()
            .filter(|(_, held)| held.out.as_ref().is_some_and(|out| out.until <= now))
            .map(|(id, _)| *id)
            .collect();
        for id in late {
            if self.jobs[&id].job.kind == crate::scheduler::job::JobKind::Robots {
                self.end(id, Outcome::Dropped(crate::api::failure::FailureKind::Cancelled));
            } else {
                self.back(id, now, None);
                self.returned += 1;
            }
        }
    }

    fn end(&mut self, id: RequestId, outcome: Outcome) {
        self.free(id);
        self.jobs.remove(&id);
        self.books.settle(outcome);
    }

    fn is_alive(&self, worker: &str, visibility: Duration, now: Instant) -> bool {
        self.beats.get(worker).is_some_and(|beat| *beat + visibility > now)
    }
}

impl Fake {
    pub(crate) fn new(world: &Arc<Mutex<World>>, worker: &str, visibility: Duration) -> Self {
        world.lock().unwrap().beats.insert(worker.to_owned(), Instant::now());
        let pacing = Pacing::default();
        Self { world: world.clone(), worker: worker.to_owned(), visibility, pacing }
    }

    fn view(&self, world: &World, now: Instant) -> View {
        let alive = |what| world.claims.get(what).filter(|by| world.is_alive(by, self.visibility, now));
        View {
            books: world.books,
            out: world.out() as u64,
            held: world.jobs.keys().filter(|id| world.is_out(**id, &self.worker)).count() as u64,
            workers: world.beats.values().filter(|beat| **beat + self.visibility > now).count() as u64,
            state: world.state,
            cursors: world.cursors,
            start_finished: world.start_done,
            start_open: !world.start_done && alive("start").is_none(),
            idle_elsewhere: alive("idle").is_some_and(|by| *by != self.worker),
            next_due: self.next_due(world, now),
            returned: world.returned,
            given_up: world.given_up,
        }
    }

    fn next_due(&self, world: &World, now: Instant) -> Option<Duration> {
        let queued = world.jobs.values().filter(|held| held.out.is_none());
        let at = |held: &Held| {
            let host = world.hosts.get(&SlotKey::of(held.job.url()));
            let full = host.is_some_and(|host| host.places >= self.pacing.per_slot || host.unsent.is_some());
            (!full).then(|| host.map_or(held.not_before, |host| held.not_before.max(host.closed).max(host.gate)))
        };
        queued.filter_map(at).min().map(|at| at.saturating_duration_since(now))
    }

    fn lease(&self, world: &mut World, most: usize, now: Instant) -> Vec<Leased> {
        world.expire(now);
        let mut leased = Vec::new();
        if world.state != FleetState::Running {
            return leased;
        }
        while leased.len() < most {
            let mut queued: Vec<(i32, u64, RequestId)> = world
                .jobs
                .iter()
                .filter(|(_, held)| held.out.is_none() && held.not_before <= now)
                .map(|(id, held)| (-held.job.request.priority_value(), held.age, *id))
                .collect();
            queued.sort_unstable();
            let open = queued.into_iter().find(|(_, _, id)| {
                let slot = SlotKey::of(world.jobs[id].job.url());
                let (per_host, delay) = (self.pacing.per_slot, self.pacing.delay);
                let host = world.host(&slot);
                let paced = !delay.max(host.crawl).is_zero();
                host.places < per_host && host.closed <= now && host.gate <= now && !(paced && host.unsent.is_some())
            });
            let Some((_, _, id)) = open else { break };
            let slot = SlotKey::of(world.jobs[&id].job.url());
            let delay = self.pacing.delay;
            let host = world.host(&slot);
            let wants_sent = !delay.max(host.crawl).is_zero();
            host.places += 1;
            if wants_sent {
                host.unsent = Some(id);
            }
            let held = world.jobs.get_mut(&id).unwrap();
            held.out = Some(Out { worker: self.worker.clone(), until: now + self.visibility, has_place: true });
            leased.push(Leased { id, host: slot, job: Ok(Box::new(held.job.clone())), wants_sent });
        }
        leased
    }

    fn place(&self, world: &mut World, waiting: &Waiting, now: Instant) -> Place {
        let id = waiting.job.id;
        if !world.is_out(id, &self.worker) {
            return Place::Lost;
        }
        world.free(id);
        let (per_host, delay) = (self.pacing.per_slot, self.pacing.delay);
        let host = world.host(&SlotKey::of(waiting.job.url()));
        let paced = !waiting.is_robots() && !delay.max(host.crawl).is_zero();
        if host.places >= per_host || (paced && host.unsent.is_some()) {
            return Place::Wait { again_in: Duration::from_millis(20) };
        }
        host.places += 1;
        if paced {
            host.unsent = Some(id);
        }
        let opens = if waiting.is_robots() { host.gate } else { host.gate.max(host.closed) };
        let after = opens.saturating_duration_since(now);
        world.jobs.get_mut(&id).unwrap().out.as_mut().unwrap().has_place = true;
        Place::Go { after, wants_sent: paced }
    }

    fn claim(&self, world: &mut World, what: &'static str, now: Instant) -> Claim {
        let by = world.claims.get(what).filter(|by| world.is_alive(by, self.visibility, now));
        if by.is_some_and(|by| *by != self.worker) {
            return Claim::Theirs;
        }
        let (is_time, cursor) = match what {
            "start" => (!world.start_done, world.cursors.start),
            _ => (world.start_done && world.books.pending == 0 && world.state == FleetState::Running, world.cursors.idle),
        };
        if !is_time {
            return Claim::Nobody;
        }
        world.claims.insert(what, self.worker.clone());
        Claim::Mine { cursor }
    }

    fn offer(&self, world: &mut World, jobs: &[Job], origin: Origin, now: Instant) -> Answer {
        let (what, cursor) = match origin {
            Origin::Callback => ("", 0),
            Origin::Start { cursor } => ("start", cursor),
            Origin::Idle { cursor } => ("idle", cursor),
        };
        if !what.is_empty() && world.claims.get(what) != Some(&self.worker) {
            return Answer::NotClaimed;
        }
        let mut offered = Offered::default();
        for job in jobs {
            if world.jobs.contains_key(&job.id) {
                offered.repeated += 1;
            } else if !world.seen.insert(job.key) && !job.request.is_unfiltered() {
                offered.duplicates += 1;
            } else {
                world.ages += 1;
                let held = Held { job: job.clone(), age: world.ages, not_before: now, out: None };
                world.jobs.insert(job.id, held);
                offered.stored += 1;
            }
        }
        world.books.enqueued += offered.stored;
        world.books.pending += offered.stored;
        match what {
            "start" => world.cursors.advance(Cursors { start: cursor, idle: 0 }),
            "idle" => world.cursors.advance(Cursors { start: 0, idle: cursor }),
            _ => {}
        }
        Answer::Offered(offered)
    }

    fn release(&self, world: &mut World, what: &'static str) -> bool {
        world.claims.get(what) == Some(&self.worker) && world.claims.remove(what).is_some()
    }

    fn step(&self, world: &mut World, step: &Step, now: Instant) -> Answer {
        let mine = |world: &World, id: &RequestId| world.is_out(*id, &self.worker);
        Answer::Done(match step {
            Step::Renew(ids) => {
                for id in ids {
                    if mine(world, id) {
                        world.jobs.get_mut(id).unwrap().out.as_mut().unwrap().until = now + self.visibility;
                    }
                }
                return Answer::Lost(ids.iter().filter(|id| !mine(world, id)).copied().collect());
            }
            Step::Offer(offer) => return self.offer(world, &offer.jobs, offer.origin, now),
            Step::Admit(job) => {
                let out = Out { worker: self.worker.clone(), until: now + self.visibility, has_place: false };
                world.jobs.insert(job.id, Held { job: Job::clone(job), age: 0, not_before: now, out: Some(out) });
                world.books.enqueued += 1;
                world.books.pending += 1;
                true
            }
            Step::PutBack { job, at } => {
                mine(world, &job.id) && {
                    world.back(job.id, *at, Some(job));
                    true
                }
            }
            Step::GiveBack(id, delay) => {
                mine(world, id) && {
                    world.back(*id, now + *delay, None);
                    true
                }
            }
            Step::Settle(id, outcome) => {
                mine(world, id) && {
                    world.end(*id, *outcome);
                    true
                }
            }
            Step::Follow(_, job) => {
                !mine(world, &job.id)
                    || world.seen.insert(job.key) && {
                        world.replace(job);
                        true
                    }
            }
            Step::Replace(job) => {
                mine(world, &job.id) && {
                    world.replace(job);
                    true
                }
            }
            Step::Heard { .. } => return Answer::Throttled(None),
            Step::Sent { slot, id, at, pause, .. } => {
                let host = world.host(slot);
                host.unsent.take_if(|unsent| unsent == id);
                host.closed = host.closed.max(*at + (*pause).max(host.crawl));
                true
            }
            Step::Freed(id) => mine(world, id) && world.free(*id),
            Step::Gate(slot, until) | Step::Pause(slot, until) => {
                let host = world.host(slot);
                host.gate = host.gate.max(*until);
                true
            }
            Step::Lift(slot) => {
                world.host(slot).gate = now;
                true
            }
            Step::CrawlDelay(slot, delay) => {
                let host = world.host(slot);
                host.crawl = host.crawl.max(*delay);
                true
            }
            Step::Place(waiting) => return Answer::Place(self.place(world, waiting, now)),
            Step::Lease(most) => return Answer::Leased(self.lease(world, *most, now)),
            Step::ClaimStart => return Answer::Claim(self.claim(world, "start", now)),
            Step::ClaimIdle => return Answer::Claim(self.claim(world, "idle", now)),
            Step::FinishStart => {
                let done = self.release(world, "start");
                world.start_done |= done;
                done
            }
            Step::FinishIdle => self.release(world, "idle"),
            Step::Conclude => {
                let idle = world.claims.get("idle").is_none_or(|by| *by == self.worker);
                let done = world.books.pending == 0 && world.start_done && idle;
                if done {
                    world.state = FleetState::Finished;
                }
                done
            }
            Step::StopJob => {
                world.state = FleetState::Stopping;
                true
            }
            Step::Save(name, state) => {
                world.states.insert(name, state.clone());
                true
            }
            Step::Leave => {
                let ours: Vec<RequestId> = world.jobs.keys().filter(|id| mine(world, id)).copied().collect();
                ours.iter().for_each(|id| world.back(*id, now, None));
                self.release(world, "start");
                self.release(world, "idle");
                world.beats.remove(&self.worker);
                return Answer::Returned(ours.len() as u64);
            }
        })
    }
}

impl Server for Fake {
    fn apply(&mut self, exchange: &mut Exchange) -> Result<Applied, RedisError> {
        let now = Instant::now();
        let world = self.world.clone();
        let world = &mut *world.lock().unwrap();
        let unreachable = || RedisError::Unreachable { address: "fake:1".to_owned(), reason: "the cable is out".to_owned() };
        if world.is_down {
            return Err(unreachable());
        }
        // Nobody could renew while nobody was heard.
        let silence = now - std::mem::replace(&mut world.heard, now);
        if silence > self.visibility / 2 {
            world.jobs.values_mut().filter_map(|held| held.out.as_mut()).for_each(|out| out.until += silence);
        }
        world.beats.insert(self.worker.clone(), now);
        if let Some(applied) = world.lost.remove(&self.worker) {
            // The same exchange, as the real server knows by its number.
            assert_eq!(applied.answers.len(), exchange.steps.len(), "another exchange came before");
            return Ok(applied);
        }
        world.exchanges += 1;
        let answers = exchange.steps.iter().map(|step| self.step(world, step, now)).collect();
        let applied = Applied { answers, view: self.view(world, now) };
        if std::mem::take(&mut world.loses_answer) {
            world.lost.insert(self.worker.clone(), applied);
            return Err(unreachable());
        }
        Ok(applied)
    }

    fn set_pacing(&mut self, pacing: Pacing) {
        self.pacing = pacing;
    }

    fn visibility(&self) -> Duration {
        self.visibility
    }

    fn state(&mut self, name: &str) -> Result<Option<Vec<u8>>, RedisError> {
        Ok(self.world.lock().unwrap().states.get(name).cloned())
    }
}
