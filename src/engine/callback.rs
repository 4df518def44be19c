//! Ends of callbacks: what they made is committed, a failed one ends its request, a lost one is run again.

use std::time::Duration;

use tokio::time::Instant;

use super::act::Act;
use super::flow::nothing;
use super::hub::Hub;
use super::ticket::{Kind, Tag, Then};
use crate::api::failure::{FailureKind, Fault};
use crate::parser::message::{CallbackFault, Effects, Marks, Order as ParserOrder, Parsed};
use crate::scheduler::job::{Job, Outcome};

impl Hub {
    /// A callback is over.
    pub(super) fn parsed(&mut self, parsed: Parsed, now: Instant) {
        let Some(ticket) = self.current(parsed.tag) else { return };
        if ticket.commit.is_some() {
            ticket.early = Some(Box::new(parsed));
            return;
        }
        let Parsed { tag, mut effects, result, marks, discarded, unknown_step } = parsed;
        let id = tag.ticket;
        if result == Err(CallbackFault::Lost) && self.parse_again(id) {
            return;
        }
        let Some(ticket) = self.tickets.get_mut(&id) else { return };
        ticket.reply = None;
        ticket.share = None;
        let (kind, job, fault) = (ticket.kind, ticket.job.clone(), ticket.fault.clone());
        if result.is_ok() && !unknown_step {
            self.keep(id, &mut effects.jobs, now);
        }
        self.report(id, true, marks);
        if discarded > 0 {
            self.stats.add("engine/discarded_effects", i64::try_from(discarded).unwrap_or(i64::MAX));
        }
        match kind {
            Kind::Start => self.start_over(id, effects, result, now),
            Kind::Idle => self.idle_over(id, effects, result, now),
            Kind::Request => {
                let Some(job) = job else { return };
                let cut_off = result == Err(CallbackFault::Lost) && !self.phase.pulls();
                if cut_off || result == Err(CallbackFault::Cancelled) {
                    // The page was fetched, which its record says; nothing else of it counts, and the next run fetches it again.
                    self.put_back_after_group(id, Duration::ZERO, now);
                    return;
                }
                let outcome = if unknown_step {
                    let step = job.request.step().name();
                    tracing::error!(url = job.url().as_str(), step, "the spider has no such step; the request is set aside");
                    self.stats.inc("engine/set_aside");
                    Outcome::SetAside
                } else {
                    self.callback_over(&job, fault.as_ref(), result, discarded)
                };
                if !matches!(outcome, Outcome::Handled | Outcome::Failed(_) | Outcome::Dropped(_)) {
                    effects = Effects::default();
                }
                self.commit(id, effects, Then::Settle(outcome), now);
            }
        }
    }

    /// Gives a lost callback to a parser again; whether that can be done.
    fn parse_again(&mut self, id: u64) -> bool {
        let cursor = self.seeds_taken;
        let made = self.idle_made;
        let Some(ticket) = self.tickets.get_mut(&id) else { return false };
        // `start` leaves out what was taken; anything else begins anew.
        let committed = if ticket.kind == Kind::Start { self.start_gave_items } else { ticket.parts > 0 };
        if committed || !self.phase.pulls() {
            return false;
        }
        ticket.tag.epoch += 1;
        let tag = ticket.tag;
        let order = match (ticket.kind, ticket.job.clone(), ticket.fault.clone(), ticket.reply.clone()) {
            (Kind::Start, ..) => ParserOrder::Start { tag, cursor },
            (Kind::Idle, ..) => ParserOrder::Idle { tag, made },
            (Kind::Request, Some(job), Some(fault), reply) => {
                ParserOrder::Failed { tag, job, fault, reply, attempt: ticket.attempt.clone() }
            }
            (Kind::Request, Some(job), None, Some(reply)) => {
                ParserOrder::Page { tag, job, reply, attempt: ticket.attempt.clone().unwrap_or_else(nothing) }
            }
            (Kind::Request, ..) => return false,
        };
        let to = (ticket.kind != Kind::Request).then_some(0);
        self.stats.inc("engine/reissued");
        self.acts.push(Act::Parser(to, order));
        true
    }

    fn callback_over(&mut self, job: &Job, fault: Option<&Fault>, result: Result<(), CallbackFault>, discarded: u64) -> Outcome {
        if let Err(error) = result {
            let limits = (self.config.callback_timeout, self.config.parse_stall);
            let text = crate::parser::fault_text(&error, limits);
            let step = job.request.step().name();
            let exception = format!("{}: {text}", error.class());
            tracing::error!(url = job.url().as_str(), step, discarded, exception, "callback failed");
            self.tally.callback_errors += 1;
            self.stats.inc("spider_exceptions/count");
            self.stats.inc(format!("spider_exceptions/{}", error.class()));
            if fault.is_none() {
                let fault = Fault::new(FailureKind::Callback, format!("{step}: {text}"));
                return self.ended_as(job, &fault);
            }
        }
        match fault {
            Some(fault) => self.ended_as(job, fault),
            None => Outcome::Handled,
        }
    }

    /// Counts and logs a request's bad end.
    pub(super) fn ended_as(&mut self, job: &Job, fault: &Fault) -> Outcome {
        let url = job.url().as_str();
        if fault.kind.is_drop() {
            self.stats.inc(format!("engine/dropped/{}", fault.kind));
            tracing::debug!(url, reason = fault.message, "request dropped");
            return Outcome::Dropped(fault.kind);
        }
        self.tally.failed += 1;
        self.tally.unreachable += u64::from(fault.kind.is_unreachable());
        self.stats.inc(format!("engine/failed/{}", fault.kind));
        self.failures.note(&format!("{}: {}", fault.kind.error_class(), fault.message), url);
        if fault.kind == FailureKind::HttpStatus {
            tracing::info!(url, reason = fault.message, "response ignored");
        } else if fault.kind != FailureKind::Callback {
            tracing::error!(url, kind = fault.kind.name(), reason = fault.message, attempts = job.attempts, "request failed");
        }
        Outcome::Failed(fault.kind)
    }

    /// A parser lost these tickets: its incarnation is gone. The one that ran last failed; the others are given
    /// out again, unless they have committed a part: that would be done twice.
    pub(crate) fn lost_by_parser(&mut self, last: Option<Tag>, fault: &CallbackFault, others: &[Tag], now: Instant) {
        let last = last.into_iter().map(|tag| (tag, fault));
        for (tag, fault) in last.chain(others.iter().map(|tag| (*tag, &CallbackFault::Lost))) {
            if self.tickets.get(&tag.ticket).is_some_and(|t| t.tag == tag) {
                let parsed = Parsed {
                    tag,
                    effects: Effects::default(),
                    result: Err(fault.clone()),
                    marks: Marks::default(),
                    discarded: 0,
                    unknown_step: false,
                };
                self.parsed(parsed, now);
            }
        }
    }
}
