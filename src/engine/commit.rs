//! The commit order: children into the frontier, then the group into the record log, then the settle.
//!
//! Nothing is lost or doubled by a crash between two of these: a repeated offer of the same children is a
//! no-op, and an `End` in the log without a settle is settled at the next start, not fetched again.

use std::sync::Arc;

use tokio::time::Instant;

use super::act::Act;
use super::hub::Hub;
use super::message::StopReason;
use super::record;
use super::ticket::{Commit, Kind, State, Tag, Then, Ticket};
use crate::collector::message::{End, Fact as CollectorFact, Group, Order as CollectorOrder};
use crate::parser::message::{CallbackFault, Effects, Part};
use crate::scheduler::job::{Job, JobKind, SlotKey};
use crate::scheduler::message::{Accepted, Order};
use crate::scheduler::store::StoreError;

impl Hub {
    /// A callback commits a part of what it makes.
    pub(super) fn part(&mut self, part: Part, now: Instant) {
        let Part { tag, mut effects, done } = part;
        // A thread that was abandoned may come to itself when its request has already failed: what it commits
        // must not take the place of that end.
        let runs = |t: &mut Ticket| t.state == State::Parsing && t.commit.is_none();
        let known = self.current(tag).map(runs);
        if known == Some(false) {
            self.tally.stale += 1;
            self.stats.inc("engine/stale_facts");
        }
        if known != Some(true) {
            self.acts.push(Act::Resume(done, Err("the request was given up".to_owned())));
            return;
        }
        if !self.phase.commits() {
            self.acts.push(Act::Resume(done, Err("the job is stopping".to_owned())));
            return;
        }
        if let Some(share) = self.tickets.get(&tag.ticket).and_then(|t| t.share.as_ref()) {
            share.give_way();
        }
        self.keep(tag.ticket, &mut effects.jobs, now);
        self.commit(tag.ticket, effects, Then::Resume(done), now);
    }

    /// Begins a commit; a ticket has one at a time.
    pub(super) fn commit(&mut self, id: u64, effects: Effects, then: Then, now: Instant) {
        let Effects { jobs, items, scraped, dropped, broken } = effects;
        self.tally.scraped += scraped;
        self.tally.dropped += dropped;
        self.tally.broken += broken;
        let ends = !matches!(then, Then::Resume(_));
        let Some(ticket) = self.tickets.get_mut(&id) else { return };
        let seeds = ticket.kind == Kind::Start;
        match ticket.kind {
            Kind::Start => self.start_gave_items |= !items.is_empty(),
            Kind::Idle => self.idle_made += jobs.len() as u64,
            Kind::Request => {}
        }
        let end = match (&then, &ticket.job) {
            (Then::Settle(outcome), Some(job)) => Some(End { request: job.id, attempt: job.attempts, outcome: *outcome }),
            _ => None,
        };
        let group = Arc::new(Group { tag: ticket.tag, part: ticket.parts, items, records: Vec::new(), end });
        ticket.parts += 1;
        ticket.commit = Some(Commit { offer: None, group, then });
        if ends {
            self.enter(id, State::Committing, now);
        }
        if jobs.is_empty() {
            self.keep_group(id, now);
        } else {
            if seeds {
                self.seeds_taken += jobs.len() as u64;
            }
            self.note_shared(&jobs, now);
            self.offer(id, jobs, seeds);
        }
    }

    /// Remembers hosts whose requests are leased for different things, before one of them is refused.
    fn note_shared(&mut self, jobs: &[Job], now: Instant) {
        for job in jobs.iter().filter(|job| (self.config.may_differ)(job)) {
            if let Some(ask) = (self.config.ask)(job) {
                let names_its_own = job.request.lease_target().is_some();
                self.shared_hosts.queued(&SlotKey::of(job.url()), &ask, names_its_own, now);
            }
        }
    }

    fn offer(&mut self, id: u64, jobs: Vec<Job>, seeds: bool) {
        self.next_offer += 1;
        let offer = self.next_offer;
        self.offers.insert(offer, id);
        if let Some(commit) = self.tickets.get_mut(&id).and_then(|t| t.commit.as_mut()) {
            commit.offer = Some(offer);
        }
        self.scheduler(Order::Offer { offer, jobs, seeds });
    }

