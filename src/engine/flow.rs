//! The way of one request: download, redirect, retry, and on to its callback.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use url::Url;

use super::act::Act;
use super::hub::Hub;
use super::kept::MARGIN;
use super::owed::record_hop;
use super::record;
use super::ticket::{Answered, Kind, State, Then};
use crate::api::failure::{FailureKind, Fault};
use crate::downloader::message::{Attempt, Fetched, Hop, Order as DownloaderOrder, Sent, Verdict as Made};
use crate::downloader::middleware::retry::class_path;
use crate::downloader::transport::{Meter, Reply};
use crate::parser::message::{Effects, Marks, Order as ParserOrder};
use crate::reach::out_of_reach;
use crate::scheduler::job::{Job, JobKind, Outcome};
use crate::scheduler::message::{Control as SchedulerControl, Due, Order, Paced, Ready, RobotsAnswer, Verdict};
use crate::web::key::seen_key;
use crate::web::robots::{Robots, StatusPolicy, policy_for_status};

/// Redirects of a robots.txt that are followed; beyond, the file counts as missing (RFC 9309, 2.3.1.2).
const ROBOTS_HOPS: u32 = 5;

/// How long a request waits whose lease was lost under it.
const LOST_LEASE_WAIT: Duration = Duration::from_secs(1);

impl Hub {
    /// Jobs may go.
    pub(super) fn ready(&mut self, ready: Ready, now: Instant) {
        self.books = ready.books;
        self.pending = ready.books.pending;
        self.next_due = ready.next_due;
        self.answered_seq = ready.seq;
        self.rest = ready.rest;
        for due in ready.jobs {
            self.received += 1;
            self.begin_job(due, now);
        }
    }

    fn begin_job(&mut self, due: Due, now: Instant) {
        let Due { mut job, slot, wants_sent, verdict } = due;
        if !self.phase.pulls() {
            if verdict == Verdict::Go {
                self.acts.push(Act::Scheduler(Order::Freed { id: job.id, slot, unsent: wants_sent }));
            }
            self.scheduler(Order::PutBack { job, delay: Duration::ZERO });
            return;
        }
        let lease = self.take_kept(&mut job, now);
        let is_leased = lease.is_some();
        let tag = self.open(Kind::Request, State::Leasing, now);
        if let Some(ticket) = self.tickets.get_mut(&tag.ticket) {
            ticket.job = Some(Arc::from(job));
            ticket.lease = lease;
            if verdict == Verdict::Go {
                ticket.slot = Some(slot);
                ticket.wants_sent = wants_sent;
            }
        }
        match verdict {
            Verdict::Go if is_leased => self.go(tag.ticket, now),
            Verdict::Go => self.acquire(tag.ticket, now),
            Verdict::Forbidden => self.fail_unfetched(tag.ticket, record::robots_forbidden(), now),
            Verdict::RobotsUnavailable(why) => self.without_robots(tag.ticket, &why, now),
            Verdict::HostFull => self.fail_unfetched(tag.ticket, record::host_full(), now),
            Verdict::OutOfReach => self.fail_out_of_reach(tag.ticket, now),
            Verdict::Offsite => self.drop_offsite(tag.ticket, now),
            // Only hops get these.
            Verdict::Duplicate | Verdict::PutBack => self.put_back(tag.ticket, Duration::ZERO, now),
        }
    }

