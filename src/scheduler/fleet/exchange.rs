//! Exchanges: what is asked of the server at the end of a turn, and what its answers mean.

use tokio::time::Instant;

use super::outage::Failed;
use super::step::{Exchange, Offer, Step};
use super::{JOBS_AT_ONCE, ROUNDS, STOP_REASON, SharedFrontier, Start};
use crate::engine::message::Fact;
use crate::scheduler::intake::Intake;
use crate::scheduler::message::{Fleet, Verdict};
use crate::scheduler::redis::{Answer, Applied, Claim, FleetState, Origin, RedisError, View};
use crate::scheduler::store::{Offered, StoreError};

impl SharedFrontier {
    /// Does what there is to do, as far as the server is reached.
    pub(super) fn work(&mut self, now: Instant) {
        if self.has_left && self.is_gone() {
            // Nobody is there any more whom the server would hear.
            self.steps.clear();
            self.tell_ready(now);
            return;
        }
        if self.poll.wants_renewal(now) && !self.has_left {
            self.renew();
        }
        let mut has_asked = false;
        for _ in 0..ROUNDS {
            // What was given a place before the server was out of reach, or before a renewal that may be late, may be another's.
            let is_sure = self.under_way.is_none() && !matches!(self.steps.front(), Some(Step::Renew(_)));
            if !self.stopped && is_sure {
                self.pick_waiting(now);
            }
            self.hand_out();
            if self.under_way.is_none() && !has_asked {
                has_asked = true;
                self.ask(now);
            }
            let Some(mut exchange) = self.next_exchange() else { break };
            match self.server.apply(&mut exchange) {
                Ok(applied) => self.applied(exchange, applied, now),
                Err(error) => {
                    self.under_way = Some(exchange);
                    // What is asked for its own sake is asked anew, by what holds then.
                    self.steps.retain(|step| !step.is_question());
                    self.trouble(&error, now);
                    return;
                }
            }
        }
        self.hand_out();
        self.tell_ready(now);
    }

    /// When to work again.
    pub(super) fn wake(&self, now: Instant) -> Option<Instant> {
        if self.outage.is_given_up() {
            return None;
        }
        if let Some(at) = self.outage.waits_until(now) {
            return Some(at);
        }
        if self.under_way.is_some() || !self.steps.is_empty() {
            return Some(now);
        }
        let waiting = self.waiting.iter().map(|waiting| waiting.at);
        let poll = (!self.has_left).then(|| self.poll.wake(self.wants_work()));
        waiting.chain(poll).min()
    }

    fn wants_work(&self) -> bool {
        !self.stopped && self.room() > 0
    }

    /// Whether the server has let this worker go.
    fn is_gone(&self) -> bool {
        self.under_way.is_none() && !self.steps.iter().any(|step| matches!(step, Step::Leave))
    }

    /// What is in flight stays ours.
    fn renew(&mut self) {
        if !self.held.is_empty() {
            // Before anything else that waits: it may have waited long.
            self.steps.push_front(Step::Renew(self.held.keys().copied().collect()));
        }
    }

    /// Adds what is asked unasked.
    fn ask(&mut self, now: Instant) {
        let stirred = std::mem::take(&mut self.is_stirred) || !self.steps.is_empty();
        let wants_work = self.wants_work() && self.poll.wants_work(stirred, now);
        // Also a worker with its hands full may have to run what another one left.
        if !self.stopped && (wants_work || self.poll.wants_look(now)) {
            if self.start == Start::Free && self.view.as_ref().is_none_or(|view| view.start_open) {
                self.steps.push_back(Step::ClaimStart);
            }
            if !self.runs_idle && self.is_idle() {
                self.steps.push_back(Step::ClaimIdle);
            }
        }
        if wants_work {
            let room = self.room();
            self.steps.push_back(Step::Lease(room));
        } else if self.stopped && self.asked && !self.has_left {
            // The last question of an engine that has given everything back.
            self.has_left = true;
            self.steps.push_back(Step::Leave);
        } else if self.steps.is_empty() && (self.asked || self.poll.wants_look(now)) && !self.has_left {
            // An exchange without steps, for the view.
            self.under_way.get_or_insert_default();
        }
    }

