//! Request records that no callback's group takes along: those of tickets given up, of redirects, and of answers on which
//! nothing follows in this run.

use std::sync::Arc;

use super::act::Act;
use super::hub::Hub;
use super::record;
use super::ticket::{Answered, State, Tag, Ticket};
use crate::api::failure::Fault;
use crate::collector::message::{Group, Order as CollectorOrder};
use crate::downloader::message::Attempt;
use crate::settings::RequestRecords;

/// Records in one group of those that are owed at the end.
const OWED_PER_GROUP: usize = 100;

impl Hub {
    /// Whether an answer on which another attempt or hop follows leaves a record. When the job stops, none follows
    /// in this run.
    pub(super) fn records_every_answer(&self) -> bool {
        self.config.request_records == RequestRecords::All || !self.phase.pulls()
    }

    /// Orders the records of a ticket that is given up; nobody waits for them to be kept.
    pub(super) fn order_last_records(&mut self, id: u64) {
        let every_answer = self.records_every_answer();
        let Some(ticket) = self.tickets.get_mut(&id) else { return };
        if let (State::Fetching, Some(job), Some(Attempt { fault: Some(fault), sent_at: Some(_), status, latency, .. })) =
            (ticket.state, &ticket.job, &ticket.attempt)
        {
            ticket.records.push(record::text(job, *status, Some(fault), *latency));
        }
        // A hop that never went out leaves the answer that led to it.
        let is_unsent = match ticket.state {
            State::Pacing | State::Leasing | State::Ready => true,
            State::Fetching => ticket.records.is_empty(),
            State::Parsing | State::Committing => false,
        };
        if is_unsent && every_answer {
            record_hop(ticket, None);
        } else if is_unsent && let (Some(answered), Some(job)) = (ticket.before.take(), &ticket.job) {
            self.owed.insert(job.id, answered.record(None));
        }
        if ticket.records.is_empty() {
            return;
        }
        let records = std::mem::take(&mut ticket.records);
        let group = Group { tag: ticket.tag, part: ticket.parts, items: Vec::new(), records, end: None };
        if let Some(job) = &ticket.job {
            self.owed.remove(&job.id);
        }
        self.acts.push(Act::Collector(CollectorOrder::Group(Arc::new(group))));
    }

    /// Orders the records of answers on which nothing follows in this run. Nobody waits for them either.
    pub(super) fn order_owed_records(&mut self) {
        let mut owed: Vec<_> = std::mem::take(&mut self.owed).into_iter().collect();
        owed.sort_unstable();
        let mut records = owed.into_iter().map(|(_, record)| record).peekable();
        while records.peek().is_some() {
            self.next_ticket += 1;
            let tag = Tag { ticket: self.next_ticket, epoch: 0 };
            let records = records.by_ref().take(OWED_PER_GROUP).collect();
            let group = Group { tag, part: 0, items: Vec::new(), records, end: None };
            self.acts.push(Act::Collector(CollectorOrder::Group(Arc::new(group))));
        }
    }
}

/// The record of the redirect that led to a ticket's URL, once.
pub(super) fn record_hop(ticket: &mut Ticket, fault: Option<&Fault>) {
    if let Some(answered) = ticket.before.take() {
        ticket.records.push(answered.record(fault));
    }
}

impl Answered {
    fn record(&self, fault: Option<&Fault>) -> String {
        record::text(&self.job, self.status, fault, self.took)
    }
}