    /// Sends the ticket to the downloader, under its lease.
    pub(super) fn fetch(&mut self, id: u64, now: Instant) {
        self.enter(id, State::Fetching, now);
        self.takes_place(id);
        let share = self.bytes.share(id);
        let Some(ticket) = self.tickets.get_mut(&id) else { return };
        let (Some(job), Some(grant)) = (ticket.job.clone(), ticket.lease.as_ref().map(|guard| guard.grant().clone())) else {
            return;
        };
        ticket.share = Some(share.clone());
        ticket.reported = false;
        ticket.attempt = None;
        let renew_at = grant.expires_at.checked_sub(grant.renew_before).unwrap_or(grant.expires_at);
        let (tag, wants_sent) = (ticket.tag, ticket.wants_sent);
        let limit = job.request.timeout_value().unwrap_or_else(|| self.config.context.settings().download_timeout);
        if now + limit > renew_at
            && let Some(guard) = ticket.lease.as_ref().filter(|guard| !guard.is_renewed())
        {
            guard.note_renewed();
            self.acts.push(Act::BrokerControl(crate::broker::message::Control::Renew {
                lease: grant.lease.clone(),
                tag,
                at: renew_at,
                expires_at: grant.expires_at,
            }));
        }
        let meter: Arc<dyn Meter> = share;
        self.acts.push(Act::Downloader(DownloaderOrder::Fetch { tag, job, grant, wants_sent, meter }));
    }

    pub(super) fn sent(&mut self, sent: &Sent) {
        let told = self.current(sent.tag).and_then(|t| {
            let told = (t.slot.clone()?, t.job.as_ref()?.id);
            t.wants_sent = false;
            Some(told)
        });
        if let Some((slot, id)) = told {
            self.acts.push(Act::Scheduler(Order::Sent { id, slot, at: sent.at }));
        }
    }

    /// An attempt is over.
    pub(super) fn fetched(&mut self, fetched: Fetched, now: Instant) {
        let Fetched { tag, mut verdict, mut attempt } = fetched;
        let settings = self.config.context.settings();
        let every_answer = self.records_every_answer();
        let Some(ticket) = self.current(tag) else { return };
        let id = tag.ticket;
        let cancelled = matches!(&verdict, Made::Fail(fault, _) if fault.kind == FailureKind::Cancelled);
        let lost = ticket.fault.take().filter(|_| cancelled);
        if let Some(share) = &ticket.share {
            share.read();
        }
        if let Some(job) = &mut ticket.job {
            // What a stop cut off is no attempt of the next run's.
            // One that is repeated without having been sent (a middleware's own answer) counts too, or it would be for ever.
            let was_made = attempt.sent_at.is_some() || matches!(verdict, Made::Retry { .. });
            let counts = was_made && (!cancelled || lost.is_some());
            Arc::make_mut(job).attempts += u32::from(counts);
        }
        let Some(job) = ticket.job.clone() else { return };
        if let Some(lost) = lost {
            // The attempt was cut off because its lease could not be renewed: it failed, and may be repeated.
            let times = job.request.retries_value().unwrap_or(settings.retry_times);
            let is_repeated = settings.retry_enabled && settings.retry_exceptions.contains(&lost.kind);
            verdict = if is_repeated && job.attempts <= times {
                Made::Retry { reason: lost.kind.name().to_owned(), after: LOST_LEASE_WAIT }
            } else {
                Made::Fail(lost.clone(), None)
            };
            attempt.fault = Some(lost);
        }
        // One record for each failed attempt, one that a stop cut off on the wire among them; an answer leaves one
        // when the request ends with it.
        let leaves_one = match &attempt.fault {
            Some(fault) => fault.kind != FailureKind::Cancelled || attempt.sent_at.is_some(),
            None => every_answer && matches!(verdict, Made::Retry { .. }),
        };
        let owes_one = !leaves_one && matches!(verdict, Made::Retry { .. });
        let text = (leaves_one || owes_one).then(|| record::text(&job, attempt.status, attempt.fault.as_ref(), attempt.latency));
        if owes_one {
            // It is newer than the redirect that led here.
            ticket.before = None;
        }
        ticket.attempt = Some(attempt);
        if leaves_one {
            ticket.records.extend(text);
        } else {
            self.owed.extend(text.map(|text| (job.id, text)));
        }
        self.note_answer(id, now);
        self.free_slot(id);
        self.tell_of_proxy(id);
        if job.kind == JobKind::Robots {
            self.robots_fetched(id, &job, verdict, now);
            return;
        }
        match verdict {
            Made::Deliver(reply) => self.deliver(id, job, Arc::from(reply), now),
            Made::Fail(fault, _) if fault.kind == FailureKind::Cancelled => {
                self.report(id, true, Marks::default());
                // A stopping job keeps the request for the next run.
                self.put_back_after_group(id, Duration::ZERO, now);
            }
            Made::Fail(fault, reply) => self.fail(id, job, fault, reply.map(Arc::from), now),
            Made::Retry { reason, after } => {
                tracing::debug!(url = job.url().as_str(), reason, attempt = job.attempts, "retrying");
                if let Some(ticket) = self.tickets.get_mut(&id)
                    && let Some(job) = &mut ticket.job
                {
                    let job = Arc::make_mut(job);
                    let priority =
                        job.request.priority_value().saturating_add(self.config.context.settings().retry_priority_adjust);
                    job.request.priority(priority);
                }
                self.report(id, true, Marks::default());
                self.put_back_after_group(id, after, now);
            }
            Made::Redirect(hop) => self.redirect(id, &job, hop, now),
        }
    }

