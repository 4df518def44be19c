//! The end of a job, driven by one owner in one order, each step with its own limit inside one total.
//!
//! Stop seeds and pulling → downloads finish or are cancelled → callbacks finish or are abandoned → groups
//! are kept → last reports, every lease released → spider and extensions hear of it → the last lines of the log →
//! records delivered, feeds closed → done. What a step leaves behind goes back into the frontier, so that the books balance whatever happens.

use std::time::Duration;

use tokio::time::Instant;

use super::act::{Act, ParserCommand};
use super::ending::exit_code;
use super::hub::Hub;
use super::message::StopReason;
use super::ticket::{Commit, Kind, State, Then};
use crate::api::failure::{FailureKind, Fault};
use crate::api::stats::Stats;
use crate::collector::message::Control as CollectorControl;
use crate::downloader::message::{Attempt, Control as DownloaderControl};
use crate::parser::message::Marks;
use crate::reporter::message::Control as ReporterControl;
use crate::scheduler::message::Control as SchedulerControl;

/// How long a cancelled step may take to answer before it is given up.
const LAST_WORD: Duration = Duration::from_secs(1);

/// The collector answers this long after its limit at the latest.
const COLLECTOR_ANSWERS: Duration = Duration::from_millis(700);

/// Where the job is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Crawling.
    Running,
    /// Ending.
    Stopping(Stopping),
    /// Over.
    Done,
}

/// An end under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stopping {
    pub(super) reason: StopReason,
    step: Step,
    /// Counts entered steps and their second chances, so that a late limit is known as late.
    serial: u32,
    /// Whether the step's limit is over and it has had its last word.
    pressed: bool,
    deadline: Instant,
}

/// The steps, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Downloads,
    Callbacks,
    Groups,
    Reports,
    Books,
    Farewell,
    Delivery,
}

impl Phase {
    /// Whether jobs are pulled.
    pub(crate) fn pulls(&self) -> bool {
        matches!(self, Self::Running)
    }

    /// Whether a lease that arrives is used.
    pub(crate) fn fetches(&self) -> bool {
        self.pulls()
    }

    /// Whether a running callback may commit a part.
    pub(crate) fn commits(&self) -> bool {
        match self {
            Self::Running => true,
            Self::Stopping(s) => s.step <= Step::Callbacks,
            Self::Done => false,
        }
    }
}

impl Hub {
    /// The frontier is empty and the spider has no more.
    pub(super) fn finish(&mut self, now: Instant) {
        self.stop(StopReason::Finished, now);
    }

    /// Begins to stop. A second reason changes nothing but that a worse one replaces a milder one.
    pub(super) fn stop(&mut self, reason: StopReason, now: Instant) {
        match &mut self.phase {
            Phase::Running => {}
            Phase::Stopping(stopping) => {
                if exit_code(&reason) > exit_code(&stopping.reason) {
                    stopping.reason = reason;
                }
                return;
            }
            Phase::Done => return,
        }
        tracing::info!(target: "dragline::engine", "Closing spider ({})", self.reason_of(&reason));
        let deadline = now + self.config.grace + self.config.close_timeout;
        self.phase = Phase::Stopping(Stopping { reason, step: Step::Downloads, serial: 0, pressed: false, deadline });
        if let Phase::Stopping(stopping) = &self.phase {
            self.tell_fleet(&stopping.reason.clone());
        }
        self.acts.push(Act::SchedulerControl(SchedulerControl::Stop));
        self.end_kept();
        self.end_ready(now);
        // `start` and other suspended pushes end here; seeds that are kept stay.
        for done in std::mem::take(&mut self.seeds_waiting) {
            self.acts.push(Act::Resume(done, Err("the job is stopping".to_owned())));
        }
        let blocked: Vec<u64> = self.blocked.iter().map(|(id, _, _)| *id).collect();
        for id in blocked {
            self.refuse_part(id, now);
        }
        self.blocked.retain(|(id, _, _)| self.tickets.get(id).is_some_and(|t| t.commit.is_some()));
        self.arm(Step::Downloads, self.config.grace, now);
    }

    /// Gives up a part that has no room in the frontier; whether there was one. A callback that ended meanwhile ends now.
    pub(super) fn refuse_part(&mut self, id: u64, now: Instant) -> bool {
        let Some(ticket) = self.tickets.get_mut(&id) else { return false };
        let commit = ticket.commit.take_if(|c| matches!(c.then, Then::Resume(_)));
        let Some(Commit { then: Then::Resume(done), .. }) = commit else { return false };
        let early = ticket.early.take();
        self.acts.push(Act::Resume(done, Err("the job is stopping".to_owned())));
        if let Some(early) = early {
            self.parsed(*early, now);
        }
        true
    }

