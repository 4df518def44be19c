//! The fleet: what other workers of the job, and the server they share, mean for this one.
//!
//! Nothing here is known to a job that has its frontier for itself.

use tokio::time::Instant;

use super::act::Act;
use super::hub::Hub;
use super::message::StopReason;
use super::ticket::{Kind, State};
use crate::parser::message::Order as ParserOrder;
use crate::scheduler::message::{Control as SchedulerControl, Fleet, Order, Rest};

/// The finish reason of a job that was stopped as a whole, by hand.
pub(crate) const SHUTDOWN: &str = "shutdown";

/// Limits that say something of one process only: its memory, or that it found no items, which others may.
const OF_ONE_WORKER: [&str; 3] = ["memusage_exceeded", "closespider_timeout_no_item", "closespider_pagecount_no_item"];

impl Hub {
    /// Something happened to the fleet.
    pub(super) fn fleet(&mut self, news: Fleet, now: Instant) {
        match news {
            Fleet::Elected { cursor } if self.phase.pulls() && self.seeds_done => {
                tracing::info!(cursor, "this worker makes the start requests");
                self.run_start(cursor, now);
            }
            Fleet::Elected { .. } => {}
            Fleet::IdleFrom(made) => self.idle_made = self.idle_made.max(made),
            Fleet::Stops(reason) => self.stop(StopReason::Fleet(reason), now),
            Fleet::Lost(why) => self.stop(StopReason::FrontierLost(why), now),
        }
    }

    /// Begins `start`, unless another worker may have to.
    pub(super) fn begin_start(&mut self, now: Instant) {
        if self.config.is_shared {
            self.seeds_done = true;
            self.rest = Rest::Elsewhere;
        } else {
            self.run_start(self.config.cursors.start, now);
        }
    }

    fn run_start(&mut self, cursor: u64, now: Instant) {
        self.seeds_done = false;
        self.seeds_taken = cursor;
        let tag = self.open(Kind::Start, State::Parsing, now);
        self.acts.push(Act::Parser(Some(0), ParserOrder::Start { tag, cursor }));
    }

    /// `start` is over for good: no other worker has to run it again.
    pub(super) fn start_is_over(&mut self) {
        if self.config.is_shared {
            self.scheduler(Order::StartOver);
        }
    }

    /// `idle` has returned and what it made is taken in. When that was nothing the job ends, which says it all.
    pub(super) fn idle_is_over(&mut self) {
        self.idle_answered = self.idle_stored == 0;
        if self.config.is_shared && !self.idle_answered {
            self.scheduler(Order::IdleOver);
        }
    }

    /// Tells the other workers of an end that is theirs too.
    pub(super) fn tell_fleet(&mut self, reason: &StopReason) {
        let control = match reason {
            _ if !self.config.is_shared => return,
            StopReason::Finished => SchedulerControl::Finish,
            StopReason::Limit(name) if OF_ONE_WORKER.contains(name) => return,
            StopReason::Limit(_) | StopReason::Spider(_) => SchedulerControl::StopAll { reason: self.reason_of(reason) },
            // A worker that is told to leave, that is over a limit of its own, or that cannot go on, leaves the others at work.
            _ => return,
        };
        self.acts.push(Act::SchedulerControl(control));
    }
}