    fn deliver(&mut self, id: u64, job: Arc<Job>, reply: Arc<Reply>, now: Instant) {
        let Some(ticket) = self.tickets.get_mut(&id) else { return };
        tracing::debug!(url = job.url().as_str(), status = reply.status.as_u16(), bytes = reply.body.len(), "crawled");
        let attempt = ticket.attempt.clone().unwrap_or_else(nothing);
        ticket.records.push(record::text(&job, Some(reply.status.as_u16()), None, attempt.latency));
        ticket.reply = Some(reply.clone());
        let tag = ticket.tag;
        self.tally.pages += 1;
        self.stats.inc("response_received_count");
        self.hold(id, now);
        self.enter(id, State::Parsing, now);
        self.acts.push(Act::Parser(None, ParserOrder::Page { tag, job, reply, attempt }));
    }

    /// The request failed for good after an attempt: `failed` has the word.
    fn fail(&mut self, id: u64, job: Arc<Job>, fault: Fault, reply: Option<Arc<Reply>>, now: Instant) {
        let Some(ticket) = self.tickets.get_mut(&id) else { return };
        if let Some(reply) = &reply {
            let latency = ticket.attempt.as_ref().map_or(Duration::ZERO, |a| a.latency);
            // A status is no error in the record: the contract keeps `error` for requests without an answer.
            let shown = (fault.kind != FailureKind::HttpStatus).then_some(&fault);
            ticket.records.push(record::text(&job, Some(reply.status.as_u16()), shown, latency));
            self.tally.pages += 1;
            self.stats.inc("response_received_count");
        } else if ticket.attempt.as_ref().is_none_or(|a| a.fault.is_none()) {
            let status = ticket.attempt.as_ref().and_then(|a| a.status);
            let latency = ticket.attempt.as_ref().map_or(Duration::ZERO, |a| a.latency);
            ticket.records.push(record::text(&job, status, Some(&fault), latency));
        }
        ticket.reply.clone_from(&reply);
        ticket.fault = Some(fault.clone());
        let (tag, attempt) = (ticket.tag, ticket.attempt.clone());
        self.hold(id, now);
        self.enter(id, State::Parsing, now);
        self.acts.push(Act::Parser(None, ParserOrder::Failed { tag, job, fault, reply, attempt }));
    }

    /// The request failed before anything was sent.
    pub(super) fn fail_unfetched(&mut self, id: u64, fault: Fault, now: Instant) {
        let Some(ticket) = self.tickets.get_mut(&id) else { return };
        let Some(job) = ticket.job.clone() else { return };
        // That of the hop which led here: this URL was never asked.
        ticket.attempt = None;
        if job.kind == JobKind::Robots {
            ticket.records.push(record::text(&job, None, Some(&fault), Duration::ZERO));
            self.answer_robots(
                &job,
                RobotsAnswer::Unavailable { why: fault.message.as_str().into(), again_in: self.config.robots_again },
            );
            self.end_unparsed(id, &job, fault, now);
        } else {
            self.fail(id, job, fault, None, now);
        }
    }

