//! Leases: asked for, refused, used, and given back only when the plane has every report made under them.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::act::Act;
use super::hub::Hub;
use super::message::StopReason;
use super::ticket::{LeaseGuard, State};
use crate::api::failure::{FailureKind, Fault};
use crate::broker::message::{Leased, Order as BrokerOrder, Refused, RenewFailed};
use crate::downloader::message::Control as DownloaderControl;
use crate::parser::message::Marks;
use crate::plane::{RefusalKind, Report};
use crate::reporter::message::Control as ReporterControl;
use crate::scheduler::message::{Control as SchedulerControl, Scope};

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
        match (self.config.ask)(&job) {
            Some(ask) => self.acts.push(Act::Broker(BrokerOrder::Acquire { tag, ask })),
            None => {
                self.free_slot(id);
                self.stats.inc("lease/unmatched");
                let host = job.url().host_str().unwrap_or_default();
                let message = format!("no rule of LEASES covers {host}; add one, or set LEASE_UNMATCHED to \"anonymous\"");
                self.fail_unfetched(id, Fault::new(FailureKind::LeaseRefused, message), now);
            }
        }
    }

    pub(super) fn leased(&mut self, leased: Leased, now: Instant) {
        self.tally.leased += 1;
        let guard = LeaseGuard::new(leased.grant, self.config.releaser.clone());
        let fetches = self.phase.fetches();
        let Some(ticket) = self.current(leased.tag) else {
            return; // the guard gives the lease back
        };
        if ticket.state != State::Leasing {
            return;
        }
        if let Some(grant) = guard.grant() {
            self.refused_since.remove(&grant.identity.site);
        }
        if !fetches {
            drop(guard);
            self.free_slot(leased.tag.ticket);
            self.put_back_after_group(leased.tag.ticket, Duration::ZERO, now);
            return;
        }
        if let Some(ticket) = self.tickets.get_mut(&leased.tag.ticket) {
            ticket.lease = Some(guard);
        }
        self.fetch(leased.tag.ticket, now);
    }

    pub(super) fn refused(&mut self, refused: Refused, now: Instant) {
        let Some(ticket) = self.current(refused.tag) else { return };
        let id = refused.tag.ticket;
        let (Some(job), slot) = (ticket.job.clone(), ticket.slot.clone()) else { return };
        let refusal = refused.refusal;
        self.free_slot(id);
        if !refusal.why.is_temporary() {
            match refusal.why {
                RefusalKind::Unauthorized => self.stop(StopReason::Unauthorized(refusal.message.clone()), now),
                RefusalKind::SiteUnknown | RefusalKind::ClientUnknown => {
                    self.stop(StopReason::Misconfigured(refusal.message.clone()), now)
                }
                _ => {}
            }
            self.fail_unfetched(id, Fault::new(FailureKind::LeaseRefused, refusal.message), now);
            return;
        }
        let site = (self.config.ask)(&job).map_or_else(|| Arc::from(""), |ask| ask.site);
        let since = *self.refused_since.entry(site.clone()).or_insert(now);
        if now.duration_since(since) >= self.config.lease_give_up {
            let message = format!(
                "no lease of site {site} for {} s (LEASE_GIVE_UP): {}",
                self.config.lease_give_up.as_secs(),
                refusal.message
            );
            self.fail_unfetched(id, Fault::new(FailureKind::LeaseUnavailable, message), now);
            return;
        }
        if let Some(slot) = slot {
            let until = now + refused.wait;
            self.acts.push(Act::SchedulerControl(SchedulerControl::Gate { scope: Scope::Slot(slot.clone()), until }));
            if matches!(refusal.why, RefusalKind::NoIdentity | RefusalKind::NoProxy) {
                self.waiting_slots.entry(site).or_default().insert(slot);
            }
        }
        self.put_back_after_group(id, Duration::ZERO, now);
    }

    pub(super) fn renew_failed(&mut self, failed: &RenewFailed) {
        let Some(ticket) = self.current(failed.tag) else { return };
        if ticket.state == State::Fetching {
            let tag = ticket.tag;
            ticket.fault = Some(Fault::new(FailureKind::LeaseLost, format!("the lease could not be renewed: {}", failed.why)));
            self.acts.push(Act::DownloaderControl(DownloaderControl::Cancel(tag)));
        }
    }

    /// Reports the ticket's attempt, once. With `release` the lease ends: by the report, or without one if
    /// the attempt is reported already or never went out.
    pub(super) fn report(&mut self, id: u64, release: bool, marks: Marks) {
        let Some(ticket) = self.tickets.get_mut(&id) else { return };
        let Some(guard) = ticket.lease.as_mut() else { return };
        let Some(lease) = guard.grant().map(|g| g.lease.clone()) else { return };
        let site = guard.grant().map(|g| g.identity.site.clone());
        let (mut ends_after, renewed) = (guard.reported, guard.renewed);
        if let Some((attempt, job)) =
            ticket.attempt.as_ref().zip(ticket.job.as_ref()).filter(|(a, _)| !ticket.reported && a.sent_at.is_some())
        {
            self.next_report += 1;
            self.reports_made += 1;
            ends_after = self.reports_made;
            guard.reported = ends_after;
            let report = Report {
                id: self.next_report,
                lease: lease.clone(),
                path: job.url().path().to_owned(),
                method: job.method().clone(),
                status: attempt.status,
                error: attempt.fault.as_ref().and_then(|f| crate::reporter::error_kind(f.kind)),
                markers: marks.markers,
                business_code: marks.business_code,
                outcome_hint: marks.outcome_hint,
                sent_at: attempt.sent_at.unwrap_or_else(Instant::now),
                latency: attempt.latency,
                bytes: attempt.bytes,
                retry_after: attempt.retry_after,
                release,
            };
            ticket.reported = true;
            if release && let Some(guard) = ticket.lease.take() {
                guard.hand_over();
            }
            self.acts.push(Act::Reporter(crate::reporter::message::Order::Report(report)));
        } else if release && let Some(guard) = ticket.lease.take() {
            self.release(guard);
        }
        if release {
            if renewed {
                self.acts.push(Act::BrokerControl(crate::broker::message::Control::Renewed(lease)));
            }
            if let Some(site) = site {
                // Someone waits for this very lease: the report that ends it does not wait for others.
                if self.waiting_slots.contains_key(&site) {
                    self.acts.push(Act::ReporterControl(ReporterControl::Flush));
                }
                self.ending.push_back((ends_after, site));
            }
            self.lift_ended();
        }
    }

    /// Ends a lease without a report: at once, or when the plane has the reports that were made under it, for
    /// it takes none of a lease that is over.
    pub(super) fn release(&mut self, guard: LeaseGuard) {
        if guard.reported > self.reports_done {
            self.late.push(guard);
        }
    }

    /// The plane has more reports than before.
    pub(super) fn reports_taken(&mut self) {
        let done = self.reports_done;
        self.late.retain(|guard| guard.reported > done);
        self.lift_ended();
    }

    fn lift_ended(&mut self) {
        while let Some((_, site)) = self.ending.pop_front_if(|(after, _)| *after <= self.reports_done) {
            self.lift(&site);
        }
    }

    /// A lease of the site came back: slots that waited for one may ask again.
    fn lift(&mut self, site: &Arc<str>) {
        let Some(slots) = self.waiting_slots.remove(site) else { return };
        self.acts.push(Act::BrokerControl(crate::broker::message::Control::CameBack(site.clone())));
        for slot in slots {
            self.acts.push(Act::SchedulerControl(SchedulerControl::Lift { scope: Scope::Slot(slot) }));
        }
    }

    /// The broker lost what it had in hand: every ask is made again, under a new epoch.
    pub(crate) fn lost_by_broker(&mut self, now: Instant) {
        let waiting: Vec<u64> = self.tickets.values().filter(|t| t.state == State::Leasing).map(|t| t.tag.ticket).collect();
        for id in waiting {
            if let Some(ticket) = self.tickets.get_mut(&id) {
                ticket.tag.epoch += 1;
            }
            self.stats.inc("engine/reissued");
            self.acquire(id, now);
        }
    }
}
