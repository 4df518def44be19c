//! The reporter: hands the reports of attempts to the control plane in batches, those of one lease in order.
//!
//! Never drops a report: while the plane is unavailable they stay queued, and a full queue is a full link. A few calls
//! may be out, since a lease is over for the plane only with its last report; [`queue`] has the rules.
//! The queue lives outside the actor and survives its panic, and so do the answers to calls that are out.

mod backoff;
mod error_kind;
pub mod message;
pub mod queue;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use self::backoff::wait;
pub use self::error_kind::error_kind;
use self::message::{Control, Fact, Order};
use self::queue::{CallId, Due, Haste, Limits, Queue};
use crate::actor::{Controls, Cx, Facts, Slot, Timer, Worker};
use crate::api::stats::Stats;
use crate::broker::{Call, Net};
use crate::dice::Dice;
use crate::engine;
use crate::plane::{ControlPlane, PlaneError, Taken};

/// What a reporter is made of. The same parts make its successor, which goes on with the same queue.
#[derive(Clone)]
pub struct Parts {
    /// The control plane.
    pub plane: Arc<dyn ControlPlane>,
    /// The way to the engine.
    pub engine: Facts<engine::message::Fact>,
    /// Where calls run that are not answered at once.
    pub net: Net,
    /// `reporter/…` counters.
    pub stats: Stats,
    /// The reports not handed over yet.
    pub backlog: Backlog,
    /// `REPORT_BATCH`: most reports in a call.
    pub batch: usize,
    /// `REPORT_FLUSH`: how long a report waits for others.
    pub flush: Duration,
    /// For the jitter of waits.
    pub seed: u64,
}

/// The reports not handed over yet; clones are the same. The inbox's bound (`REPORT_QUEUE`) bounds them.
#[derive(Clone, Default)]
pub struct Backlog(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    queue: Queue<Slot>,
    /// How calls ended, until an incarnation has dealt with it.
    answers: Vec<(CallId, Answer)>,
    /// When calls began that are known to wait; kept for their answers.
    begun: Vec<(CallId, Instant)>,
    /// A call is being begun, and whoever does so looks for answers then: no tick is needed.
    beginning: bool,
}

type Answer = Result<Taken, PlaneError>;

impl Backlog {
    /// Reports not handed over yet, those of calls under way included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.state().queue.len()
    }

    /// Whether every report was handed over or rejected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The queue's methods leave it whole at every point where they could panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Leaves the answer of a call in the backlog, also when the call is dropped or panics: then it failed.
struct Leave {
    call: CallId,
    backlog: Backlog,
    reporter: Controls<Control>,
    answer: Option<Answer>,
}

impl Drop for Leave {
    fn drop(&mut self) {
        let gone = || Err(PlaneError::Unavailable("the call was broken off".to_owned()));
        let beginning = {
            let mut state = self.backlog.state();
            let answer = self.answer.take().unwrap_or_else(gone);
            state.answers.push((self.call, answer));
            state.beginning
        };
        if !beginning {
            self.reporter.tell(Control::Tick);
        }
    }
}

/// The actor.
pub struct Reporter {
    parts: Parts,
    limits: Limits,
    dice: Dice,
    tick: Option<(Instant, Timer)>,
    /// Haste was asked for, and reports from before that may still be in the lane.
    haste: Haste,
    /// The plane is behind a network: whether it answers is news.
    is_remote: bool,
}