    /// The robots.txt of the page's origin could not be read; of a host that no rule covers it was not even asked for.
    fn without_robots(&mut self, id: u64, why: &str, now: Instant) {
        let Some(job) = self.tickets.get(&id).and_then(|t| t.job.clone()) else { return };
        if (self.config.ask)(&job).is_some() {
            self.fail_unfetched(id, record::robots_unavailable(why), now);
        } else {
            self.fail_unmatched(id, &job, now);
        }
    }

    /// Ends a request that no callback hears of.
    fn end_unparsed(&mut self, id: u64, job: &Job, fault: Fault, now: Instant) {
        let outcome = self.ended_as(job, &fault);
        self.commit(id, Effects::default(), Then::Settle(outcome), now);
    }

    fn robots_fetched(&mut self, id: u64, job: &Arc<Job>, verdict: Made, now: Instant) {
        let attempt = self.tickets.get(&id).and_then(|t| t.attempt.as_ref());
        let took = attempt.map_or(Duration::ZERO, |a| a.latency);
        let answered = attempt.filter(|a| a.fault.is_none()).and_then(|a| a.status);
        match verdict {
            Made::Deliver(reply) => {
                let status = reply.status.as_u16();
                self.stats.inc("response_received_count");
                self.stats.inc("robotstxt/response_count");
                self.stats.inc(format!("robotstxt/response_status_count/{status}"));
                let answer = match policy_for_status(status) {
                    StatusPolicy::Parse => RobotsAnswer::Rules(Arc::new(Robots::parse(&reply.body))),
                    StatusPolicy::AllowAll => RobotsAnswer::Rules(Arc::new(Robots::allow_all())),
                    StatusPolicy::DenyForNow => RobotsAnswer::Unavailable {
                        why: format!("robots.txt answered {status}").into(),
                        again_in: self.config.robots_again,
                    },
                };
                self.answer_robots(job, answer);
                if let Some(ticket) = self.tickets.get_mut(&id) {
                    ticket.records.push(record::text(job, Some(status), None, took));
                }
                self.report(id, true, Marks::default());
                self.commit(id, Effects::default(), Then::Settle(Outcome::Handled), now);
            }
            Made::Fail(fault, _) if fault.kind == FailureKind::Cancelled => {
                self.report(id, true, Marks::default());
                self.put_back_after_group(id, Duration::ZERO, now);
            }
            Made::Fail(fault, _) => {
                if let (Some(status), Some(ticket)) = (answered, self.tickets.get_mut(&id)) {
                    ticket.records.push(record::text(job, Some(status), Some(&fault), took));
                }
                self.stats.inc(format!("robotstxt/exception_count/<class '{}'>", class_path(fault.kind)));
                let answer = if fault.kind == FailureKind::RedirectLimit {
                    RobotsAnswer::Rules(Arc::new(Robots::allow_all()))
                } else {
                    RobotsAnswer::Unavailable { why: fault.message.as_str().into(), again_in: self.config.robots_again }
                };
                self.answer_robots(job, answer);
                self.report(id, true, Marks::default());
                self.end_unparsed(id, job, fault, now);
            }
            Made::Retry { reason, after } => {
                tracing::debug!(url = job.url().as_str(), reason, attempt = job.attempts, "retrying");
                self.report(id, true, Marks::default());
                self.put_back_after_group(id, after, now);
            }
            Made::Redirect(_) if job.hops >= ROBOTS_HOPS => {
                self.answer_robots(job, RobotsAnswer::Rules(Arc::new(Robots::allow_all())));
                if let Some(ticket) = self.tickets.get_mut(&id) {
                    ticket.records.push(record::text(job, answered, None, took));
                }
                self.report(id, true, Marks::default());
                self.commit(id, Effects::default(), Then::Settle(Outcome::Handled), now);
            }
            Made::Redirect(hop) => self.redirect(id, job, hop, now),
        }
    }

