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
#[cfg(feature = "redis")]
pub(crate) mod fleet;
mod frontier;
pub(crate) mod host_pages;
pub(crate) mod index;
mod intake;
pub mod job;
mod memory;
pub mod message;
#[cfg(test)]
pub(crate) mod model;
pub mod pacing;
pub(crate) mod record;
#[cfg(feature = "redis")]
pub mod redis;
mod robots_desk;
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
pub(crate) mod throttle;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

pub use self::clock::Clock;
pub use self::config::SchedulerConfig;
pub use self::frontier::Frontier;
pub(crate) use self::frontier::{Take, Turn};
pub use self::memory::MemoryStore;
use self::message::{Control, Order};
use crate::actor::{Cx, Facts, Slot, Timer, Worker};
use crate::engine::message::Fact;

/// What the actor drives: the frontier of one process, or one that several share.
pub(crate) trait Queue: Send {
    /// Takes an order. Answers come with the turn's end.
    fn order(&mut self, order: Order, now: Instant);

    /// Takes a command.
    fn control(&mut self, control: Control, now: Instant);

    /// Ends a turn: gives out what may go, and everything there is to tell.
    fn turn(&mut self, now: Instant) -> Turn;
}

/// The actor.
pub struct Scheduler {
    frontier: Arc<Mutex<dyn Queue>>,
    engine: Facts<Fact>,
    timer: Option<(Instant, Timer)>,
}

impl Scheduler {
    /// A scheduler over `frontier`, which tells `engine`. A successor gets the same frontier.
    #[must_use]
    pub(crate) const fn new(frontier: Arc<Mutex<dyn Queue>>, engine: Facts<Fact>) -> Self {
        Self { frontier, engine, timer: None }
    }

    fn frontier(&self) -> MutexGuard<'_, dyn Queue + 'static> {
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

impl fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scheduler").field("wakes_at", &self.timer.map(|(at, _)| at)).finish_non_exhaustive()
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