    fn next_exchange(&mut self) -> Option<Exchange> {
        if let Some(exchange) = self.under_way.take() {
            return Some(exchange);
        }
        let mut steps = Vec::new();
        let mut jobs = 0;
        while jobs < JOBS_AT_ONCE
            && let Some(step) = self.steps.pop_front()
        {
            jobs += step.jobs();
            steps.push(step);
        }
        (!steps.is_empty()).then(|| Exchange::of(steps))
    }

    fn applied(&mut self, exchange: Exchange, applied: Applied, now: Instant) {
        if let Some(lasted) = self.outage.reached(now) {
            tracing::info!(seconds = lasted.as_secs_f64(), "the shared frontier is reached again: the crawl goes on");
            self.poll.back_after(lasted, now);
            self.facts.push(Fact::FrontierUnblocked);
            if self.poll.wants_renewal(now) {
                self.renew();
            }
        }
        self.poll.looked(now);
        if self.view.is_none() && applied.view.workers <= 1 && applied.view.state == FleetState::Running {
            // The word of an earlier stop is not that of the next one.
            self.steps.push_back(Step::Save(STOP_REASON, Vec::new()));
        }
        self.note_given_up(&applied.view);
        self.view = Some(applied.view);
        for (step, answer) in exchange.steps.into_iter().zip(applied.answers) {
            self.answered(step, answer, now);
        }
        if !self.settled.is_empty() {
            self.facts.push(Fact::Settled(std::mem::take(&mut self.settled)));
        }
        self.look_at_state();
    }

    fn answered(&mut self, step: Step, answer: Answer, now: Instant) {
        match (step, answer) {
            (Step::Offer(offer), answer) => self.offered(offer, answer),
            (Step::Follow(tag, job), Answer::Done(is_new)) => {
                if is_new {
                    self.hop_on(tag, job, now);
                } else {
                    self.intake.filtered_duplicates(1, job.first_url.as_deref());
                    self.paced(tag, job, Verdict::Duplicate);
                }
            }
            (Step::Heard { slot, status, latency, .. }, Answer::Throttled(Some(delays))) => {
                self.intake.counters.throttled(&slot, (status, latency), delays, self.pacing.throttle.debug);
            }
            (Step::Place(waiting), Answer::Place(place)) => self.placed(*waiting, place, now),
            (Step::Renew(_), Answer::Lost(lost)) => {
                let lost = lost.into_iter().filter(|id| self.lost(*id)).count();
                if lost > 0 {
                    self.stats.add("frontier/lost", i64::try_from(lost).unwrap_or(i64::MAX));
                    tracing::warn!(
                        requests = lost,
                        "requests in flight were not renewed in time (FRONTIER_VISIBILITY): other workers may fetch them again"
                    );
                }
            }
            (Step::Lease(_), Answer::Leased(leased)) => {
                let useful = leased.into_iter().filter_map(|one| self.leased(one, now).then_some(())).count();
                let next_due = self.view.as_ref().and_then(|view| view.next_due);
                self.poll.leased(useful, self.has_queued(), next_due, now);
            }
            (Step::ClaimStart, Answer::Claim(Claim::Mine { cursor })) => {
                self.start = Start::Ours;
                self.cursors.start = cursor;
                self.facts.push(Fact::Fleet(Fleet::Elected { cursor }));
            }
            (Step::ClaimIdle, Answer::Claim(Claim::Mine { cursor })) => {
                self.runs_idle = true;
                self.cursors.idle = cursor;
                self.facts.push(Fact::Fleet(Fleet::IdleFrom(cursor)));
            }
            (Step::Settle(id, _), Answer::Done(is_ours)) => {
                if !is_ours {
                    // Its time was over, and it is another worker's.
                    self.stats.inc("frontier/settled_late");
                }
                // The record of the end need not be kept for a later run.
                self.settled.push(id);
            }
            _ => {}
        }
    }

