//! The frontier of a job that several workers share: it is kept at a server, and this is one worker's side of it.
//!
//! Orders become steps; at the end of a turn the steps go to the server in one exchange, and its answers become
//! facts. Nothing is told before the server has it. A server that is not reached holds everything up: what waits is
//! done once it is reached again, each step once. Pacing, the seen set and the books are the server's; robots.txt is
//! read by each worker for itself.
//!
//! It blocks while it waits for the server, so its actor needs a thread of its own. Bounds: what waits here are requests of
//! credits given, hops of open tickets, and orders of the scheduler's inbox.

mod exchange;
#[cfg(test)]
pub(crate) mod fake;
mod outage;
mod place;
mod poll;
mod step;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use self::outage::Outage;
use self::place::{HasPlace, Waiting};
use self::poll::Poll;
use self::step::{Exchange, Offer, Server, Step};
use super::Queue;
use super::clock::Clock;
use super::config::SchedulerConfig;
use super::frontier::Turn;
use super::intake::Intake;
use super::job::{Books, Job, JobKind, Outcome, RequestId, SlotKey};
use super::message::{Control, Due, Hold, Order, Pacing, Ready, Rest, Scope, Verdict};
use super::redis::{FleetState, Origin, View};
use super::robots_desk::RobotsDesk;
use super::store::{Cursors, Medium};
use crate::api::stats::Stats;
use crate::dice::Dice;
use crate::engine::message::Fact;

/// The state that tells other workers why the job stops.
const STOP_REASON: &str = "stop_reason";
/// Exchanges of one turn: an answer may ask for another step.
const ROUNDS: usize = 8;
/// Jobs of one exchange, about: the server does nothing else meanwhile.
const JOBS_AT_ONCE: usize = 2_000;

/// What a worker of a fleet has to be told beside the scheduler's configuration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FleetConfig {
    /// `FRONTIER_WAIT`: how long the server may be out of reach; `None` for ever.
    pub(crate) wait: Option<Duration>,
    /// Tells this worker from others, by chance.
    pub(crate) instance: u64,
}

/// What this worker has to do with `start()`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// Nothing: it may be elected.
    Free,
    /// It runs it for all.
    Ours,
    /// It still runs what another took over: until that is through it cannot begin where the other one ends.
    Stale,
}

/// One worker's side of a shared frontier.
pub(crate) struct SharedFrontier {
    server: Box<dyn Server>,
    clock: Clock,
    intake: Intake,
    robots: RobotsDesk<Vec<Job>>,
    stats: Stats,
    pacing: Pacing,
    dice: Dice,
    instance: u64,
    outage: Outage,
    poll: Poll,
    /// What is to be told and asked, in order.
    steps: VecDeque<Step>,
    /// Steps that were tried and are not known to be done.
    under_way: Option<Exchange>,
    /// The job as the server last told.
    view: Option<View>,
    /// What this worker holds at the server.
    held: HashMap<RequestId, HasPlace>,
    /// What it held too long, and is still at: nobody's, another's, or handed to this one again.
    astray: HashMap<RequestId, HasPlace>,
    /// Crawl delays the fleet was told of.
    delays: HashMap<SlotKey, Duration>,
    /// What asks for a place, or has it for a time that comes.
    waiting: Vec<Waiting>,
    /// Pages that wait for robots.txt.
    parked: usize,
    /// What may go, for want of credit.
    ready: VecDeque<Due>,
    handed: u64,
    granted: u64,
    pull: u64,
    asked: bool,
    after_offer: u64,
    stopped: bool,
    has_left: bool,
    /// A lease is worth while before its time.
    is_stirred: bool,
    start: Start,
    runs_idle: bool,
    told_stop: bool,
    told_pause: bool,
    /// Requests of `start` and `idle` that were offered.
    cursors: Cursors,
    /// What the engine was last told of the job.
    told: Option<(Books, Rest)>,
    due: Vec<Due>,
    /// Ends the server has.
    settled: Vec<RequestId>,
    facts: Vec<Fact>,
}

