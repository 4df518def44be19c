//! The scheduler: which request goes next, and when.
//!
//! The actor is a thin shell: it moves messages and the time into the [`Frontier`], and its facts out, once
//! per turn, so that a turn's jobs travel together. The frontier outlives it. The scheduler never fetches,
//! never leases, and never knows what becomes of a request before it is settled.
//!
//! Every job in a [`message::Ready`] uses one credit, those that robots.txt forbids included. After
//! [`message::Control::Stop`] no queued job goes, but hops do, as parts of downloads under way.

mod clock;
mod config;
mod counters;
pub mod disk;
mod frontier;
pub(crate) mod index;
pub mod job;
mod memory;
pub mod message;
#[cfg(test)]
pub(crate) mod model;
pub(crate) mod record;
pub mod redis;
mod robots_gate;
mod scope;
mod slots;
pub mod store;
#[cfg(test)]
pub(crate) mod suite;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

pub use self::clock::Clock;
pub use self::config::SchedulerConfig;
pub use self::frontier::Frontier;
pub use self::memory::MemoryStore;
use self::message::{Control, Order};
use crate::actor::{Cx, Facts, Slot, Timer, Worker};
use crate::engine::message::Fact;

/// The actor.
#[derive(Debug)]
pub struct Scheduler {
    frontier: Arc<Mutex<Frontier>>,
    engine: Facts<Fact>,
    timer: Option<(Instant, Timer)>,
}

impl Scheduler {
    /// A scheduler over `frontier`, which tells `engine`. A successor gets the same frontier.
    #[must_use]
    pub const fn new(frontier: Arc<Mutex<Frontier>>, engine: Facts<Fact>) -> Self {
        Self { frontier, engine, timer: None }
    }

    fn frontier(&self) -> MutexGuard<'_, Frontier> {
        // Nobody else uses it while this actor lives; after a panic its successor makes do with what is there.
        self.frontier.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end_turn(&mut self, cx: &mut Cx<'_, Self>) {
        let now = Instant::now();
        let turn = self.frontier().turn(now);
        self.engine.post_all(turn.facts);
        if self.timer.map(|(at, _)| at) == turn.wake {
            return;
        }
        if let Some((_, timer)) = self.timer.take() {
            cx.cancel(timer);
        }
        self.timer = turn.wake.map(|at| (at, cx.after(at.saturating_duration_since(now), Control::Tick)));
    }
}

impl Worker for Scheduler {
    type Order = Order;
    type Control = Control;

    fn started(&mut self, cx: &mut Cx<'_, Self>) {
        self.end_turn(cx);
    }

    fn handle(&mut self, order: Order, _slot: Slot, _cx: &mut Cx<'_, Self>) {
        self.frontier().order(order, Instant::now());
    }

    fn control(&mut self, control: Control, _cx: &mut Cx<'_, Self>) {
        if matches!(control, Control::Tick) {
            self.timer = None;
        }
        self.frontier().control(control, Instant::now());
    }

    fn turn_end(&mut self, cx: &mut Cx<'_, Self>) {
        self.end_turn(cx);
    }
}