    /// Stops at once: everything in flight goes back, what is kept is closed.
    pub(super) fn kill(&mut self, now: Instant) {
        self.stop(StopReason::Signal, now);
        if let Phase::Stopping(stopping) = &mut self.phase {
            stopping.deadline = stopping.deadline.min(now + LAST_WORD * 3);
            if stopping.step < Step::Reports {
                self.acts.push(Act::DownloaderControl(DownloaderControl::CancelAll));
                self.acts.push(Act::Parsers(ParserCommand::Abandon));
                self.give_up_all(now);
                self.enter_step(Step::Reports, now);
            } else {
                // The step under way was given time for one signal: it has less now.
                let step = stopping.step;
                if step == Step::Delivery {
                    let within = (LAST_WORD * 3).saturating_sub(COLLECTOR_ANSWERS);
                    self.acts.push(Act::CollectorControl(CollectorControl::CloseWithin(within)));
                }
                self.arm(step, LAST_WORD * 3, now);
            }
        }
    }

    /// Goes on as far as nothing holds the present step.
    pub(super) fn advance(&mut self, now: Instant) {
        self.look_at_counts(now);
        loop {
            let Phase::Stopping(stopping) = &self.phase else { return };
            let step = stopping.step;
            if !self.is_over(step) {
                return;
            }
            match step {
                Step::Downloads => self.enter_step(Step::Callbacks, now),
                Step::Callbacks => self.enter_step(Step::Groups, now),
                Step::Groups => self.enter_step(Step::Reports, now),
                Step::Reports => {
                    self.end_reports();
                    self.enter_step(Step::Books, now);
                }
                Step::Books => self.enter_step(Step::Farewell, now),
                Step::Farewell => self.enter_step(Step::Delivery, now),
                Step::Delivery => {
                    self.done();
                    return;
                }
            }
        }
    }

    /// A limit is over: the step is pressed once, and given up the second time.
    pub(super) fn step_over(&mut self, serial: u32, now: Instant) {
        let Phase::Stopping(stopping) = &mut self.phase else { return };
        if stopping.serial != serial {
            return;
        }
        let (step, pressed) = (stopping.step, stopping.pressed);
        if pressed {
            self.give_up(step, now);
            return;
        }
        stopping.pressed = true;
        match step {
            Step::Downloads => {
                self.acts.push(Act::DownloaderControl(DownloaderControl::CancelAll));
                self.give_back(State::Leasing, now);
                self.give_back(State::Pacing, now);
            }
            Step::Callbacks => self.acts.push(Act::Parsers(ParserCommand::Abandon)),
            Step::Groups | Step::Reports | Step::Books | Step::Farewell | Step::Delivery => {
                self.give_up(step, now);
                return;
            }
        }
        self.arm(step, LAST_WORD, now);
    }

    fn is_over(&self, step: Step) -> bool {
        match step {
            Step::Downloads => self.downloading() == 0,
            Step::Callbacks => self.count(State::Parsing) == 0,
            Step::Groups => self.tickets.is_empty() && self.offers.is_empty(),
            Step::Reports => self.plane_refuses || self.reports_done >= self.reports_made,
            Step::Books => self.books_are_fresh(),
            Step::Farewell => self.farewell,
            Step::Delivery => self.closed.is_some(),
        }
    }

    fn enter_step(&mut self, step: Step, now: Instant) {
        if let Phase::Stopping(stopping) = &mut self.phase {
            stopping.step = step;
            stopping.pressed = false;
        }
        let limit = self.config.close_timeout;
        match step {
            Step::Downloads => {}
            Step::Callbacks => {
                // Only `start` or `idle` left: nothing they make would be fetched.
                if self.tickets.values().all(|t| t.state != State::Parsing || t.kind != Kind::Request) {
                    self.acts.push(Act::Parsers(ParserCommand::Abandon));
                }
                self.arm(step, limit / 4, now);
            }
            Step::Groups => {
                for (id, _, _) in std::mem::take(&mut self.blocked) {
                    // Its children never got in: the request stays, and makes them again.
                    self.put_back(id, Duration::ZERO, now);
                }
                self.arm(step, limit / 4, now);
            }
            Step::Reports => {
                self.order_owed_records();
                self.acts.push(Act::ReporterControl(ReporterControl::HandOver));
                self.arm(step, limit / 4, now);
            }
            Step::Books => {
                self.send_pull();
                self.arm(step, LAST_WORD, now);
            }
            Step::Farewell => {
                let reason = self.reason();
                self.stats.set("finish_reason", reason.as_str());
                self.finish_stats(now);
                self.acts.push(Act::Parsers(ParserCommand::Closed { reason, stats: self.stats.snapshot() }));
                self.arm(step, LAST_WORD, now);
            }
            Step::Delivery => {
                // With what listeners have added. The two lines go with the stats, in the job's last batch.
                self.stats.set("finish_reason", self.reason());
                let stats = self.stats.snapshot();
                if self.config.stats_dump {
                    tracing::info!(target: "dragline::stats", "{}", Stats::dump(&stats));
                }
                tracing::info!(target: "dragline::engine", "Spider closed ({})", self.reason());
                // Whatever came before, records get the time to be put away properly.
                if let Phase::Stopping(stopping) = &mut self.phase {
                    stopping.deadline = stopping.deadline.max(now + LAST_WORD);
                    let left = stopping.deadline.duration_since(now).min(limit);
                    let within = left.saturating_sub(COLLECTOR_ANSWERS);
                    self.acts.push(Act::CollectorControl(CollectorControl::CloseWithin(within)));
                }
                self.acts.push(Act::CollectorControl(CollectorControl::Close(stats)));
                self.arm(step, limit, now);
            }
        }
    }

