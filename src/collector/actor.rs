//! The collector's actor: gathers in a turn what its end writes with one call to the system.
//!
//! All state is [`CollectorState`], shared by the incarnations; here are only the lines to the peers and the timer.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::closing::Phase;
use super::message::{Control, Order};
use super::state::CollectorState;
use crate::actor::{Controls, Cx, Facts, Link, Slot, Timer, Worker};
use crate::courier::message::{Control as ToCourier, Order as Parcel};
use crate::engine::message::Fact;

/// Keeps records and hands them to the courier in batches.
pub struct Collector {
    state: Arc<Mutex<CollectorState>>,
    engine: Facts<Fact>,
    courier: Link<Parcel>,
    courier_controls: Controls<ToCourier>,
    armed: Option<(Instant, Timer)>,
}

impl Collector {
    /// An incarnation that goes on with a state. The collector is the only one who sends to the courier's link.
    #[must_use]
    pub fn new(
        state: Arc<Mutex<CollectorState>>,
        engine: Facts<Fact>,
        courier: Link<Parcel>,
        courier_controls: Controls<ToCourier>,
    ) -> Self {
        Self { state, engine, courier, courier_controls, armed: None }
    }

    /// After a panic the state is good: each step is noted in it as soon as it is done.
    fn state(&self) -> MutexGuard<'_, CollectorState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&mut self, cx: &mut Cx<'_, Self>) {
        let now = Instant::now();
        let mut state = self.state();
        let due = state.turn(now, cx.queued(), &self.courier);
        let facts = std::mem::take(&mut state.facts);
        drop(state);
        if !facts.is_empty() {
            self.engine.post_all(facts.into_iter().map(Fact::Collector));
        }
        match (self.armed, due) {
            (Some((at, _)), Some(due)) if at <= due => {}
            (armed, due) => {
                if let Some((_, timer)) = armed {
                    cx.cancel(timer);
                }
                self.armed = due.map(|due| (due, cx.after(due.saturating_duration_since(now), Control::Tick)));
            }
        }
    }

    fn hurry_courier(&self) {
        let left = match &self.state().phase {
            Phase::Closing(close) => close.time_left(Instant::now()),
            Phase::Open | Phase::Closed(_) => return,
        };
        self.courier_controls.tell(ToCourier::CloseWithin(left));
    }
}

impl Worker for Collector {
    type Order = Order;
    type Control = Control;

    fn started(&mut self, cx: &mut Cx<'_, Self>) {
        self.hurry_courier();
        self.turn(cx);
    }

    fn handle(&mut self, order: Order, slot: Slot, _: &mut Cx<'_, Self>) {
        let Order::Group(group) = order;
        self.state().gather(group, slot);
    }

    fn control(&mut self, control: Control, _: &mut Cx<'_, Self>) {
        match control {
            Control::Settled(requests) => self.state().settle(&requests),
            Control::CloseWithin(limit) => {
                self.state().hurry(limit, Instant::now());
                self.hurry_courier();
            }
            Control::Close(stats) => {
                self.state().close(stats, Instant::now());
                self.hurry_courier();
            }
            Control::Courier(report) => self.state().hear(report),
            Control::Tick => self.armed = None,
        }
    }

    fn turn_end(&mut self, cx: &mut Cx<'_, Self>) {
        self.turn(cx);
    }
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector").field("courier", &self.courier).finish_non_exhaustive()
    }
}
