//! Links: the sending ends of an inbox, each for one kind of traffic.
//!
//! [`Link`] carries orders and is bounded, [`Facts`] carries answers to orders and never waits,
//! [`Controls`] carries the few commands that overtake both. A sender knows a peer only by the messages
//! it takes, never by its type. No sender here drops a message without giving it back or saying so.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::oneshot;

use super::lane::{ControlLane, DataLane};
use super::permits::{NoSlot, Slot};

/// The bounded way to send orders to an actor. Clones share one bound.
pub struct Link<M> {
    lane: Arc<DataLane<M>>,
}

impl<M> Link<M> {
    pub(crate) const fn new(lane: Arc<DataLane<M>>) -> Self {
        Self { lane }
    }

    /// Queues `message` if a slot is free.
    ///
    /// # Errors
    /// Gives the message back: [`Refused::Full`] when no slot is free, [`Refused::Closed`] when the
    /// actor takes no more orders.
    pub fn offer(&self, message: M) -> Result<(), Refused<M>> {
        match self.lane.permits.try_take() {
            Ok(slot) => self.lane.push(message, slot).map_err(Refused::Closed),
            Err(NoSlot::Full) => Err(Refused::Full(message)),
            Err(NoSlot::Closed) => Err(Refused::Closed(message)),
        }
    }

    /// Waits for a slot and queues `message`. Senders are served in the order in which they began to wait.
    ///
    /// Dropping the future before it is done sends nothing; once it is done the message is handled
    /// whatever happens to the sender.
    ///
    /// # Errors
    /// Gives the message back when the actor takes no more orders.
    pub async fn send(&self, message: M) -> Result<(), Closed<M>> {
        match self.lane.permits.take().await {
            Some(slot) => self.lane.push(message, slot).map_err(Closed),
            None => Err(Closed(message)),
        }
    }

    /// Sends a question and waits for its answer, both within `within`.
    ///
    /// Dropping the future once the question is queued does not take it back: it is still handled, only
    /// its answer goes nowhere.
    ///
    /// # Errors
    /// [`AskError::Timeout`] when no slot or no answer came in time, [`AskError::Closed`] when the actor
    /// takes no more orders, [`AskError::NoAnswer`] when it dropped the question.
    pub async fn ask<R>(&self, within: Duration, make: impl FnOnce(Reply<R>) -> M) -> Result<R, AskError> {
        let asked = async {
            let Some(slot) = self.lane.permits.take().await else {
                return Err(AskError::Closed);
            };
            let (answer, answered) = oneshot::channel();
            if self.lane.push(make(Reply(answer)), slot).is_err() {
                return Err(AskError::Closed);
            }
            answered.await.map_err(|_| AskError::NoAnswer)
        };
        tokio::time::timeout(within, asked).await.unwrap_or(Err(AskError::Timeout))
    }

    /// Slots free now.
    #[must_use]
    pub fn free(&self) -> usize {
        self.lane.permits.free()
    }

    /// Orders and facts queued now.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.lane.depth()
    }

    /// Most orders that may be queued or in progress.
    #[must_use]
    pub fn bound(&self) -> usize {
        self.lane.permits.bound()
    }

    /// Whether the actor takes no more orders.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.lane.permits.is_closed()
    }

    /// Has `f` called once a slot comes free after an [`offer`](Self::offer) was refused as full; several
    /// refusals before that count as one.
    ///
    /// `f` runs on the thread that gives the slot back: it must be short and must not panic; sending a
    /// control or a fact is its use. Every function registered on any clone is called. Registration is for
    /// the life of the inbox, so register once and not at each restart.
    pub fn on_room(&self, f: Arc<dyn Fn() + Send + Sync>) {
        self.lane.permits.on_room(f);
    }
}

impl<M> Clone for Link<M> {
    fn clone(&self) -> Self {
        Self { lane: Arc::clone(&self.lane) }
    }
}

impl<M> fmt::Debug for Link<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("to", &self.lane.name)
            .field("bound", &self.bound())
            .field("free", &self.free())
            .field("depth", &self.depth())
            .finish()
    }
}

