//! Places: what has its lease goes on the wire when there is room for it.
//!
//! With a plane in this process the scheduler's places and `CONCURRENT_REQUESTS` are those of the wire, and a leased
//! request goes at once. With one behind a network leases are asked for ahead, so more requests are out than there are places:
//! here each waits for its own, for a few milliseconds, under its lease.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::act::Act;
use super::hub::Hub;
use super::kept::MARGIN;
use super::ticket::State;
use crate::scheduler::job::JobKind;
use crate::scheduler::message::Control as SchedulerControl;

impl Hub {
    /// Frees the ticket's place of its slot.
    pub(super) fn free_slot(&mut self, ticket: u64) {
        let freed = self.tickets.get_mut(&ticket).and_then(|t| Some((t.slot.take()?, t.job.as_ref()?.id, t.wants_sent)));
        if let Some((slot, id, unsent)) = freed {
            self.acts.push(Act::Scheduler(crate::scheduler::message::Order::Freed { id, slot, unsent }));
        }
    }

    /// The ticket has its lease: it goes on the wire, now or at the end of this turn or when there is a place.
    pub(super) fn go(&mut self, id: u64, now: Instant) {
        if self.is_before_its_time(id, now) {
            self.free_slot(id);
            self.put_back_after_group(id, Duration::ZERO, now);
            return;
        }
        let Some(ahead) = &mut self.ahead else {
            self.fetch(id, now);
            return;
        };
        ahead.ready.push_back(id);
        self.enter(id, State::Ready, now);
    }

    /// Lets go who has a lease and now a place, those that wait longest first.
    pub(super) fn go_on(&mut self, now: Instant) {
        let Some(ahead) = self.ahead.as_mut().filter(|ahead| !ahead.ready.is_empty()) else { return };
        let waiting = std::mem::take(&mut ahead.ready);
        let mut left = VecDeque::with_capacity(waiting.len());
        for id in waiting {
            if self.is_before_its_time(id, now) {
                self.free_slot(id);
                self.put_back_after_group(id, Duration::ZERO, now);
                continue;
            }
            let Some(ticket) = self.tickets.get_mut(&id).filter(|t| t.state == State::Ready) else { continue };
            let slot = ticket.slot.as_ref();
            let is_full = self
                .ahead
                .as_ref()
                .zip(slot)
                .is_some_and(|(ahead, slot)| ahead.on_wire(slot) >= self.pacing.of(&slot.0).per_slot);
            let serves = ticket.lease.as_ref().is_some_and(|guard| guard.serves(now + MARGIN));
            if is_full || self.count(State::Fetching) >= self.config.concurrent {
                left.push_back(id);
            } else if serves {
                self.fetch(id, now);
            } else {
                if let Some(guard) = self.tickets.get_mut(&id).and_then(|t| t.lease.take()) {
                    self.end_share(guard);
                }
                self.acquire(id, now);
            }
        }
        if let Some(ahead) = &mut self.ahead {
            ahead.ready = left;
        }
    }

    /// Whether the ticket's job was given out when its host had no delay, and there is one now: several of them would
    /// go at once. Or when its host had not asked for a pause yet.
    fn is_before_its_time(&mut self, id: u64, now: Instant) -> bool {
        let Some(ticket) = self.tickets.get(&id) else { return false };
        let Some(slot) = &ticket.slot else { return false };
        let is_page = ticket.job.as_ref().is_some_and(|job| job.kind != JobKind::Robots);
        (is_page && !ticket.wants_sent && self.pacing.of(&slot.0).is_paced()) || self.pauses.left(slot, now).is_some()
    }

    /// The ticket is on the wire of its slot.
    pub(super) fn takes_place(&mut self, id: u64) {
        let Some(ahead) = &mut self.ahead else { return };
        if let Some(ticket) = self.tickets.get_mut(&id)
            && let Some(slot) = ticket.slot.clone()
        {
            ahead.sent(&slot);
            ticket.on_wire = Some(slot);
        }
    }

    /// The ticket is not on the wire any more.
    pub(super) fn leaves_place(&mut self, id: u64, now: Instant) {
        let Some(ahead) = &mut self.ahead else { return };
        if let Some(ticket) = self.tickets.get_mut(&id)
            && let Some(slot) = ticket.on_wire.take()
        {
            ahead.done(&slot, now.saturating_duration_since(ticket.since));
        }
    }

    /// How many requests may be out, and how many count: those that wait for a lease without end in sight do not.
    pub(super) fn out(&mut self, now: Instant) -> (usize, usize) {
        let counted = self.downloading() - self.count(State::Leasing);
        let leasing = self.count(State::Leasing);
        match &mut self.ahead {
            None => (self.config.concurrent, counted + leasing),
            Some(ahead) => {
                let soon = ahead.soon(now).min(leasing);
                (self.config.concurrent + ahead.beyond(self.config.concurrent), counted + soon)
            }
        }
    }

    /// Tells the scheduler how many jobs a host may have out beyond its places.
    pub(super) fn tell_ahead(&mut self) {
        let Some(ahead) = &mut self.ahead else { return };
        let places = self.config.context.settings().concurrent_requests_per_domain.max(1);
        let more = ahead.beyond(places).min(self.config.acquire_pending);
        // Small changes of the measured times are not worth a command.
        if more > ahead.told || more * 4 < ahead.told * 3 {
            ahead.told = more;
            self.acts.push(Act::SchedulerControl(SchedulerControl::Ahead(more)));
        }
    }

    /// The job stops: nobody waits for a place any more.
    pub(super) fn end_ready(&mut self, now: Instant) {
        let waiting: Vec<u64> = self.ahead.as_mut().map(|ahead| ahead.ready.drain(..).collect()).unwrap_or_default();
        for id in waiting {
            if self.tickets.get(&id).is_some_and(|t| t.state == State::Ready) {
                self.free_slot(id);
                self.put_back_after_group(id, Duration::ZERO, now);
            }
        }
    }
}
