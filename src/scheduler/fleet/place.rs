//! Places: what this worker holds and may not send yet, since it waits for robots.txt or for a place of its host.

use std::time::Duration;

use tokio::time::Instant;

use super::SharedFrontier;
use super::step::Step;
use crate::api::failure::FailureKind;
use crate::dice::scramble;
use crate::engine::message::Fact;
use crate::engine::ticket::Tag;
use crate::scheduler::job::{Job, JobKind, Outcome, RequestId, SlotKey};
use crate::scheduler::message::{Due, Paced, RobotsAnswer, Verdict};
use crate::scheduler::redis::{Leased, Place};
use crate::scheduler::robots_desk::{no_answer, robots_job};
use crate::scheduler::robots_gate::{Pass, origin_of};

/// How long the pages of an origin are left alone of which one waits here for robots.txt.
const ROBOTS_PAUSE: Duration = Duration::from_millis(250);

/// A request that is this worker's, and asks for a place of its host.
pub(crate) struct Waiting {
    pub(super) job: Box<Job>,
    /// The ticket of a redirect's hop; none for pages and robots.txt.
    pub(super) hop: Option<Tag>,
    /// Not before.
    pub(super) at: Instant,
    /// It has its place, for that time.
    pub(super) granted: Option<WantsSent>,
}

/// Whether the sending has to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WantsSent(pub(super) bool);

/// Whether a request has a place of its host, as far as this worker knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HasPlace(pub(super) bool);

impl Waiting {
    pub(super) fn is_robots(&self) -> bool {
        self.job.kind == JobKind::Robots
    }
}

impl SharedFrontier {
    /// Judges a request that was handed out to this worker. Whether it is of use now.
    pub(super) fn leased(&mut self, leased: Leased, now: Instant) -> bool {
        let Leased { id, host, job, wants_sent } = leased;
        if self.is_at(id) {
            return false;
        }
        self.held.insert(id, HasPlace(true));
        if self.stopped {
            self.give_back(id, Duration::ZERO);
            return false;
        }
        let job = match job {
            Ok(job) => job,
            Err(why) => {
                tracing::error!(?id, host = &*host.0, why, "a request of the shared frontier cannot be read; it is set aside");
                self.stats.inc("frontier/unreadable");
                self.settle(id, Outcome::SetAside);
                return false;
            }
        };
        if let Some(verdict) = self.intake.judge_queued(&job) {
            self.refuse(job, verdict);
            return true;
        }
        match self.robots.look(&job, now) {
            Pass::Go { crawl_delay } => {
                let knows_delay = crawl_delay.is_zero() || (wants_sent && self.told_delay(&host, crawl_delay));
                if !crawl_delay.is_zero() {
                    self.steps.push_back(Step::CrawlDelay(host.clone(), crawl_delay));
                }
                if !knows_delay {
                    // It was handed out before the fleet knew of the delay.
                    self.give_back(id, Duration::ZERO);
                    return false;
                }
                self.ready.push_back(Due { job, slot: host, wants_sent, verdict: Verdict::Go });
            }
            Pass::Forbidden => {
                self.intake.counters.forbidden();
                self.refuse(job, Verdict::Forbidden);
            }
            Pass::Unavailable(why) => self.refuse(job, Verdict::RobotsUnavailable(why)),
            Pass::Wait => {
                // One page of the origin waits here already, and nobody knows how long.
                self.give_back(id, ROBOTS_PAUSE);
                return false;
            }
            Pass::Ask => self.ask_robots(job, now),
        }
        true
    }

    /// Notes the crawl delay of a host; whether the fleet was told of it before.
    fn told_delay(&mut self, host: &SlotKey, delay: Duration) -> bool {
        if self.delays.len() >= MAX_DELAYS {
            self.delays.clear();
        }
        let told = self.delays.entry(host.clone()).or_default();
        let knew = *told >= delay || self.pacing.of(&host.0).delay >= delay;
        *told = delay.max(*told);
        knew
    }

    /// Gives out a request that must not be fetched: it takes no place.
    fn refuse(&mut self, job: Box<Job>, verdict: Verdict) {
        self.free(job.id);
        let slot = SlotKey::of(job.url());
        self.ready.push_back(Due { job, slot, wants_sent: false, verdict });
    }

    /// Keeps a page until its origin's rules are known, and has them fetched.
    fn ask_robots(&mut self, page: Box<Job>, now: Instant) {
        // Of this worker alone: others may ask in the same second.
        let round = scramble(scramble(self.instance) ^ self.clock.unix(now).as_secs()) >> 32;
        let asked = origin_of(page.url()).and_then(|origin| {
            let job = robots_job(&origin, page.url(), u32::try_from(round).unwrap_or_default())?;
            Some((origin, job))
        });
        let Some((origin, job)) = asked else {
            // No page without an origin comes here.
            self.give_back(page.id, ROBOTS_PAUSE);
            return;
        };
        self.robots.asked(origin.clone(), job.id);
        self.intake.counters.robots_request();
        self.free(page.id);
        self.robots.parked(origin).or_default().push(*page);
        self.parked += 1;
        self.held.insert(job.id, HasPlace(false));
        self.steps.push_back(Step::Admit(Box::new(job.clone())));
        self.ask_place(Waiting { job: Box::new(job), hop: None, at: now, granted: None });
    }

