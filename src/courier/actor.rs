//! The courier's actor: timers and turns around [`CourierState`].
//!
//! It lives on the delivery thread, where a call of the sink may block; between two batches the other actors of that
//! thread get their turn.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::delivery::{CourierState, Step};
use super::message::{Control, Order};
use crate::actor::{Controls, Cx, Slot, Timer, Worker};
use crate::collector::message::Control as ToCollector;

/// Delivers batches in order.
pub struct Courier {
    state: Arc<Mutex<CourierState>>,
    collector: Controls<ToCollector>,
    timer: Option<Timer>,
    /// A look at the queue is due in the next round of this thread.
    going: bool,
}

impl Courier {
    /// An incarnation that goes on with a state and answers to a collector.
    #[must_use]
    pub fn new(state: Arc<Mutex<CourierState>>, collector: Controls<ToCollector>) -> Self {
        Self { state, collector, timer: None, going: false }
    }

    /// The state is good after a panic: it is changed only before and after calls of the sink.
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
            courier.step(cx);
        });
    }

    fn step(&mut self, cx: &mut Cx<'_, Self>) {
        if let Some(timer) = self.timer.take() {
            cx.cancel(timer);
        }
        let step = self.state().step(Instant::now());
        match step {
            Step::Idle => {}
            Step::Again => self.go(cx),
            Step::Settled(settled) => {
                self.collector.tell(ToCollector::Courier(settled));
                if self.state().queued() > 0 {
                    self.go(cx);
                }
            }
            Step::Wait(at) => {
                self.timer = Some(cx.after(at.saturating_duration_since(Instant::now()), Control::Retry));
            }
        }
    }
}

impl Worker for Courier {
    type Order = Order;
    type Control = Control;

    fn started(&mut self, cx: &mut Cx<'_, Self>) {
        self.state().recover(Instant::now());
        self.go(cx);
    }

    fn handle(&mut self, order: Order, slot: Slot, cx: &mut Cx<'_, Self>) {
        let Order::Cut(batch) = order;
        self.state().take(batch, slot);
        // A batch that waits for its next try keeps its place: order is kept.
        if self.timer.is_none() {
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