    /// The frontier took an offer, or has no room for it.
    pub(super) fn accepted(&mut self, accepted: Accepted, now: Instant) {
        self.pending = self.pending.max(accepted.pending);
        self.kept_dropped(&accepted.kept_dropped);
        let Some(id) = self.offers.remove(&accepted.offer) else { return };
        let Some(ticket) = self.tickets.get_mut(&id) else { return };
        let seeds = ticket.kind == Kind::Start;
        if ticket.kind == Kind::Idle {
            self.idle_stored += accepted.stored;
        }
        if let Some(commit) = &mut ticket.commit {
            commit.offer = None;
        }
        ticket.records.extend(accepted.filtered.iter().map(record::offsite));
        match accepted.error {
            None => {
                // Where there was room for this one, there may be for others.
                self.offers_to_try = self.blocked.len();
                self.lift_kept(id);
                self.keep_group(id, now);
            }
            Some(StoreError::Full { .. }) => {
                self.stats.inc("engine/offers_blocked");
                if !self.phase.pulls() && self.refuse_part(id, now) {
                    return;
                }
                self.blocked.push_back((id, accepted.refused, seeds));
            }
            Some(error) => {
                self.stop(StopReason::DiskFull(error.to_string()), now);
            }
        }
    }

    /// The children are in: orders the group.
    fn keep_group(&mut self, id: u64, now: Instant) {
        let Some(ticket) = self.tickets.get_mut(&id) else { return };
        let Some(commit) = &mut ticket.commit else { return };
        // Not before: a part that finds no room is given up, and the records are the next group's.
        Arc::make_mut(&mut commit.group).records = std::mem::take(&mut ticket.records);
        let group = commit.group.clone();
        if !group.records.is_empty()
            && let Some(job) = &ticket.job
        {
            self.owed.remove(&job.id);
        }
        if group.items.is_empty() && group.records.is_empty() && group.end.is_none() {
            self.kept_one(group.tag, group.part, now);
        } else {
            self.acts.push(Act::Collector(CollectorOrder::Group(group)));
        }
    }

    pub(super) fn collector(&mut self, fact: CollectorFact, now: Instant) {
        match fact {
            CollectorFact::Kept(kept) => {
                for (tag, part) in kept {
                    self.kept_one(tag, part, now);
                }
            }
            CollectorFact::Blocked { why } => {
                tracing::warn!(reason = why, "records are not kept for now; the crawl slows down");
                self.blocked_by = Some(why);
            }
            CollectorFact::Unblocked => {
                tracing::info!("records are kept again");
                self.blocked_by = None;
            }
            CollectorFact::GaveUp(why) => self.stop(StopReason::DiskFull(why), now),
            CollectorFact::DeliveryStopped(why) => self.stop(StopReason::DeliveryRefused(why), now),
            CollectorFact::Closed(closed) => self.closed = Some(closed),
        }
    }

    /// A group is in the record log.
    fn kept_one(&mut self, tag: Tag, part: u32, now: Instant) {
        let Some(ticket) = self.current(tag) else { return };
        if ticket.commit.as_ref().is_none_or(|c| c.group.part != part || c.offer.is_some()) {
            self.stats.inc("engine/stale_facts");
            self.tally.stale += 1;
            return;
        }
        let Some(commit) = ticket.commit.take() else { return };
        let (kind, early) = (ticket.kind, ticket.early.take());
        let items = commit.group.items.len() as u64;
        ticket.has_items |= items > 0;
        let is_page = ticket.job.as_ref().is_some_and(|job| job.kind == JobKind::Page);
        let is_answered = ticket.attempt.as_ref().is_some_and(|attempt| attempt.status.is_some());
        if is_page && is_answered && !ticket.has_items && matches!(commit.then, Then::Settle(_)) {
            self.dry_pages += 1;
        }
        if items > 0 {
            (self.dry_pages, self.last_item_at) = (0, now);
            self.tally.kept += items;
            self.stats.add("item_scraped_count", i64::try_from(items).unwrap_or(i64::MAX));
        }
        match commit.then {
            // Nobody waits any more: the callback's end comes next.
            Then::Resume(_) if early.is_some() => {
                if let Some(early) = early {
                    self.parsed(*early, now);
                }
            }
            Then::Resume(done) if kind == Kind::Start => self.seeds_waiting.push(done),
            Then::Resume(done) => self.acts.push(Act::Resume(done, Ok(()))),
            Then::Settle(outcome) => {
                if let Some(job) = self.close(tag.ticket, now).and_then(|t| t.job) {
                    self.scheduler(Order::Settle { id: job.id, outcome });
                    self.offers_to_try = self.blocked.len();
                }
            }
            Then::Close => {
                self.close(tag.ticket, now);
                match kind {
                    Kind::Idle => self.idle_is_over(),
                    Kind::Start => self.start_is_over(),
                    Kind::Request => {}
                }
            }
        }
        self.progress_at = now;
    }