    /// The rules of an origin are known, or that they cannot be had: what waits for them is judged again.
    pub(super) fn robots_answer(&mut self, origin: &std::sync::Arc<str>, answer: RobotsAnswer, now: Instant) {
        for page in self.robots.answer(origin, answer, now).unwrap_or_default() {
            self.parked = self.parked.saturating_sub(1);
            if !self.held.contains_key(&page.id) {
                self.forget(page.id);
                continue;
            }
            let page = Box::new(page);
            match self.robots.look(&page, now) {
                Pass::Go { crawl_delay } => {
                    if !crawl_delay.is_zero() {
                        let host = SlotKey::of(page.url());
                        self.told_delay(&host, crawl_delay);
                        self.steps.push_back(Step::CrawlDelay(host, crawl_delay));
                    }
                    self.ask_place(Waiting { job: page, hop: None, at: now, granted: None });
                }
                Pass::Forbidden => {
                    self.intake.counters.forbidden();
                    self.refuse(page, Verdict::Forbidden);
                }
                Pass::Unavailable(why) => self.refuse(page, Verdict::RobotsUnavailable(why)),
                Pass::Wait | Pass::Ask => self.give_back(page.id, ROBOTS_PAUSE),
            }
        }
    }

    /// The robots.txt request ended; if nobody was told what it came to, that is an answer too.
    pub(super) fn robots_ended(&mut self, id: RequestId, now: Instant) {
        if let Some(origin) = self.robots.ended(id) {
            self.robots_answer(&origin, no_answer(), now);
        }
    }

    /// A redirect.
    pub(super) fn hop(&mut self, tag: Tag, job: Box<Job>, now: Instant) {
        if self.stopped {
            self.paced(tag, job, Verdict::PutBack);
        } else if job.kind == JobKind::Page && self.intake.is_offsite(&job.request) {
            self.intake.filtered_offsite(job.url().host_str().unwrap_or_default());
            self.paced(tag, job, Verdict::Offsite);
        } else if job.kind == JobKind::Page && self.intake.is_out_of_reach(&job) {
            self.intake.filtered_private(&job);
            self.paced(tag, job, Verdict::OutOfReach);
        } else if job.kind == JobKind::Page && !job.request.is_unfiltered() && !job.chain.contains(&job.key) {
            self.steps.push_back(Step::Follow(tag, job));
        } else {
            self.steps.push_back(Step::Replace(job.clone()));
            self.hop_on(tag, job, now);
        }
    }

    /// The hop's target is new, or need not be.
    pub(super) fn hop_on(&mut self, tag: Tag, job: Box<Job>, now: Instant) {
        let pass =
            if job.kind == JobKind::Robots { Pass::Go { crawl_delay: Duration::ZERO } } else { self.robots.look(&job, now) };
        let verdict = match pass {
            Pass::Go { .. } if !self.stopped && !self.intake.takes_hop(&job) => Verdict::HostFull,
            Pass::Go { crawl_delay } if !self.stopped => {
                if !crawl_delay.is_zero() {
                    let host = SlotKey::of(job.url());
                    self.told_delay(&host, crawl_delay);
                    self.steps.push_back(Step::CrawlDelay(host, crawl_delay));
                }
                self.ask_place(Waiting { job, hop: Some(tag), at: now, granted: None });
                return;
            }
            Pass::Forbidden => {
                self.intake.counters.forbidden();
                Verdict::Forbidden
            }
            Pass::Unavailable(why) => Verdict::RobotsUnavailable(why),
            Pass::Go { .. } | Pass::Wait | Pass::Ask => Verdict::PutBack,
        };
        self.paced(tag, job, verdict);
    }

    /// Answers a hop that has no place.
    pub(super) fn paced(&mut self, tag: Tag, job: Box<Job>, verdict: Verdict) {
        let slot = SlotKey::of(job.url());
        self.facts.push(Fact::Paced(Box::new(Paced { tag, job, slot, wants_sent: false, verdict })));
    }

    pub(super) fn ask_place(&mut self, waiting: Waiting) {
        self.steps.push_back(Step::Place(Box::new(waiting)));
    }

    /// The server's word on a place.
    pub(super) fn placed(&mut self, mut waiting: Waiting, place: Place, now: Instant) {
        if self.stopped && place != Place::Lost {
            self.no_place_wanted(waiting);
            return;
        }
        match place {
            Place::Go { after, wants_sent } => {
                waiting.at = now + after;
                waiting.granted = Some(WantsSent(wants_sent));
                self.held.entry(waiting.job.id).and_modify(|place| *place = HasPlace(true));
                self.waiting.push(waiting);
            }
            Place::Wait { again_in } => {
                waiting.at = now + again_in;
                self.held.entry(waiting.job.id).and_modify(|place| *place = HasPlace(false));
                self.waiting.push(waiting);
            }
            Place::Lost => self.drop_lost(waiting, now),
        }
    }

