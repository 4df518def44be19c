//! Leases: asked for, refused, used, reported under, and given back only when the plane has every report made under them.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::act::Act;
use super::bounds::{Bounded, bounded};
use super::guard::LeaseGuard;
use super::hub::Hub;
use super::message::StopReason;
use super::refusal::{Meaning, meaning};
use super::ticket::State;
use crate::api::failure::{FailureKind, Fault};
use crate::broker::message::{Control as BrokerControl, Leased, Order as BrokerOrder, Refused};
use crate::downloader::message::Control as DownloaderControl;
use crate::parser::message::Marks;
use crate::plane::{ErrorKind, Report};
use crate::reporter::message::{Control as ReporterControl, Fact as ReporterFact};
use crate::scheduler::job::{Job, SlotKey};
use crate::scheduler::message::{Control as SchedulerControl, Hold, Scope};

/// Hosts that are named because no rule covers them; further ones are counted only.
const NAMED_HOSTS: usize = 1000;
/// Proxies that are named in the log; what fails beyond is only counted.
const NAMED_PROXIES: usize = 20;

/// A host of a site with too many asks under way is looked at again after this, should no answer come before.
const CROWDED: Duration = Duration::from_secs(30);

/// A request of a shared host that waits for an identity to come back looks again after this.
const RETURN: Duration = Duration::from_millis(100);

/// Asks of one site that are under way, and hosts that wait for one of them to be answered.
#[derive(Debug, Default)]
pub(super) struct Asking {
    count: usize,
    crowded: HashSet<SlotKey>,
}

impl Hub {
    /// Asks for the ticket's lease.
    pub(super) fn acquire(&mut self, id: u64, now: Instant) {
        self.enter(id, State::Leasing, now);
        let Some((tag, job)) = self.tickets.get(&id).and_then(|t| Some((t.tag, t.job.clone()?))) else { return };
        if !matches!(job.url().scheme(), "http" | "https") {
            let message = format!("Unsupported URL scheme '{}': no handler available for that scheme", job.url().scheme());
            self.free_slot(id);
            self.fail_unfetched(id, Fault::new(FailureKind::UnsupportedScheme, message), now);
            return;
        }
        let Some(ask) = (self.config.ask)(&job) else {
            self.free_slot(id);
            self.fail_unmatched(id, &job, now);
            return;
        };
        if let Some(slot) = self.tickets.get(&id).and_then(|t| t.slot.as_ref()) {
            self.shared_hosts.asks(slot, &ask);
        }
        let asking = self.asking.entry(ask.site.clone()).or_default();
        if asking.count >= self.config.acquire_pending.max(1) {
            self.stats.inc("lease/crowded");
            if let Some(slot) = self.tickets.get(&id).and_then(|t| t.slot.clone()) {
                asking.crowded.insert(slot.clone());
                let until = now + CROWDED;
                self.acts.push(Act::SchedulerControl(SchedulerControl::Gate {
                    scope: Scope::Slot(slot),
                    until,
                    hold: Hold::Run,
                }));
            }
            self.free_slot(id);
            self.put_back_after_group(id, Duration::ZERO, now);
            return;
        }
        asking.count += 1;
        if let Some(ticket) = self.tickets.get_mut(&id) {
            ticket.asks = Some(ask.site.clone());
        }
        if let Some(ahead) = &mut self.ahead {
            ahead.ask(id, now);
        }
        self.acts.push(Act::Broker(BrokerOrder::Acquire { tag, ask }));
    }

    /// The ticket's ask is over: others of its site may be made.
    pub(super) fn asked(&mut self, id: u64, granted: bool, now: Instant) {
        let Some(site) = self.tickets.get_mut(&id).and_then(|t| t.asks.take()) else { return };
        if let Some(ahead) = &mut self.ahead {
            ahead.answered(id, granted, now);
        }
        let Some(asking) = self.asking.get_mut(&site) else { return };
        asking.count = asking.count.saturating_sub(1);
        // Not at the first answer of many: each host that may go again gives several jobs at once.
        let limit = self.config.acquire_pending.max(1);
        if !asking.crowded.is_empty() && asking.count <= limit - (limit / 8).max(1) {
            for slot in std::mem::take(&mut asking.crowded) {
                self.acts.push(Act::SchedulerControl(SchedulerControl::Lift { scope: Scope::Slot(slot) }));
            }
        }
        if asking.count == 0 && asking.crowded.is_empty() {
            self.asking.remove(&site);
        }
    }