    fn answer_robots(&mut self, job: &Job, rules: RobotsAnswer) {
        // The first URL names the origin, also when robots.txt was redirected elsewhere (RFC 9309, 2.3.1.2).
        let first = job.first_url.as_deref().and_then(|u| url::Url::parse(u).ok());
        let origin = first.as_ref().unwrap_or_else(|| job.url()).origin().ascii_serialization();
        self.acts.push(Act::SchedulerControl(SchedulerControl::Robots { origin: origin.into(), rules }));
    }

    /// A redirect hop is a new ticket of the same request. It keeps the lease within the scope that gave it; what the
    /// request itself brings along to identify somebody stays within its origin.
    fn redirect(&mut self, id: u64, job: &Arc<Job>, hop: Hop, now: Instant) {
        let Hop { to, becomes_get, after, referrer_policy } = hop;
        let stays = (self.config.stays)(job, &to);
        self.report(id, !stays, Marks::default());
        let mut next = Job::clone(job);
        next.chain.push(next.key);
        next.first_url.get_or_insert_with(|| job.url().as_str().into());
        next.hops += 1;
        next.attempts = 0;
        if becomes_get {
            next.request.set_method(http::Method::GET);
            next.request.drop_body();
        }
        if job.url().origin() != to.origin() {
            next.request.drop_credentials();
        }
        if !stays && leaves(job.url(), &to) {
            next.request.drop_lease_target();
        }
        if let Some(policy) = referrer_policy {
            next.request.refer_by(policy);
        }
        next.request.set_url(to);
        let adjust = self.config.context.settings().redirect_priority_adjust;
        let priority = next.request.priority_value().saturating_add(adjust);
        next.request.priority(priority);
        next.key = seen_key(next.request.method(), next.url(), next.request.body_bytes());
        let lease = self.tickets.get_mut(&id).and_then(|t| t.lease.take());
        let (attempt, records) = self.close(id, now).map(|t| (t.attempt, t.records)).unwrap_or_default();
        let (status, took) = attempt.as_ref().map_or((None, Duration::ZERO), |a| (a.status, a.latency));
        let hop = self.open(Kind::Request, State::Pacing, now);
        if let Some(ticket) = self.tickets.get_mut(&hop.ticket) {
            ticket.lease = lease;
            ticket.attempt = attempt;
            ticket.records = records;
            ticket.before = Some(Answered { job: job.clone(), status, took });
            ticket.not_before = (!after.is_zero()).then(|| now + after);
            ticket.job = Some(Arc::new(next.clone()));
        }
        self.scheduler(Order::Hop { tag: hop, job: Box::new(next) });
    }

    pub(super) fn paced(&mut self, paced: Paced, now: Instant) {
        let Paced { tag, job, slot, wants_sent, verdict } = paced;
        let fetches = self.phase.fetches();
        let every_answer = self.records_every_answer();
        let Some(ticket) = self.current(tag) else {
            if verdict == Verdict::Go {
                self.acts.push(Act::Scheduler(Order::Freed { id: job.id, slot, unsent: wants_sent }));
            }
            return;
        };
        let id = tag.ticket;
        let job: Arc<Job> = Arc::from(job);
        ticket.job = Some(job.clone());
        if verdict == Verdict::Go {
            ticket.slot = Some(slot);
            ticket.wants_sent = wants_sent;
        }
        let wait = ticket.not_before.take().map_or(Duration::ZERO, |due| due.saturating_duration_since(now));
        // Of a hop that leads nowhere there is a record with the reason.
        if every_answer && !matches!(verdict, Verdict::Duplicate | Verdict::Offsite) {
            record_hop(ticket, None);
        }
        match verdict {
            Verdict::Go if !fetches => {
                self.free_slot(id);
                self.put_back_after_group(id, wait, now);
            }
            Verdict::Go if !wait.is_zero() => {
                // It waits in the queue: there it holds no place of anybody's, and survives the process.
                self.free_slot(id);
                self.keep_hop(id, wait, now);
                self.put_back_after_group(id, wait, now);
            }
            Verdict::Go => {
                if ticket.lease.as_ref().is_some_and(|guard| guard.serves(now + MARGIN)) {
                    self.go(id, now);
                } else {
                    if let Some(guard) = ticket.lease.take() {
                        self.end_share(guard);
                    }
                    self.acquire(id, now);
                }
            }
            Verdict::PutBack => self.put_back_after_group(id, wait, now),
            Verdict::Duplicate | Verdict::Offsite => {
                let fault = if verdict == Verdict::Offsite {
                    record::filtered_offsite(&job)
                } else {
                    Fault::new(FailureKind::RedirectDuplicate, "redirected to a URL that was seen before")
                };
                // Nothing was asked of the target: the record is that of the URL that led there.
                record_hop(ticket, Some(&fault));
                self.end_unparsed(id, &job, fault, now);
            }
            Verdict::Forbidden => self.fail_unfetched(id, record::robots_forbidden(), now),
            Verdict::RobotsUnavailable(why) => self.without_robots(id, &why, now),
            Verdict::HostFull => self.fail_unfetched(id, record::host_full(), now),
            Verdict::OutOfReach => self.fail_out_of_reach(id, now),
        }
    }

