//! How leases go on and end (wire contract, section 22).

use super::site::{Holding, Outside, Site};
use crate::plane::model::Ms;
use crate::plane::model::lease::{Ended, LeaseKey, LeaseState, REAP_BATCH, RenewError, ReuseScope};
use crate::plane::model::lease_id::LeaseId;

impl Site {
    /// Prolongs a lease; answers its new expiry.
    pub(super) fn renew(&mut self, id: LeaseId, extend: Ms, now: Ms) -> Result<Ms, RenewError> {
        let (holding, until) = self.leases.renew(id, extend, now).map(|(_, lease)| (lease.holding, lease.until()))?;
        if let Some(identity) = self.identities.get_mut(holding.identity as usize) {
            identity.occupancy.prolong(holding.concurrent, until);
        }
        self.requeue(holding.identity, holding.group, now);
        Ok(until)
    }

    /// Releases a lease: whether it ended now, or nothing when it is not known.
    pub(super) fn release(&mut self, id: LeaseId, now: Ms) -> Option<bool> {
        match self.leases.release(id, now)? {
            Ended::Before => Some(false),
            Ended::Now(key) => {
                self.after_end(key, now, now);
                Some(true)
            }
        }
    }

    /// Releases the lease of a report, if it is still active.
    pub(super) fn release_at(&mut self, key: LeaseKey, now: Ms) {
        if self.leases.release_at(key, now) {
            self.after_end(key, now, now);
        }
    }

    /// Takes back a lease that was never delivered: its quota, its probe, its rest.
    pub(super) fn abort(&mut self, key: LeaseKey, now: Ms) {
        if !self.leases.abort(key, now) {
            return;
        }
        let Some(holding) = self.leases.get(key).map(|lease| lease.holding) else { return };
        if let (Some(identity), Some(group)) =
            (self.identities.get_mut(holding.identity as usize), self.groups.get_mut(holding.group as usize))
        {
            let state = group.states.entry(holding.identity);
            state.quota.give_back(holding.acquired);
            holding.mark.undo(match holding.reuse.scope {
                ReuseScope::EndpointGroup => &mut state.reuse,
                ReuseScope::Site => &mut identity.site_reuse,
            });
            if let Some(span) = holding.probe {
                group.breaker.return_probe(span);
            }
            identity.books.released += 1;
        }
        self.give_back(holding, now);
    }

    /// Ends leases whose time is over, as the reaper does.
    pub(super) fn reap(&mut self, outside: &Outside<'_>) {
        let now = outside.now;
        while self.leases.next_due().is_some_and(|due| due <= now) {
            let mut ended = std::mem::take(&mut self.scratch.ended);
            ended.clear();
            let many = self.leases.reap(now, REAP_BATCH, &mut ended);
            for key in &ended {
                let end = self.leases.get(*key).map_or(now, |lease| lease.until());
                self.after_end(*key, end, now);
            }
            self.scratch.ended = ended;
            if many < REAP_BATCH {
                break;
            }
        }
    }

    fn after_end(&mut self, key: LeaseKey, end: Ms, now: Ms) {
        let Some((holding, state)) = self.leases.get(key).map(|lease| (lease.holding, lease.state())) else { return };
        if let (Some(identity), Some(group)) =
            (self.identities.get_mut(holding.identity as usize), self.groups.get_mut(holding.group as usize))
        {
            match holding.reuse.scope {
                ReuseScope::EndpointGroup => holding.reuse.end(&mut group.states.entry(holding.identity).reuse, end),
                ReuseScope::Site => holding.reuse.end(&mut identity.site_reuse, end),
            }
            match state {
                LeaseState::Expired => identity.books.expired += 1,
                LeaseState::Active | LeaseState::Released => identity.books.released += 1,
            }
        }
        self.give_back(holding, now);
    }

    /// What every end gives back: the identity's place and the proxy's.
    fn give_back(&mut self, holding: Holding, now: Ms) {
        if let Some(proxy) = holding.proxy {
            self.pool.end(proxy, now);
        }
        let Some(identity) = self.identities.get_mut(holding.identity as usize) else { return };
        identity.occupancy.end();
        if identity.is_pushed {
            self.enqueue(holding.identity, now);
        } else {
            self.place(holding.identity, holding.group, now);
        }
    }
}
