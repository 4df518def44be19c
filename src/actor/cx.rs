//! Cx: what a worker may ask of its host while it handles something.
//!
//! Timers and futures belong to one incarnation and go with it. Both are kept by us and not by actix's
//! context, which polls every future on every wake and lets timers starve under a backlog.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::time::Instant;

use super::link::{Controls, Facts};
use super::{Epoch, Inbox, Worker};

/// What a finished future still has to do with the worker.
pub(crate) type Done<W> = Box<dyn FnOnce(&mut W, &mut Cx<'_, W>)>;

/// A delay too long for the clock counts as this, as good as never.
const FAR: Duration = Duration::from_secs(60 * 60 * 24 * 365 * 30);

/// Names a timer of one incarnation, to cancel it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timer {
    at: Instant,
    id: u64,
}

impl Timer {
    pub(crate) const fn at(self) -> Instant {
        self.at
    }

    pub(crate) const fn id(self) -> u64 {
        self.id
    }
}

/// The state of one incarnation beside its worker.
pub(crate) struct Core<W: Worker> {
    pub(crate) inbox: Inbox<W>,
    pub(crate) epoch: Epoch,
    pub(crate) timers: BTreeMap<Timer, W::Control>,
    pub(crate) next_timer: u64,
    pub(crate) futures: FuturesUnordered<LocalBoxFuture<'static, Done<W>>>,
    pub(crate) stop: bool,
}

impl<W: Worker> Core<W> {
    pub(crate) fn new(inbox: Inbox<W>, epoch: Epoch) -> Self {
        Self { inbox, epoch, timers: BTreeMap::new(), next_timer: 0, futures: FuturesUnordered::new(), stop: false }
    }
}

/// The hands of a worker: timers, local futures, its own epoch and inbox.
pub struct Cx<'a, W: Worker> {
    pub(crate) core: &'a mut Core<W>,
}

impl<W: Worker> Cx<'_, W> {
    /// Delivers `control` to [`Worker::control`] after `delay`, once; periodic work arms the next by hand.
    ///
    /// A timer fires between messages even under a backlog, at most one turn late. It ends with this
    /// incarnation.
    pub fn after(&mut self, delay: Duration, control: W::Control) -> Timer {
        let now = Instant::now();
        let at = now.checked_add(delay.min(FAR)).unwrap_or(now);
        let timer = Timer { at, id: self.core.next_timer };
        self.core.next_timer += 1;
        self.core.timers.insert(timer, control);
        timer
    }

    /// Cancels a timer and gives its control back; `None` when it has fired already.
    pub fn cancel(&mut self, timer: Timer) -> Option<W::Control> {
        self.core.timers.remove(&timer)
    }

    /// Runs `future` on this actor's thread and calls `done` with its output, between messages.
    ///
    /// Both are dropped with this incarnation; a panic in either ends it.
    pub fn spawn<F>(&mut self, future: F, done: impl FnOnce(&mut W, F::Output, &mut Cx<'_, W>) + 'static)
    where
        F: Future + 'static,
    {
        self.core.futures.push(Box::pin(async move {
            let output = future.await;
            let done: Done<W> = Box::new(move |worker, cx| done(worker, output, cx));
            done
        }));
    }

    /// The incarnation that is asking.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.core.epoch
    }

    /// Ends this actor for good once the present call returns; what is queued is dropped and counted.
    pub fn stop(&mut self) {
        self.core.stop = true;
    }

    /// The end for commands to this actor.
    #[must_use]
    pub fn controls(&self) -> Controls<W::Control> {
        self.core.inbox.controls()
    }

    /// The end for facts to this actor, for what it starts elsewhere to answer through.
    #[must_use]
    pub fn facts(&self) -> Facts<W::Order> {
        self.core.inbox.facts()
    }

    /// Orders and facts still queued.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.core.inbox.depth()
    }

    /// Futures of this incarnation still running.
    #[must_use]
    pub fn running(&self) -> usize {
        self.core.futures.len()
    }
}

impl<W: Worker> fmt::Debug for Cx<'_, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cx")
            .field("inbox", &self.core.inbox)
            .field("epoch", &self.core.epoch)
            .field("timers", &self.core.timers.len())
            .field("futures", &self.core.futures.len())
            .finish()
    }
}