impl SharedFrontier {
    /// A worker's side of a job it has joined.
    pub(crate) fn new(
        config: SchedulerConfig,
        fleet: FleetConfig,
        mut server: Box<dyn Server>,
        stats: Stats,
        now: Instant,
    ) -> Self {
        server.set_pacing(config.pacing.clone());
        Self {
            clock: Clock::start(now),
            intake: Intake::new(&config, stats.clone(), Medium::Redis),
            robots: RobotsDesk::new(config.robots_agent),
            stats,
            dice: Dice::new(config.seed),
            pacing: config.pacing,
            instance: fleet.instance,
            outage: Outage::new(fleet.wait, now),
            poll: Poll::new(server.visibility(), now),
            server,
            steps: VecDeque::new(),
            under_way: None,
            view: None,
            held: HashMap::new(),
            astray: HashMap::new(),
            delays: HashMap::new(),
            waiting: Vec::new(),
            parked: 0,
            ready: VecDeque::new(),
            handed: 0,
            granted: 0,
            pull: 0,
            asked: false,
            after_offer: 0,
            stopped: false,
            has_left: false,
            is_stirred: false,
            start: Start::Free,
            runs_idle: false,
            told_stop: false,
            told_pause: false,
            cursors: Cursors::default(),
            told: None,
            due: Vec::new(),
            settled: Vec::new(),
            facts: Vec::new(),
        }
    }

    fn offer(&mut self, number: u64, mut jobs: Vec<Job>, seeds: bool) {
        self.after_offer = self.after_offer.max(number);
        let by_idle = jobs.first().is_some_and(|job| job.parent == Some(RequestId::IDLE));
        let sifted = self.intake.sift(&mut jobs, seeds || by_idle);
        let origin = if seeds {
            self.cursors.start += sifted.count;
            Origin::Start { cursor: self.cursors.start }
        } else if by_idle {
            self.cursors.idle += sifted.count;
            Origin::Idle { cursor: self.cursors.idle }
        } else {
            Origin::Callback
        };
        self.steps.push_back(Step::Offer(Offer { number, jobs, origin, sifted }));
    }

    fn settle(&mut self, id: RequestId, outcome: Outcome) {
        self.intake.ended(id);
        self.forget(id);
        self.steps.push_back(Step::Settle(id, outcome));
    }

    fn put_back(&mut self, job: Box<Job>, delay: Duration, now: Instant) {
        let at = now.checked_add(delay).unwrap_or(now);
        if job.kind == JobKind::Robots && !self.stopped {
            // Its pages wait here, so it does.
            self.free(job.id);
            self.waiting.push(Waiting { job, hop: None, at, granted: None });
            return;
        }
        if job.kind == JobKind::Robots {
            self.let_go(job.id, JobKind::Robots);
            return;
        }
        self.forget(job.id);
        self.intake.page_came_back(&job);
        self.intake.counters.enqueued(1);
        self.steps.push_back(Step::PutBack { job, at });
    }

    /// The delay after a request of the slot that was sent, by the settings, and the jitter's share in it.
    fn pause(&mut self, slot: &SlotKey) -> (Duration, f64) {
        let rates = self.pacing.of(&slot.0);
        let factor = self.dice.throw().mul_add(rates.jitter, 1.0);
        (rates.delay.mul_f64(factor), factor)
    }

    /// Hands out what there is credit for; the rest goes back.
    fn hand_out(&mut self) {
        while self.handed < self.granted
            && let Some(mut due) = self.ready.pop_front()
        {
            if due.job.kind == JobKind::Page {
                self.intake.counters.dequeued(1);
            }
            if due.verdict == Verdict::Go && !self.intake.takes_page(&due.job) {
                self.free(due.job.id);
                (due.wants_sent, due.verdict) = (false, Verdict::HostFull);
            }
            self.handed += 1;
            self.due.push(due);
        }
        // Robots.txt waits for a credit: pages that have theirs wait for it.
        let (robots, pages) = std::mem::take(&mut self.ready).into_iter().partition(|due| due.job.kind == JobKind::Robots);
        self.ready = pages;
        self.give_back_ready();
        if !self.stopped {
            self.ready = robots;
        }
    }

    /// Credits that nothing here waits for.
    fn room(&self) -> usize {
        let reserved = self.parked + self.ready.len() + self.waiting.iter().filter(|waiting| waiting.hop.is_none()).count();
        let credits = usize::try_from(self.granted.saturating_sub(self.handed)).unwrap_or(usize::MAX);
        credits.saturating_sub(reserved).min(self.share())
    }

    /// How much more this worker may hold so that others get some, too: whoever ends a request asks for the next before those
    /// that wait do, and would keep a busy host for itself. Twice the average lets everybody grow.
    fn share(&self) -> usize {
        let Some(view) = self.view.as_ref().filter(|view| view.workers > 1 && self.has_queued()) else { return usize::MAX };
        let fair = 2 * view.out.div_ceil(view.workers) + 2;
        usize::try_from(fair).unwrap_or(usize::MAX).saturating_sub(self.held.len())
    }

