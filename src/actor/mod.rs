//! The seam over actix: everything the rest of the crate knows about actors.
//!
//! actix is the executor and nothing more. An actor of ours is a plain struct that implements [`Worker`];
//! one generic actix actor hosts it and only ever receives a wake-up. Messages wait in our own [`Inbox`],
//! which has a bound that clones cannot pass, a control lane that data cannot block, and outlives a panic.
//! `supervise` restarts what panics within a budget and reports every end. No other module names actix,
//! and no decision of the crawl is made here.

mod bell;
mod cx;
mod host;
mod inbox;
mod lane;
mod link;
mod permits;
mod place;
mod plan;
mod policy;
mod probe;
mod supervise;

pub use cx::{Cx, Timer};
pub(crate) use host::panic_text;
pub use inbox::{Inbox, Tap};
pub use link::{AskError, Closed, Controls, Facts, Link, Refused, Reply};
pub use permits::Slot;
pub use place::{Arbiter, ArbiterHandle, Place, before_park, run_local, run_system};
pub use plan::Plan;
pub use policy::Policy;
pub use probe::{Probe, Reading};
pub use supervise::{Died, Drained, How, Supervised, supervise};

/// Most orders, facts and controls handled in one turn, after which timers and futures get theirs.
pub const TURN: usize = 64;

/// The incarnation of an actor: 1 for the first, one more for each successor; 0 means never served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u32);

impl Epoch {
    /// The epoch of the successor.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }
}

impl std::fmt::Display for Epoch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// An actor: a plain struct that lives on one thread and handles one message at a time.
///
/// Handlers must return quickly (well under 1 ms); what has to wait is a future given to [`Cx::spawn`], and
/// CPU work belongs to an actor on a thread of its own. A panic in any method, timer or future ends this
/// incarnation: its state and the message in hand are lost, what is queued is served by the successor.
pub trait Worker: Sized + Unpin + 'static {
    /// What the data lane carries: orders, bounded by slots, and facts.
    type Order: Send + 'static;
    /// What the control lane carries: commands and timers; never blocked by data, handled first.
    type Control: Send + 'static;

    /// Called once, before the first message of this incarnation.
    fn started(&mut self, cx: &mut Cx<'_, Self>) {
        let _ = cx;
    }

    /// Handles an order or a fact. The slot frees its place in the bound when it is dropped: keep it for as
    /// long as the order is in progress.
    fn handle(&mut self, order: Self::Order, slot: Slot, cx: &mut Cx<'_, Self>);

    /// Handles a command or a timer.
    fn control(&mut self, control: Self::Control, cx: &mut Cx<'_, Self>);

    /// Called after each turn in which something ran: up to [`TURN`] messages, or fewer when the inbox is
    /// empty. The place to flush what the turn gathered.
    fn turn_end(&mut self, cx: &mut Cx<'_, Self>) {
        let _ = cx;
    }
}
