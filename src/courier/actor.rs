//! The courier's actor: timers, turns and the call under way around [`CourierState`].
//!
//! A call is a future of this actor: while it waits, everything else on the delivery thread goes on. Between two batches
//! the other actors of that thread get their turn.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::{AbortHandle, abortable};
use tokio::time::Instant;

use super::delivery::{CourierState, Step};
use super::message::{Control, Order};
use super::webhook::Pending;
use crate::actor::{Controls, Cx, Slot, Timer, Worker};
use crate::collector::message::Control as ToCollector;

/// Delivers batches in order.
pub struct Courier {
    state: Arc<Mutex<CourierState>>,
    collector: Controls<ToCollector>,
    timer: Option<Timer>,
    /// A look at the queue is due in the next round of this thread.
    going: bool,
    /// Ends the call under way.
    call: Option<AbortHandle>,
    /// The number of the last call: what a call says that was ended is not heard.
    calls: u64,
}

impl Courier {
    /// An incarnation that goes on with a state and answers to a collector.
    #[must_use]
    pub fn new(state: Arc<Mutex<CourierState>>, collector: Controls<ToCollector>) -> Self {
        Self { state, collector, timer: None, going: false, call: None, calls: 0 }
    }

    /// The state is good after a panic: each step is noted in it as soon as it is done.
    fn state(&self) -> MutexGuard<'_, CourierState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the queue looked at once everything else on this thread had its turn.
    fn go(&mut self, cx: &mut Cx<'_, Self>) {
        if std::mem::replace(&mut self.going, true) {
            return;
        }
        cx.spawn(tokio::task::yield_now(), |courier, (), cx| {
            courier.going = false;
            let step = courier.state().step(Instant::now());
            courier.follow(step, cx);
        });
    }

    /// Does what the state said, and tells the collector what came of it.
    fn follow(&mut self, step: Step, cx: &mut Cx<'_, Self>) {
        if let Some(timer) = self.timer.take() {
            cx.cancel(timer);
        }
        match step {
            Step::Idle => {}
            Step::Again => self.go(cx),
            Step::Wait(at) => self.wait(at, cx),
            Step::Call(pending, until) => {
                self.call(pending, cx);
                if let Some(until) = until {
                    self.wait(until, cx);
                }
            }
        }
        let mut state = self.state();
        let (reports, calling) = (state.take_reports(), state.is_calling());
        drop(state);
        if !calling && let Some(call) = self.call.take() {
            call.abort();
        }
        for report in reports {
            self.collector.tell(ToCollector::Courier(report));
        }
    }

    fn wait(&mut self, until: Instant, cx: &mut Cx<'_, Self>) {
        self.timer = Some(cx.after(until.saturating_duration_since(Instant::now()), Control::Look));
    }

    fn call(&mut self, pending: Pending, cx: &mut Cx<'_, Self>) {
        self.calls += 1;
        let serial = self.calls;
        let (call, handle) = abortable(AssertUnwindSafe(pending).catch_unwind());
        self.call = Some(handle);
        cx.spawn(call, move |courier, outcome, cx| {
            let Ok(outcome) = outcome else { return };
            if courier.calls != serial || courier.call.take().is_none() {
                return;
            }
            let now = Instant::now();
            let step = match outcome {
                Ok(answer) => courier.state().answered(answer, now),
                Err(panic) => courier.state().panicked(panic.as_ref(), now),
            };
            courier.follow(step, cx);
        });
    }
}

impl Worker for Courier {
    type Order = Order;
    type Control = Control;

    fn started(&mut self, cx: &mut Cx<'_, Self>) {
        let step = self.state().recover(Instant::now());
        self.follow(step, cx);
    }

    fn handle(&mut self, order: Order, slot: Slot, cx: &mut Cx<'_, Self>) {
        self.state().take(order, slot, Instant::now());
        // A batch that waits for its answer or its next try keeps its place: order is kept.
        if self.timer.is_none() && self.call.is_none() {
            self.go(cx);
        }
    }

    fn control(&mut self, control: Control, cx: &mut Cx<'_, Self>) {
        if let Control::CloseWithin(limit) = control {
            self.state().close_by(Instant::now() + limit);
        }
        self.go(cx);
    }
}

impl fmt::Debug for Courier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Courier").field("state", &*self.state()).finish_non_exhaustive()
    }
}