    /// Whether something is queued, for whomever.
    fn has_queued(&self) -> bool {
        self.view.as_ref().is_some_and(|view| view.books.pending > view.out)
    }

    fn books(&self) -> Books {
        self.view.as_ref().map(|view| view.books).unwrap_or_default()
    }

    fn state(&self) -> FleetState {
        self.view.as_ref().map_or(FleetState::Running, |view| view.state)
    }

    /// Whether nothing is pending anywhere, and the spider may be asked for more.
    fn is_idle(&self) -> bool {
        self.view.as_ref().is_some_and(View::is_idle)
    }

    fn rest(&self) -> Rest {
        if self.state() == FleetState::Finished {
            Rest::Over
        } else if self.runs_idle && self.is_idle() {
            Rest::Ours
        } else {
            Rest::Elsewhere
        }
    }

    /// Tells the engine of jobs, and of a job that is not as it was.
    fn tell_ready(&mut self, now: Instant) {
        let news = (self.books(), self.rest());
        let is_news = self.told != Some(news) && !self.stopped;
        if !self.asked && self.due.is_empty() && !is_news {
            return;
        }
        self.asked = false;
        self.told = Some(news);
        let (books, rest) = news;
        let next_due = self.view.as_ref().and_then(|view| view.next_due).map(|wait| now + wait);
        let (jobs, after_offer, seq) = (std::mem::take(&mut self.due), self.after_offer, self.pull);
        self.facts.push(Fact::Ready(Ready { jobs, books, next_due, after_offer, seq, rest }));
    }
}

impl Queue for SharedFrontier {
    fn order(&mut self, order: Order, now: Instant) {
        match order {
            Order::Offer { offer, jobs, seeds } => self.offer(offer, jobs, seeds),
            Order::Pull { seq, upto } => {
                self.granted = if self.stopped { 0 } else { upto };
                self.pull = seq;
                self.asked = true;
                self.is_stirred = true;
            }
            Order::Settle { id, outcome } => {
                self.settle(id, outcome);
                self.robots_ended(id, now);
            }
            Order::PutBack { job, delay } => self.put_back(job, delay, now),
            Order::Hop { tag, job } => self.hop(tag, job, now),
            Order::Sent { id, slot, at } => {
                let (pause, factor) = self.pause(&slot);
                self.steps.push_back(Step::Sent { slot, id, at, pause, factor });
            }
            Order::Answered { slot, status, latency, sent } => {
                if self.pacing.of(&slot.0).throttles {
                    self.steps.push_back(Step::Heard { slot, status, latency, sent });
                }
            }
            Order::Freed { id, .. } => self.free(id),
            Order::StartOver => {
                if std::mem::replace(&mut self.start, Start::Free) == Start::Ours {
                    self.steps.push_back(Step::FinishStart);
                }
            }
            Order::IdleOver => {
                if std::mem::take(&mut self.runs_idle) {
                    self.steps.push_back(Step::FinishIdle);
                }
            }
        }
    }

    fn control(&mut self, control: Control, now: Instant) {
        match control {
            Control::Gate { scope: Scope::Slot(slot), until, hold } => self.steps.push_back(match hold {
                Hold::Run => Step::Gate(slot, until),
                Hold::Job => Step::Pause(slot, until),
            }),
            Control::Lift { scope: Scope::Slot(slot) } => self.steps.push_back(Step::Lift(slot)),
            Control::Robots { origin, rules } => self.robots_answer(&origin, rules, now),
            Control::Pacing(pacing) => {
                self.server.set_pacing(pacing.clone());
                self.pacing = pacing;
                self.is_stirred = true;
            }
            Control::Stop => {
                self.stopped = true;
                self.granted = 0;
                self.empty_hands();
            }
            Control::StopAll { reason } => {
                self.steps.push_back(Step::Save(STOP_REASON, reason.into_bytes()));
                self.steps.push_back(Step::StopJob);
            }
            Control::Finish => self.steps.push_back(Step::Conclude),
            // A place of a fleet's host is one of its requests on the wire, whoever has it.
            Control::Ahead(_) | Control::Tick => {}
        }
    }

    fn turn(&mut self, now: Instant) -> Turn {
        if self.outage.waits_until(now).is_none() && !self.outage.is_given_up() {
            self.work(now);
        }
        Turn { facts: std::mem::take(&mut self.facts), wake: self.wake(now) }
    }
}