    fn offered(&mut self, offer: Offer, answer: Answer) {
        let Offer { number, mut jobs, origin, sifted } = offer;
        let books = self.books();
        let accepted = match answer {
            Answer::Offered(offered) => self.intake.accept(number, offered, sifted, books),
            Answer::NotClaimed => {
                // This worker was taken for lost: another one makes these.
                tracing::warn!("start or idle goes on at another worker: what this one still makes of it is dropped");
                match origin {
                    Origin::Idle { .. } => self.runs_idle = false,
                    // The engine still runs it, from where nobody else is.
                    _ => self.start = Start::Stale,
                }
                let repeated = u64::try_from(jobs.len()).unwrap_or(u64::MAX);
                let kept_dropped = jobs.iter().filter(|job| job.request.keeps_lease()).map(|job| job.id).collect();
                self.intake.accept(number, Offered { repeated, kept_dropped, ..Offered::default() }, sifted, books)
            }
            _ => {
                match origin {
                    Origin::Start { .. } => self.cursors.start = self.cursors.start.saturating_sub(sifted.count),
                    Origin::Idle { .. } => self.cursors.idle = self.cursors.idle.saturating_sub(sifted.count),
                    Origin::Callback => {}
                }
                Intake::restore(sifted, &mut jobs);
                Intake::refuse(number, jobs, StoreError::Full { held: 0, bound: 0 }, books)
            }
        };
        self.facts.push(Fact::Accepted(accepted));
    }

    fn note_given_up(&self, view: &View) {
        let before = self.view.as_ref().map_or(view.given_up, |before| before.given_up);
        if view.given_up > before {
            tracing::warn!(
                requests = view.given_up - before,
                "every worker that had these requests was lost with them: they are given up as dead letters (worker_lost)"
            );
        }
        if view.given_up > 0 {
            self.stats.max("frontier/given_up", i64::try_from(view.given_up).unwrap_or(i64::MAX));
        }
    }

    /// What the whole job is told to do.
    fn look_at_state(&mut self) {
        let is_paused = self.state() == FleetState::Paused;
        if is_paused != self.told_pause {
            self.told_pause = is_paused;
            if is_paused {
                tracing::info!("the job is paused for all its workers: what is under way is finished, nothing more goes out");
                self.facts
                    .push(Fact::FrontierBlocked { why: "the job is paused (`dragline frontier resume` ends that)".to_owned() });
            } else {
                tracing::info!("the job is no longer paused");
                self.facts.push(Fact::FrontierUnblocked);
            }
        }
        if self.told_stop || self.stopped || self.state() != FleetState::Stopping {
            return;
        }
        // Without a word of its own it was stopped by hand. If the word cannot be had, the next look asks again.
        if let Ok(reason) = self.server.state(STOP_REASON) {
            let reason = reason.and_then(|bytes| String::from_utf8(bytes).ok()).filter(|text| !text.is_empty());
            self.told_stop = true;
            let reason = reason.unwrap_or_else(|| crate::engine::SHUTDOWN.to_owned());
            self.facts.push(Fact::Fleet(Fleet::Stops(reason)));
        }
    }

    /// The server was not reached, or refuses.
    fn trouble(&mut self, error: &RedisError, now: Instant) {
        if !error.is_transient() {
            self.outage.give_up();
            self.facts.push(Fact::Fleet(Fleet::Lost(error.to_string())));
            return;
        }
        match self.outage.failed(now) {
            Failed::First => {
                self.stats.inc("frontier/outages");
                tracing::warn!(%error, "the shared frontier cannot be reached: the crawl pauses, and goes on when it can");
                self.facts.push(Fact::FrontierBlocked { why: error.to_string() });
            }
            Failed::Again => tracing::debug!(%error, "the shared frontier cannot be reached"),
            Failed::TooLong(lasted) => {
                let text = format!(
                    "{error}, for {} s (FRONTIER_WAIT); what this worker had in flight goes back to the others when its \
                     FRONTIER_VISIBILITY is over, and starting it again goes on from there",
                    lasted.as_secs()
                );
                self.facts.push(Fact::Fleet(Fleet::Lost(text)));
            }
        }
    }
}
