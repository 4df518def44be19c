//! Inbox: where an actor's messages wait, and the ends that send into it.
//!
//! An inbox outlives the incarnations that serve it: what is queued when one panics is handled by its
//! successor. [`Tap`] is an inbox without an actor, for a task or a test that takes messages itself.

use std::fmt;
use std::sync::Arc;

use tokio::sync::Notify;

use super::bell::Target;
use super::lane::{Hand, Lanes, Taken};
use super::link::{Controls, Facts, Link};
use super::permits::Slot;
use super::probe::Probe;
use super::{Epoch, Worker};

/// The two lanes of an actor of type `W`; clones are the same inbox.
pub struct Inbox<W: Worker> {
    pub(crate) lanes: Lanes<W::Order, W::Control>,
}

impl<W: Worker> Inbox<W> {
    /// An inbox that takes at most `bound` orders at once, queued and in progress together (at least 1).
    #[must_use]
    pub fn new(name: &'static str, bound: usize) -> Self {
        Self { lanes: Lanes::new(name, bound, Target::Nobody) }
    }

    /// The name given to [`Inbox::new`].
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.lanes.data.name
    }

    /// The bounded end for orders.
    #[must_use]
    pub fn link(&self) -> Link<W::Order> {
        Link::new(Arc::clone(&self.lanes.data))
    }

    /// The end for facts, which answer orders and never wait.
    #[must_use]
    pub fn facts(&self) -> Facts<W::Order> {
        Facts::new(Arc::clone(&self.lanes.data))
    }

    /// The end for commands.
    #[must_use]
    pub fn controls(&self) -> Controls<W::Control> {
        Controls::new(self.name(), Arc::clone(&self.lanes.control))
    }

    /// The gauges of this inbox.
    #[must_use]
    pub fn probe(&self) -> Probe {
        probe(&self.lanes)
    }

    /// Orders and facts queued now.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.lanes.data.depth()
    }

    /// Refuses orders from now on. What is queued is still handled; facts and controls are still taken.
    pub fn close(&self) {
        self.lanes.data.permits.close();
    }
}

impl<W: Worker> Clone for Inbox<W> {
    fn clone(&self) -> Self {
        Self { lanes: self.lanes.clone() }
    }
}

impl<W: Worker> fmt::Debug for Inbox<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("name", &self.name()).field("depth", &self.depth()).finish()
    }
}

/// An inbox served by hand: a scripted peer in a test, or a plain task.
///
/// It has one receiver; two tasks waiting in [`next`](Self::next) at once may miss each other's wake.
pub struct Tap<M, C = ()> {
    lanes: Lanes<M, C>,
    bell: Arc<Notify>,
    hand: Hand,
}

impl<M, C> Tap<M, C> {
    /// A tap whose link holds at most `bound` orders at once (at least 1).
    #[must_use]
    pub fn new(name: &'static str, bound: usize) -> Self {
        let bell = Arc::new(Notify::new());
        let lanes = Lanes::new(name, bound, Target::Task(Arc::clone(&bell)));
        Self { lanes, bell, hand: Hand::default() }
    }

    /// The bounded end for orders.
    #[must_use]
    pub fn link(&self) -> Link<M> {
        Link::new(Arc::clone(&self.lanes.data))
    }

    /// The end for facts.
    #[must_use]
    pub fn facts(&self) -> Facts<M> {
        Facts::new(Arc::clone(&self.lanes.data))
    }

    /// The end for commands.
    #[must_use]
    pub fn controls(&self) -> Controls<C> {
        Controls::new(self.lanes.data.name, Arc::clone(&self.lanes.control))
    }

    /// The gauges of this tap.
    #[must_use]
    pub fn probe(&self) -> Probe {
        probe(&self.lanes)
    }

    /// Takes the oldest order or fact with its slot, if there is one.
    pub fn take(&self) -> Option<(M, Slot)> {
        match self.lanes.data.take(Epoch::default(), &self.hand) {
            Taken::Message(taken) => Some(taken),
            Taken::Empty | Taken::Retired => None,
        }
    }

    /// Takes the oldest command, if there is one.
    pub fn take_control(&self) -> Option<C> {
        match self.lanes.control.take(Epoch::default()) {
            Taken::Message(control) => Some(control),
            Taken::Empty | Taken::Retired => None,
        }
    }

    /// Takes everything queued in the data lane; the slots are given back at once.
    pub fn take_all(&self) -> Vec<M> {
        std::iter::from_fn(|| self.take().map(|(message, _)| message)).collect()
    }

    /// Waits for the next order or fact.
    pub async fn next(&self) -> (M, Slot) {
        loop {
            if let Some(taken) = self.take() {
                return taken;
            }
            self.bell.notified().await;
        }
    }

    /// Waits for the next command.
    pub async fn next_control(&self) -> C {
        loop {
            if let Some(control) = self.take_control() {
                return control;
            }
            self.bell.notified().await;
        }
    }

    /// Refuses orders from now on.
    pub fn close(&self) {
        self.lanes.data.permits.close();
    }

    /// Ends the tap as an actor ends: nothing more is taken; tells how many messages were dropped.
    pub fn shut(&self) -> usize {
        self.lanes.shut()
    }
}

impl<M, C> fmt::Debug for Tap<M, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tap").field("name", &self.lanes.data.name).field("depth", &self.lanes.data.depth()).finish()
    }
}

fn probe<M, C>(lanes: &Lanes<M, C>) -> Probe {
    Probe::new(lanes.data.name, lanes.data.permits.bound(), Arc::clone(&lanes.data.gauges))
}