    fn arm(&mut self, _: Step, limit: Duration, now: Instant) {
        if let Phase::Stopping(stopping) = &mut self.phase {
            stopping.serial += 1;
            let left = stopping.deadline.saturating_duration_since(now);
            self.acts.push(Act::StepOver(stopping.serial, limit.min(left)));
        }
    }

    /// The step's last word was not heard: what it holds goes back into the frontier.
    fn give_up(&mut self, step: Step, now: Instant) {
        match step {
            Step::Downloads => {
                for state in [State::Leasing, State::Ready, State::Pacing, State::Fetching] {
                    self.give_back(state, now);
                }
            }
            Step::Callbacks => self.give_back(State::Parsing, now),
            Step::Groups => self.give_up_all(now),
            Step::Reports => self.end_reports(),
            Step::Books => {
                // Also when an order came after the question: another would not be answered either.
                self.answered_seq = self.pull_seq;
                self.books_stale = false;
            }
            Step::Farewell => self.farewell = true,
            Step::Delivery => {
                self.imbalances.push("the collector did not close in time".to_owned());
                self.closed = Some(crate::collector::message::Closed::default());
            }
        }
        self.advance(now);
    }

    /// Reports that are not taken by now never will be, and the leases under which they were made end without them.
    fn end_reports(&mut self) {
        let missing = self.reports_made.saturating_sub(self.reports_done);
        if missing == 0 {
            return;
        }
        self.stats.set("reporter/undelivered", missing);
        tracing::error!(target: "dragline::engine", reports = missing, "reports that the control plane has not taken are lost");
        // A plane that is gone or takes nothing of this node is the reason of the stop, and stands there.
        let is_told = matches!(&self.phase, Phase::Stopping(s) if matches!(s.reason, StopReason::Unauthorized(_) | StopReason::PlaneLost(_)));
        if !is_told {
            self.imbalances.push(format!("{missing} reports were not taken by the control plane in time"));
        }
        self.reports_done = self.reports_made;
        self.reports_taken(self.reports_made);
    }

    fn give_up_all(&mut self, now: Instant) {
        self.blocked.clear();
        self.offers.clear();
        for state in [State::Leasing, State::Ready, State::Pacing, State::Fetching, State::Parsing, State::Committing] {
            self.give_back(state, now);
        }
    }

    fn give_back(&mut self, state: State, now: Instant) {
        let ids: Vec<u64> = self.tickets.values().filter(|t| t.state == state).map(|t| t.tag.ticket).collect();
        for id in ids {
            // An attempt that is cut off is an attempt: the control plane hears of it.
            if let Some(ticket) = self.tickets.get_mut(&id).filter(|t| t.state == State::Fetching) {
                ticket.attempt.get_or_insert_with(|| cut_off(ticket.since));
            }
            self.report(id, true, Marks::default());
            // A group under way may be written or not: the collector's count decides at the end.
            if let Some(commit) = self.tickets.get(&id).and_then(|t| t.commit.as_ref()).filter(|c| c.offer.is_none()) {
                self.unanswered_items += commit.group.items.len() as u64;
            }
            let back = self.tickets.get(&id).is_some_and(|t| !matches!(t.commit, Some(Commit { then: Then::Close, .. })));
            if back {
                self.put_back(id, Duration::ZERO, now);
            } else {
                self.close(id, now);
            }
        }
    }
}

/// The attempt of a download that is given up without an answer.
fn cut_off(sent_at: Instant) -> Attempt {
    let fault = Fault::new(FailureKind::Cancelled, "the job was stopped at once");
    let latency = sent_at.elapsed();
    Attempt { sent_at: Some(sent_at), latency, ..Attempt::failed(fault) }
}
