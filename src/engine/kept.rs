//! Kept leases: what a callback makes may go under the lease of its response.
//!
//! Each such request that is queued has a share of the lease, by its id, in memory only; a share that is not used is
//! given back, and the last one ends the lease. While there is one the broker renews the lease.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::act::Act;
use super::guard::LeaseGuard;
use super::hub::Hub;
use super::ticket::Kind;
use crate::broker::message::{Control as BrokerControl, RenewFailed};
use crate::scheduler::job::{Job, RequestId, SlotKey};
use crate::scheduler::message::{Control as SchedulerControl, Scope};

/// What goes under a kept lease goes before others of its host: nobody else can use the lease meanwhile, and who asks
/// for one may wait for this very one.
const FIRST: i32 = 1 << 20;

/// Longest wait of a hop that its lease waits with.
const KEPT_FOR_HOP: Duration = Duration::from_secs(10);

/// A lease that ends sooner serves nobody any more.
pub(super) const MARGIN: Duration = Duration::from_secs(1);

/// Shares of queued requests.
#[derive(Debug, Default)]
pub(super) struct Kept(HashMap<RequestId, LeaseGuard>);

impl Kept {
    /// How many wait.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Hub {
    /// Gives those of a callback's requests that keep its lease their share of it.
    pub(super) fn keep(&mut self, id: u64, jobs: &mut [Job], now: Instant) {
        // A job that stops fetches nothing new, and the next run knows no lease of this one.
        if !self.phase.pulls() || !jobs.iter().any(|job| job.request.keeps_lease()) {
            return;
        }
        let Some(ticket) = self.tickets.get_mut(&id).filter(|t| t.kind == Kind::Request) else { return };
        let (Some(page), Some(guard)) = (&ticket.job, &ticket.lease) else { return };
        if !guard.serves(now + MARGIN) {
            return;
        }
        let grant = guard.grant();
        let waiting = self.waiting_slots.get(&grant.identity.site);
        let mut kept = 0;
        for job in jobs.iter_mut().filter(|job| job.request.keeps_lease()) {
            // A request that names another site or client does not mean this lease.
            let own = job.request.lease_target();
            let names_another = own.is_some() && own != page.request.lease_target();
            if names_another || self.kept.0.contains_key(&job.id) || !(self.config.stays)(page, job.url()) {
                continue;
            }
            let priority = job.request.priority_value().saturating_add(FIRST);
            job.request.priority(priority);
            let slot = SlotKey::of(job.url());
            if waiting.is_some_and(|slots| slots.contains(&slot)) && !ticket.lifts.contains(&slot) {
                ticket.lifts.push(slot);
            }
            self.kept.0.insert(job.id, guard.share());
            kept += 1;
        }
        if kept == 0 {
            return;
        }
        self.stats.add("lease/kept", kept);
        if !guard.is_renewed() {
            guard.note_renewed();
            let at = grant.expires_at.checked_sub(grant.renew_before).unwrap_or(grant.expires_at);
            let (lease, tag, expires_at) = (grant.lease.clone(), ticket.tag, grant.expires_at);
            self.acts.push(Act::BrokerControl(BrokerControl::Renew { lease, tag, at, expires_at }));
        }
    }

    /// Keeps the lease of a hop that has to wait in the queue, unless it waits for so long that others need the identity
    /// more. In a fleet another worker may take the hop, and knows nothing of the lease.
    pub(super) fn keep_hop(&mut self, id: u64, wait: Duration, now: Instant) {
        if !self.phase.pulls() || self.config.is_shared || wait > KEPT_FOR_HOP {
            return;
        }
        let Some(ticket) = self.tickets.get_mut(&id) else { return };
        let (Some(job), Some(guard)) = (&mut ticket.job, ticket.lease.take_if(|guard| guard.serves(now + MARGIN))) else {
            return;
        };
        let job = Arc::make_mut(job);
        job.request.keep_lease();
        let priority = job.request.priority_value().saturating_add(FIRST);
        job.request.priority(priority);
        if !guard.is_renewed() {
            guard.note_renewed();
            let grant = guard.grant();
            let at = grant.expires_at.checked_sub(grant.renew_before).unwrap_or(grant.expires_at);
            let (lease, tag, expires_at) = (grant.lease.clone(), ticket.tag, grant.expires_at);
            self.acts.push(Act::BrokerControl(BrokerControl::Renew { lease, tag, at, expires_at }));
        }
        self.stats.inc("lease/kept");
        self.kept.0.insert(job.id, guard);
    }

    /// What was to follow under the lease is queued: their hosts need not wait for a lease to come back.
    pub(super) fn lift_kept(&mut self, id: u64) {
        let Some(ticket) = self.tickets.get_mut(&id) else { return };
        for slot in std::mem::take(&mut ticket.lifts) {
            self.acts.push(Act::SchedulerControl(SchedulerControl::Lift { scope: Scope::Slot(slot) }));
        }
    }

    /// The frontier dropped these: their shares come back.
    pub(super) fn kept_dropped(&mut self, ids: &[RequestId]) {
        for id in ids {
            if let Some(guard) = self.kept.0.remove(id) {
                self.stats.inc("lease/kept_dropped");
                self.end_share(guard);
            }
        }
    }

    /// The share of a job that may go now, if it still serves; a request that wanted one and has none says so once.
    pub(super) fn take_kept(&mut self, job: &mut Job, now: Instant) -> Option<LeaseGuard> {
        if !job.request.keeps_lease() {
            return None;
        }
        job.request.forget_kept_lease();
        match self.kept.0.remove(&job.id) {
            Some(guard) if guard.serves(now + MARGIN) => {
                self.stats.inc("lease/kept_used");
                Some(guard)
            }
            lost => {
                self.stats.inc("lease/kept_lost");
                if let Some(guard) = lost {
                    self.end_share(guard);
                }
                None
            }
        }
    }

    /// No queued request goes any more in this run: every share comes back.
    pub(super) fn end_kept(&mut self) {
        for (_, guard) in std::mem::take(&mut self.kept.0) {
            self.end_share(guard);
        }
    }

    /// A lease could not be renewed: what is on the wire under it is cut off, and nothing new goes under it.
    pub(super) fn renew_failed(&mut self, failed: &RenewFailed) {
        let is_it = |guard: &LeaseGuard| guard.grant().lease == failed.lease;
        let cut_off: Vec<u64> =
            self.tickets.iter().filter(|(_, ticket)| ticket.lease.as_ref().is_some_and(is_it)).map(|(id, _)| *id).collect();
        let queued: Vec<RequestId> = self.kept.0.iter().filter(|(_, guard)| is_it(guard)).map(|(id, _)| *id).collect();
        if cut_off.is_empty() && queued.is_empty() {
            self.tally.stale += 1;
            self.stats.inc("engine/stale_facts");
            return;
        }
        for id in cut_off {
            self.lose_lease(id, &failed.why);
        }
        // Each says so itself when it goes.
        for id in queued {
            if let Some(guard) = self.kept.0.remove(&id) {
                guard.lose();
                self.end_share(guard);
            }
        }
    }
}