    /// An earlier run with other allowed domains queued it.
    fn drop_offsite(&mut self, id: u64, now: Instant) {
        let every_answer = self.records_every_answer();
        let Some(ticket) = self.tickets.get_mut(&id) else { return };
        let Some(job) = ticket.job.clone() else { return };
        let fault = record::filtered_offsite(&job);
        if every_answer {
            ticket.records.push(record::text(&job, None, Some(&fault), Duration::ZERO));
        }
        self.end_unparsed(id, &job, fault, now);
    }

    /// The request leads to an address of this machine or its network.
    fn fail_out_of_reach(&mut self, id: u64, now: Instant) {
        let Some(job) = self.tickets.get(&id).and_then(|t| t.job.clone()) else { return };
        self.fail_unfetched(id, out_of_reach(job.url().host_str().unwrap_or_default()), now);
    }

    /// Gives the request back to the frontier at once; its ticket is over.
    pub(super) fn put_back(&mut self, id: u64, delay: Duration, now: Instant) {
        self.free_slot(id);
        self.order_last_records(id);
        if let Some(ticket) = self.close(id, now)
            && let Some(job) = ticket.job
        {
            self.scheduler(Order::PutBack { job: Box::new(Arc::unwrap_or_clone(job)), delay });
        }
    }

    /// As `put_back`, and the ticket stays until its request records are kept.
    pub(super) fn put_back_after_group(&mut self, id: u64, delay: Duration, now: Instant) {
        let Some(ticket) = self.tickets.get_mut(&id) else { return };
        ticket.share = None;
        if ticket.records.is_empty() {
            self.put_back(id, delay, now);
            return;
        }
        if let Some(guard) = ticket.lease.take() {
            self.end_share(guard);
        }
        let Some(ticket) = self.tickets.get(&id) else { return };
        if let Some(job) = ticket.job.clone() {
            self.scheduler(Order::PutBack { job: Box::new(Arc::unwrap_or_clone(job)), delay });
        }
        self.commit(id, Effects::default(), Then::Close, now);
    }

    /// Lets the report of the ticket's attempt wait for its callback's marks.
    fn hold(&mut self, id: u64, now: Instant) {
        if self.tickets.get(&id).is_some_and(|t| !t.reported) {
            self.holds.push_back((now + self.config.report_hold, id));
        }
    }
}

/// Whether a hop leads to another host, or to where anybody on the way can read it: what a request says itself of its lease
/// is about the first one.
fn leaves(from: &Url, to: &Url) -> bool {
    from.host_str() != to.host_str() || (from.scheme() == "https" && to.scheme() == "http")
}

pub(super) fn nothing() -> Attempt {
    Attempt::default()
}