    /// Drops what waits here and is another worker's.
    fn drop_lost(&mut self, waiting: Waiting, now: Instant) {
        let id = waiting.job.id;
        match waiting.hop {
            // To put it back changes nothing. Until then it is the engine's.
            Some(tag) => {
                self.lost(id);
                self.paced(tag, waiting.job, Verdict::PutBack);
            }
            None => {
                self.forget(id);
                if waiting.is_robots() {
                    self.robots_ended(id, now);
                }
            }
        }
    }

    /// This worker was handed a request that it is still at: it was not renewed in time, and nobody else had it. What is under
    /// way goes on, and the second copy is none.
    fn is_at(&mut self, id: RequestId) -> bool {
        let Some(place) = self.astray.remove(&id).or_else(|| self.held.get(&id).copied()) else {
            return false;
        };
        self.held.insert(id, place);
        self.stats.inc("frontier/handed_again");
        tracing::warn!(?id, "a request in flight was not renewed in time (FRONTIER_VISIBILITY) and came back here: it goes on");
        if place == HasPlace(false) {
            // It was handed out with a place, which it needs no more, or asks for.
            self.steps.push_back(Step::Freed(id));
        }
        true
    }

    /// It is no more this worker's, which is still at it. Whether it was before.
    pub(super) fn lost(&mut self, id: RequestId) -> bool {
        match self.held.remove(&id) {
            Some(place) => {
                self.astray.insert(id, place);
                true
            }
            None => false,
        }
    }

    /// Nothing here is at the request any more.
    pub(super) fn forget(&mut self, id: RequestId) -> Option<HasPlace> {
        let astray = self.astray.remove(&id);
        self.held.remove(&id).or(astray)
    }

    /// The request gives its place back.
    pub(super) fn free(&mut self, id: RequestId) {
        if let Some(place) = self.held.get_mut(&id).or_else(|| self.astray.get_mut(&id)) {
            *place = HasPlace(false);
        }
        self.steps.push_back(Step::Freed(id));
    }

    /// What waits here and whose time has come goes out, or asks for its place again.
    pub(super) fn pick_waiting(&mut self, now: Instant) {
        let (due, later) = std::mem::take(&mut self.waiting).into_iter().partition(|waiting| waiting.at <= now);
        self.waiting = later;
        let due: Vec<Waiting> = due;
        for waiting in due {
            let Some(WantsSent(wants_sent)) = waiting.granted else {
                self.ask_place(waiting);
                continue;
            };
            if !self.held.contains_key(&waiting.job.id) {
                self.drop_lost(waiting, now);
                continue;
            }
            let (slot, is_robots) = (SlotKey::of(waiting.job.url()), waiting.is_robots());
            let Waiting { job, hop, .. } = waiting;
            match hop {
                Some(tag) => {
                    let verdict = Verdict::Go;
                    self.facts.push(Fact::Paced(Box::new(Paced { tag, job, slot, wants_sent, verdict })));
                }
                None => {
                    let due = Due { job, slot, wants_sent: wants_sent && !is_robots, verdict: Verdict::Go };
                    // Pages wait for a robots.txt.
                    if is_robots { self.ready.push_front(due) } else { self.ready.push_back(due) }
                }
            }
        }
    }

    /// Gives back what waits here: nothing more is given out.
    pub(super) fn empty_hands(&mut self) {
        for waiting in std::mem::take(&mut self.waiting) {
            self.no_place_wanted(waiting);
        }
        for page in self.robots.take_parked().into_iter().flatten() {
            self.give_back(page.id, Duration::ZERO);
        }
        self.parked = 0;
        self.give_back_ready();
    }

    /// Gives back what there is no credit for.
    pub(super) fn give_back_ready(&mut self) {
        for due in std::mem::take(&mut self.ready) {
            self.let_go(due.job.id, due.job.kind);
        }
    }

    fn no_place_wanted(&mut self, waiting: Waiting) {
        match waiting.hop {
            Some(tag) => self.paced(tag, waiting.job, Verdict::PutBack),
            None => self.let_go(waiting.job.id, waiting.job.kind),
        }
    }

    /// Gives back what was not begun. A robots.txt request is nobody else's: it ends.
    pub(super) fn let_go(&mut self, id: RequestId, kind: JobKind) {
        match kind {
            JobKind::Page => self.give_back(id, Duration::ZERO),
            JobKind::Robots => self.settle(id, Outcome::Dropped(FailureKind::Cancelled)),
        }
    }

    pub(super) fn give_back(&mut self, id: RequestId, delay: Duration) {
        if self.forget(id).is_some() {
            self.steps.push_back(Step::GiveBack(id, delay));
        }
    }
}

/// Hosts whose crawl delay is remembered as told; a forgotten one is told again.
const MAX_DELAYS: usize = 10_000;