impl Reporter {
    /// A reporter of `parts`, with whatever their backlog holds.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        let limits = Limits { batch: parts.batch.max(1), flush: parts.flush };
        let is_remote = parts.plane.is_remote();
        Self { limits, dice: Dice::new(parts.seed), tick: None, haste: Haste::None, is_remote, parts }
    }

    /// Deals with the answers there may be and makes the calls that are due.
    fn pump(&mut self, cx: &mut Cx<'_, Self>) {
        loop {
            let backlog = self.parts.backlog.clone();
            let due = {
                let mut state = backlog.state();
                // An incarnation whose call panicked did not get there.
                state.beginning = false;
                for (call, answer) in std::mem::take(&mut state.answers) {
                    let begun = state.begun.iter().position(|(id, _)| *id == call).map(|at| state.begun.swap_remove(at).1);
                    self.settle(&mut state.queue, call, answer, begun);
                }
                state.queue.due(self.limits, Instant::now())
            };
            match due {
                Due::Now if self.call(cx) => {}
                Due::Now | Due::No => return self.disarm(cx),
                Due::At(at) => return self.arm(at, cx),
            }
        }
    }

    /// Makes a call; whether there is an answer already, to this one or another.
    fn call(&mut self, cx: &mut Cx<'_, Self>) -> bool {
        let (call, reports) = {
            let mut state = self.parts.backlog.state();
            let Some(next) = state.queue.call(self.limits) else { return false };
            state.beginning = true;
            next
        };
        let plane = Arc::clone(&self.parts.plane);
        let mut leave = Leave { call, backlog: self.parts.backlog.clone(), reporter: cx.controls(), answer: None };
        let begun = Instant::now();
        if self.is_remote {
            self.parts.stats.inc("reporter/calls");
        }
        let run = self.parts.net.run(async move {
            leave.answer = Some(plane.report(reports).await);
            drop(leave);
        });
        let mut state = self.parts.backlog.state();
        if let Call::Waiting(waiting) = run {
            if self.is_remote {
                state.begun.push((call, begun));
            }
            cx.spawn(waiting, |_, _, _| {}); // the answer is in the backlog, and a tick says so
        }
        state.beginning = false;
        !state.answers.is_empty()
    }

    /// Deals with the answer of a call; `begun` where it had to wait, as every call over a network does.
    fn settle(&mut self, queue: &mut Queue<Slot>, call: CallId, answer: Answer, begun: Option<Instant>) {
        let stats = &self.parts.stats;
        let count = |name: &'static str, by: u64| {
            if by > 0 {
                stats.add(name, i64::try_from(by).unwrap_or(i64::MAX));
            }
        };
        let settled = match answer {
            Ok(taken) => {
                count("reporter/duplicated", taken.duplicated);
                queue.taken(call, taken.rejected)
            }
            Err(e @ (PlaneError::Unavailable(_) | PlaneError::Unauthorized(_))) => {
                let now = Instant::now();
                if let Some(failures) = queue.failed(call) {
                    queue.hold_until(now.checked_add(wait(failures, &mut self.dice)).unwrap_or(now));
                }
                stats.inc("reporter/retries");
                let (queued, why) = (queue.len(), e.to_string());
                let fact = match e {
                    PlaneError::Unauthorized(_) => Fact::Unauthorized(why),
                    _ => Fact::Delayed { queued, why, begun: begun.unwrap_or(now) },
                };
                self.parts.engine.post(engine::message::Fact::Reporter(fact));
                return;
            }
            // No repetition of this very call will be taken.
            Err(e) => queue.refused(call, &e.to_string()),
        };
        stats.add("reporter/reports", i64::try_from(settled.handed).unwrap_or(i64::MAX));
        let mut facts = Vec::with_capacity(3 + settled.rejected.len());
        if begun.is_some() {
            facts.push(Fact::Heard);
        }
        facts.push(Fact::Through(queue.through()));
        if settled.handed > 0 {
            facts.push(Fact::Handed { reports: settled.handed, ends: settled.ends });
        }
        count("reporter/rejected", settled.rejected.len() as u64);
        count("reporter/unknown_to_plane", settled.rejected.iter().filter(|(no, _)| no.is_unknown_lease).count() as u64);
        facts.extend(settled.rejected.into_iter().map(|(rejected, ends)| Fact::Rejected { rejected, ends }));
        self.parts.engine.post_all(facts.into_iter().map(engine::message::Fact::Reporter));
    }

    fn arm(&mut self, at: Instant, cx: &mut Cx<'_, Self>) {
        if self.tick.is_some_and(|(armed, _)| armed == at) {
            return;
        }
        self.disarm(cx);
        let timer = cx.after(at.saturating_duration_since(Instant::now()), Control::Tick);
        self.tick = Some((at, timer));
    }

    fn disarm(&mut self, cx: &mut Cx<'_, Self>) {
        if let Some((_, timer)) = self.tick.take() {
            cx.cancel(timer);
        }
    }
}

impl Worker for Reporter {
    type Order = Order;
    type Control = Control;

    fn started(&mut self, cx: &mut Cx<'_, Self>) {
        self.pump(cx);
    }

    fn handle(&mut self, order: Order, slot: Slot, _: &mut Cx<'_, Self>) {
        match order {
            Order::Report(report) => self.parts.backlog.state().queue.push(report, slot, Instant::now()),
        }
    }

    fn control(&mut self, control: Control, _: &mut Cx<'_, Self>) {
        match control {
            Control::Flush => self.haste = self.haste.max(Haste::Flush),
            Control::HandOver => self.haste = Haste::HandOver,
            Control::Tick => {} // the end of the turn looks at the clock
        }
    }

    fn turn_end(&mut self, cx: &mut Cx<'_, Self>) {
        let queued = {
            let mut state = self.parts.backlog.state();
            if self.haste != Haste::None {
                // The command overtook the reports that were sent before it.
                state.queue.hurry(self.haste);
                if cx.queued() == 0 {
                    self.haste = Haste::None;
                }
            }
            state.queue.len()
        };
        self.parts.stats.max("reporter/queue_max", i64::try_from(queued).unwrap_or(i64::MAX));
        self.pump(cx);
    }
}

impl fmt::Debug for Backlog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backlog").field("reports", &self.len()).finish()
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts")
            .field("net", &self.net)
            .field("backlog", &self.backlog)
            .field("batch", &self.batch)
            .field("flush", &self.flush)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reporter").field("parts", &self.parts).finish_non_exhaustive()
    }
}