    /// Drops a request that no rule covers, and names its host once.
    pub(super) fn fail_unmatched(&mut self, id: u64, job: &Job, now: Instant) {
        self.stats.inc("lease/unmatched");
        let host = job.url().host_str().unwrap_or_default();
        let message = format!("no rule of LEASES covers {host}");
        if self.unmatched.len() < NAMED_HOSTS && self.unmatched.insert(host.into()) {
            tracing::warn!(
                host,
                "requests to this host are dropped: no rule of LEASES covers it; add one, or set LEASE_UNMATCHED to \"anonymous\"; lease/unmatched counts them"
            );
        }
        self.fail_unfetched(id, Fault::new(FailureKind::LeaseUnmatched, message), now);
    }

    /// Names a proxy once whose fault ended the ticket's attempt.
    pub(super) fn tell_of_proxy(&mut self, id: u64) {
        let Some(ticket) = self.tickets.get(&id) else { return };
        let fault = ticket.attempt.as_ref().and_then(|attempt| attempt.fault.as_ref());
        let fault = fault.filter(|fault| matches!(fault.kind, FailureKind::Proxy | FailureKind::ProxyAuth));
        let proxy = ticket.lease.as_ref().and_then(|guard| guard.grant().about.proxy.as_ref());
        let (Some(fault), Some(proxy)) = (fault, proxy) else { return };
        if self.bad_proxies.len() < NAMED_PROXIES && self.bad_proxies.insert(Arc::clone(&proxy.id)) {
            tracing::warn!(
                proxy = &*proxy.id,
                reason = fault.message,
                "a proxy fails; the control plane hears of it, and what else fails there is only counted"
            );
        }
    }

    pub(super) fn leased(&mut self, leased: Leased, now: Instant) {
        self.tally.leased += 1;
        self.account.acquired += 1;
        let guard = LeaseGuard::new(leased.grant, self.config.releaser.clone(), self.account.ends.clone());
        let (id, fetches) = (leased.tag.ticket, self.phase.fetches());
        let Some(ticket) = self.current(leased.tag) else {
            return; // the guard gives the lease back
        };
        if ticket.state != State::Leasing {
            return;
        }
        self.asked(id, true, now);
        self.patience.granted(&guard.grant().identity.site, now);
        if !fetches {
            drop(guard);
            self.free_slot(id);
            self.put_back_after_group(id, Duration::ZERO, now);
            return;
        }
        if let Some(ticket) = self.tickets.get_mut(&id) {
            ticket.lease = Some(guard);
        }
        self.go(id, now);
    }

    pub(super) fn refused(&mut self, refused: Refused, now: Instant) {
        let Some(ticket) = self.current(refused.tag) else { return };
        if ticket.state != State::Leasing {
            return;
        }
        let id = refused.tag.ticket;
        let (Some(job), slot) = (ticket.job.clone(), ticket.slot.clone()) else { return };
        self.account.refused += 1;
        self.asked(id, false, now);
        self.free_slot(id);
        let Some(ask) = (self.config.ask)(&job) else {
            self.put_back_after_group(id, Duration::ZERO, now);
            return;
        };
        let meaning = meaning(&refused.refusal, &ask, job.url());
        let waits_for_return = meaning == Meaning::WaitForReturn;
        let stops = match meaning {
            Meaning::WaitForReturn | Meaning::Wait => None,
            Meaning::Fail(message) => {
                self.fail_unfetched(id, Fault::new(FailureKind::LeaseRefused, message), now);
                return;
            }
            Meaning::Misconfigured(message) => Some(StopReason::Misconfigured(message)),
            Meaning::Unauthorized(message) => Some(StopReason::Unauthorized(message)),
        };
        if let Some(reason) = stops {
            // The request did nothing wrong: it is there when the job is started again.
            self.put_back_after_group(id, Duration::ZERO, now);
            self.stop(reason, now);
            return;
        }
        let site = ask.site.clone();
        let ungranted = self.patience.refused(&site, &refused, now);
        if ungranted.is_some_and(|time| time >= self.config.lease_give_up) {
            let message = format!(
                "no lease of site {site} for {} s (LEASE_GIVE_UP): {}",
                self.config.lease_give_up.as_secs(),
                refused.refusal.message
            );
            self.fail_unfetched(id, Fault::new(FailureKind::LeaseUnavailable, message), now);
            return;
        }
        if let Some(slot) = slot {
            // An identity may come back at any time, and nobody calls one request of a shared host.
            let longest = if waits_for_return { RETURN } else { Duration::MAX };
            let delay = self.shared_hosts.refused(&slot, &ask, refused.wait.min(longest), now);
            if let Some(delay) = delay {
                if waits_for_return {
                    self.waiting_slots.entry(site).or_default().insert(slot);
                }
                self.put_back_after_group(id, delay, now);
                return;
            }
            let until = now + refused.wait;
            let hold = if waits_for_return { Hold::Run } else { Hold::Job };
            self.acts.push(Act::SchedulerControl(SchedulerControl::Gate { scope: Scope::Slot(slot.clone()), until, hold }));
            if waits_for_return {
                self.waiting_slots.entry(site).or_default().insert(slot);
            }
        }
        self.put_back_after_group(id, Duration::ZERO, now);
    }