/// An order that was not taken, with the order.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
pub enum Refused<M> {
    /// No slot is free; try again when the link reports room.
    #[error("the link is full")]
    Full(M),
    /// The actor takes no more orders.
    #[error("the link is closed")]
    Closed(M),
}

impl<M> Refused<M> {
    /// The message that was not sent.
    pub fn into_inner(self) -> M {
        match self {
            Self::Full(message) | Self::Closed(message) => message,
        }
    }

    /// Whether waiting for room can help.
    pub const fn is_full(&self) -> bool {
        matches!(self, Self::Full(_))
    }
}

// The message may hold a secret: it is never printed.
impl<M> fmt::Debug for Refused<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_full() { "Full(..)" } else { "Closed(..)" })
    }
}

/// An order that could not be sent because the actor takes no more, with the order.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[error("the link is closed")]
pub struct Closed<M>(pub M);

impl<M> fmt::Debug for Closed<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Closed(..)")
    }
}

/// Why a question has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AskError {
    /// Neither slot nor answer in time.
    #[error("no answer in time")]
    Timeout,
    /// The actor takes no more orders.
    #[error("the link is closed")]
    Closed,
    /// The actor dropped the question, as one that panics does.
    #[error("the question was dropped without an answer")]
    NoAnswer,
}

/// The way back for the answer to one question.
pub struct Reply<R>(oneshot::Sender<R>);

impl<R> Reply<R> {
    /// Answers; `false` when nobody waits for it any more.
    pub fn answer(self, answer: R) -> bool {
        self.0.send(answer).is_ok()
    }

    /// Whether somebody still waits.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        !self.0.is_closed()
    }

    /// A reply and the future of its answer, for a question that does not travel by [`Link::ask`];
    /// `None` when it is dropped unanswered.
    pub fn pair() -> (Self, impl Future<Output = Option<R>>) {
        let (answer, answered) = oneshot::channel();
        (Self(answer), async { answered.await.ok() })
    }
}

impl<R> fmt::Debug for Reply<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").field("wanted", &self.is_wanted()).finish()
    }
}

/// The way for answers: posted without waiting and without a bound of its own.
///
/// What is posted must answer an order, so the bound of the orders bounds the facts as well.
pub struct Facts<M> {
    lane: Arc<DataLane<M>>,
}

impl<M> Facts<M> {
    pub(crate) const fn new(lane: Arc<DataLane<M>>) -> Self {
        Self { lane }
    }

    /// Queues a fact; `false` when the actor has ended for good. A link closed to orders still takes facts.
    pub fn post(&self, message: M) -> bool {
        self.lane.push(message, Slot::empty()).is_ok()
    }

    /// Queues facts together, in order, with one wake at most; `false` when the actor has ended for good.
    pub fn post_all(&self, messages: impl IntoIterator<Item = M>) -> bool {
        self.lane.push_all(messages.into_iter().collect())
    }

    /// Orders and facts queued now.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.lane.depth()
    }
}

impl<M> Clone for Facts<M> {
    fn clone(&self) -> Self {
        Self { lane: Arc::clone(&self.lane) }
    }
}

impl<M> fmt::Debug for Facts<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Facts").field("to", &self.lane.name).field("depth", &self.depth()).finish()
    }
}

/// The way for commands: never blocked by data and handled before it.
pub struct Controls<C> {
    name: &'static str,
    lane: Arc<ControlLane<C>>,
}

impl<C> Controls<C> {
    pub(crate) const fn new(name: &'static str, lane: Arc<ControlLane<C>>) -> Self {
        Self { name, lane }
    }

    /// Queues a command; `false` when the actor has ended for good.
    pub fn tell(&self, control: C) -> bool {
        self.lane.push(control)
    }
}

impl<C> Clone for Controls<C> {
    fn clone(&self) -> Self {
        Self { name: self.name, lane: Arc::clone(&self.lane) }
    }
}

impl<C> fmt::Debug for Controls<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controls").field("to", &self.name).finish()
    }
}