    /// Tries offers again that the frontier had no room for, each once after something has left it: one at a
    /// time, oldest first.
    pub(super) fn unblock(&mut self) {
        while self.offers.is_empty() && self.offers_to_try > 0 {
            self.offers_to_try -= 1;
            let Some((id, jobs, seeds)) = self.blocked.pop_front() else { return };
            if self.tickets.contains_key(&id) {
                self.offer(id, jobs, seeds);
            }
        }
    }

    /// Lets `start` go on while the frontier is low.
    pub(super) fn resume_seeds(&mut self) {
        if !self.seeds_waiting.is_empty() && self.pending < self.config.seeds_wait_at {
            for done in self.seeds_waiting.drain(..) {
                self.acts.push(Act::Resume(done, Ok(())));
            }
        }
    }

    pub(super) fn start_over(&mut self, id: u64, effects: Effects, result: Result<(), CallbackFault>, now: Instant) {
        self.seeds_done = true;
        if let Err(fault) = result {
            self.close(id, now);
            if fault != CallbackFault::Cancelled && self.phase.pulls() {
                let limits = (self.config.callback_timeout, self.config.parse_stall);
                let text = crate::parser::fault_text(&fault, limits);
                let exception = format!("{}: {text}", fault.class());
                tracing::error!(exception, "start failed: no further start requests are made");
                self.tally.callback_errors += 1;
                self.stats.inc("spider_exceptions/count");
                self.stats.inc(format!("spider_exceptions/{}", fault.class()));
                self.start_failed = Some(text);
                self.start_is_over();
            }
            return;
        }
        self.commit(id, effects, Then::Close, now);
    }

    pub(super) fn idle_over(&mut self, id: u64, effects: Effects, result: Result<(), CallbackFault>, now: Instant) {
        if let Err(fault) = &result {
            let limits = (self.config.callback_timeout, self.config.parse_stall);
            let exception = format!("{}: {}", fault.class(), crate::parser::fault_text(fault, limits));
            tracing::error!(exception, "idle failed");
            self.stats.inc("spider_exceptions/count");
            self.stats.inc(format!("spider_exceptions/{}", fault.class()));
        }
        if effects.jobs.is_empty() && effects.items.is_empty() {
            self.close(id, now);
            self.idle_is_over();
            return;
        }
        self.commit(id, effects, Then::Close, now);
    }

    /// The collector lost what it had in hand: every group it has not answered is ordered again; one that
    /// was written before is written once.
    pub(crate) fn lost_by_collector(&mut self, _: Instant) {
        let mut groups: Vec<Arc<Group>> = self
            .tickets
            .values()
            .filter_map(|t| t.commit.as_ref())
            .filter(|c| c.offer.is_none() && !(c.group.items.is_empty() && c.group.records.is_empty() && c.group.end.is_none()))
            .map(|c| c.group.clone())
            .collect();
        groups.retain(|g| !self.blocked.iter().any(|(id, _, _)| *id == g.tag.ticket));
        groups.sort_by_key(|g| (g.tag, g.part));
        for group in groups {
            self.stats.inc("engine/reissued");
            self.acts.push(Act::Collector(CollectorOrder::Group(group)));
        }
    }
}