    /// The ticket's lease could not be renewed: what is on the wire under it is cut off.
    pub(super) fn lose_lease(&mut self, id: u64, why: &str) {
        let Some(ticket) = self.tickets.get_mut(&id) else { return };
        if let Some(guard) = &ticket.lease {
            guard.lose();
        }
        if ticket.state == State::Fetching {
            let tag = ticket.tag;
            ticket.fault = Some(Fault::new(FailureKind::LeaseLost, format!("the lease could not be renewed: {why}")));
            self.acts.push(Act::DownloaderControl(DownloaderControl::Cancel(tag)));
        }
    }

    /// Reports the ticket's attempt, once. With `release` the ticket's share of the lease ends, and the lease with the
    /// last share: by the report, or without one if the attempt is reported already or never went out.
    pub(super) fn report(&mut self, id: u64, release: bool, marks: Marks) {
        let Some(ticket) = self.tickets.get_mut(&id) else { return };
        let Some(guard) = ticket.lease.as_ref() else { return };
        let lease = guard.grant().lease.clone();
        let attempt = ticket.attempt.as_ref().zip(ticket.job.as_ref()).filter(|_| !ticket.reported);
        let Some((attempt, job, sent_at)) = attempt.and_then(|(a, j)| Some((a, j, a.sent_at?))) else {
            if release && let Some(guard) = ticket.lease.take() {
                self.end_share(guard);
            }
            return;
        };
        let Bounded { path, markers, business_code, outcome_hint, cut } = bounded(job.url().path(), &attempt.markers, marks);
        self.next_report += 1;
        self.reports_made += 1;
        guard.note_report(self.reports_made);
        let error = attempt.fault.as_ref().and_then(|f| crate::reporter::error_kind(f.kind));
        let mut report = Report {
            id: self.next_report,
            lease: lease.clone(),
            path,
            method: job.method().clone(),
            status: attempt.status,
            // No response and no error would say nothing at all.
            error: error.or_else(|| attempt.status.is_none().then_some(ErrorKind::Other)),
            markers,
            business_code,
            outcome_hint,
            sent_at,
            latency: attempt.latency,
            bytes: attempt.bytes,
            retry_after: attempt.retry_after,
            release: false,
        };
        ticket.reported = true;
        if cut > 0 {
            self.stats.add("reporter/cut", i64::try_from(cut).unwrap_or(i64::MAX));
        }
        let guard = if release { ticket.lease.take() } else { None };
        let Some(guard) = guard.filter(LeaseGuard::is_last) else {
            self.acts.push(Act::Reporter(crate::reporter::message::Order::Report(report)));
            return;
        };
        report.release = true;
        self.account.ending += 1;
        self.account.ending_lost += u64::from(guard.is_lost());
        let (site, renewed) = (guard.grant().identity.site.clone(), guard.is_renewed());
        guard.hand_over();
        self.acts.push(Act::Reporter(crate::reporter::message::Order::Report(report)));
        if renewed {
            self.acts.push(Act::BrokerControl(BrokerControl::Renewed(lease)));
        }
        self.lease_ends(site, self.reports_made);
    }

    /// Gives one share of a lease back; the last one ends the lease, and lets those of its site go that wait for one.
    pub(super) fn end_share(&mut self, guard: LeaseGuard) {
        if !guard.is_last() {
            return;
        }
        let (site, after, renewed) = (guard.grant().identity.site.clone(), guard.reported(), guard.is_renewed());
        if renewed {
            self.acts.push(Act::BrokerControl(BrokerControl::Renewed(guard.grant().lease.clone())));
        }
        self.release(guard);
        self.lease_ends(site, after);
    }

    /// A lease of the site is over as soon as the plane has the reports up to `after`.
    fn lease_ends(&mut self, site: Arc<str>, after: u64) {
        // Someone waits for this very lease: the report that ends it does not wait for others.
        if self.waiting_slots.contains_key(&site) {
            self.acts.push(Act::ReporterControl(ReporterControl::Flush));
        }
        self.ending.push_back((after, site));
        self.lift_ended();
    }

    /// Ends a lease without a report: at once, or when the plane has the reports that were made under it, for
    /// it takes none of a lease that is over.
    pub(super) fn release(&mut self, guard: LeaseGuard) {
        if guard.is_last() && guard.reported() > self.reports_through {
            self.late.push(guard);
        }
    }

    /// The reporter has something to say.
    pub(super) fn reporter(&mut self, fact: ReporterFact, now: Instant) {
        match fact {
            ReporterFact::Handed { reports, ends } => {
                self.reports_done += reports;
                self.account.reported += ends;
                self.reporter_says = None;
            }
            ReporterFact::Through(place) => self.reports_taken(place),
            ReporterFact::Rejected { rejected, ends } => {
                self.reports_done += 1;
                if let Some(reports) = self.refused_reports.note(&rejected.reason, now) {
                    tracing::warn!(
                        reports,
                        reason = rejected.reason,
                        "the control plane refuses reports; reporter/rejected counts them"
                    );
                }
                match ends {
                    Some(_) if rejected.is_unknown_lease => self.account.unknown += 1,
                    // The lease is still out: it ends without its report.
                    Some(lease) => {
                        self.account.after_all += 1;
                        (self.config.releaser)(lease);
                    }
                    None => {}
                }
            }
            ReporterFact::Unauthorized(why) => {
                self.plane_refuses = true;
                let message =
                    format!("the control plane takes no report of this node ({why}); check SPINNERET_TOKEN and its scopes");
                self.stop(StopReason::Unauthorized(message), now);
            }
            ReporterFact::Delayed { queued, why, begun } => {
                self.reporter_says = Some(format!("{queued} reports wait: {why}"));
                if self.config.is_remote {
                    let tried = "reports were handed over";
                    self.acts.push(Act::BrokerControl(BrokerControl::Missed { begun, tried, error: why }));
                }
            }
            ReporterFact::Heard => self.acts.push(Act::BrokerControl(BrokerControl::Heard)),
        }
    }

    /// The plane has the reports up to `place`, or will never take them.
    pub(super) fn reports_taken(&mut self, place: u64) {
        self.reports_through = self.reports_through.max(place);
        let through = self.reports_through;
        self.late.retain(|guard| guard.reported() > through);
        self.lift_ended();
    }

    fn lift_ended(&mut self) {
        while let Some((_, site)) = self.ending.pop_front_if(|(after, _)| *after <= self.reports_through) {
            self.lift(&site);
        }
    }

    /// A lease of the site came back: slots that waited for one may ask again.
    fn lift(&mut self, site: &Arc<str>) {
        let Some(slots) = self.waiting_slots.remove(site) else { return };
        self.acts.push(Act::BrokerControl(BrokerControl::CameBack(site.clone())));
        for slot in slots {
            self.acts.push(Act::SchedulerControl(SchedulerControl::Lift { scope: Scope::Slot(slot) }));
        }
    }

    /// The broker lost what it had in hand: every ask is made again, under a new epoch.
    pub(crate) fn lost_by_broker(&mut self, now: Instant) {
        let waiting: Vec<u64> = self.tickets.values().filter(|t| t.state == State::Leasing).map(|t| t.tag.ticket).collect();
        for id in &waiting {
            self.asked(*id, false, now);
        }
        for id in waiting {
            if let Some(ticket) = self.tickets.get_mut(&id) {
                ticket.tag.epoch += 1;
            }
            self.stats.inc("engine/reissued");
            self.acquire(id, now);
        }
    }
}
