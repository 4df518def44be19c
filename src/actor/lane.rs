//! Lanes: the two queues of an inbox, and who may take from them.
//!
//! The queues belong to the inbox, not to an actor: they survive a panic, and an epoch decides under the
//! queue's own lock who may take from them. No lock is held while foreign code runs.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use actix::Recipient;

use super::Epoch;
use super::bell::{Bell, Target, Wake};
use super::permits::{Permits, Slot};
use super::probe::{Gauges, WAIT_SAMPLE};

/// Locks; a poisoned lock is taken as it is, since no invariant here spans a call that can panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What one incarnation has taken and not finished; set under the lane's lock.
#[derive(Debug, Default)]
pub(crate) struct Hand(AtomicU8);

impl Hand {
    const ORDER: u8 = 1;
    const FACT: u8 = 2;

    fn hold(&self, slot: &Slot) {
        let held = if slot.holds_permit() { Self::ORDER } else { Self::FACT };
        self.0.store(held, Ordering::SeqCst);
    }

    pub(crate) fn clear(&self) {
        self.0.store(0, Ordering::SeqCst);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.load(Ordering::SeqCst) == 0
    }

    pub(crate) fn holds_fact(&self) -> bool {
        self.0.load(Ordering::SeqCst) == Self::FACT
    }
}

/// What a take from a lane gave.
pub(crate) enum Taken<T> {
    Message(T),
    Empty,
    /// Another epoch serves this inbox now.
    Retired,
}

struct Entry<M> {
    message: M,
    slot: Slot,
    since: Option<Instant>,
}

struct Queue<M> {
    entries: VecDeque<Entry<M>>,
    /// Ended for good: takes nothing more.
    shut: bool,
    count: u64,
}

/// The data lane: orders with their slots, and facts.
pub(crate) struct DataLane<M> {
    pub(crate) name: &'static str,
    queue: Mutex<Queue<M>>,
    pub(crate) permits: Arc<Permits>,
    pub(crate) bell: Arc<Bell>,
    pub(crate) gauges: Arc<Gauges>,
}

impl<M> DataLane<M> {
    /// Queues one message; gives it back when the lane is shut.
    pub(crate) fn push(&self, message: M, slot: Slot) -> Result<(), M> {
        {
            let mut queue = lock(&self.queue);
            if queue.shut {
                drop(queue);
                return Err(message);
            }
            self.append(&mut queue, message, slot);
        }
        self.bell.ring();
        Ok(())
    }

    /// Queues facts under one lock and one wake; `false` and all dropped when the lane is shut.
    pub(crate) fn push_all(&self, messages: Vec<M>) -> bool {
        if messages.is_empty() {
            return !lock(&self.queue).shut;
        }
        {
            let mut queue = lock(&self.queue);
            if queue.shut {
                drop(queue);
                return false;
            }
            for message in messages {
                self.append(&mut queue, message, Slot::empty());
            }
        }
        self.bell.ring();
        true
    }

    fn append(&self, queue: &mut Queue<M>, message: M, slot: Slot) {
        let since = queue.count.is_multiple_of(WAIT_SAMPLE).then(Instant::now);
        queue.count += 1;
        self.gauges.accepted.store(queue.count, Ordering::Relaxed);
        queue.entries.push_back(Entry { message, slot, since });
        self.gauges.set_depth(queue.entries.len());
    }

    /// Takes the oldest message if `epoch` serves; `hand` is set under the same lock.
    pub(crate) fn take(&self, epoch: Epoch, hand: &Hand) -> Taken<(M, Slot)> {
        let mut queue = lock(&self.queue);
        if !self.bell.is_serving(epoch) {
            return Taken::Retired;
        }
        let Some(Entry { message, mut slot, since }) = queue.entries.pop_front() else {
            return Taken::Empty;
        };
        self.gauges.set_depth(queue.entries.len());
        slot.hand_out();
        hand.hold(&slot);
        drop(queue);
        if let Some(since) = since {
            self.gauges.waited(since.elapsed());
        }
        Taken::Message((message, slot))
    }

    pub(crate) fn depth(&self) -> usize {
        self.gauges.depth.load(Ordering::Relaxed)
    }

    pub(crate) fn is_shut(&self) -> bool {
        lock(&self.queue).shut
    }
}

/// The control lane: few messages, no bound, handled first.
pub(crate) struct ControlLane<C> {
    queue: Mutex<(VecDeque<C>, bool)>,
    len: AtomicUsize,
    bell: Arc<Bell>,
}

impl<C> ControlLane<C> {
    pub(crate) fn push(&self, control: C) -> bool {
        {
            let mut queue = lock(&self.queue);
            if queue.1 {
                drop(queue);
                return false;
            }
            queue.0.push_back(control);
            self.len.store(queue.0.len(), Ordering::SeqCst);
        }
        self.bell.ring();
        true
    }

    pub(crate) fn take(&self, epoch: Epoch) -> Taken<C> {
        if self.len.load(Ordering::SeqCst) == 0 {
            return Taken::Empty;
        }
        let mut queue = lock(&self.queue);
        if !self.bell.is_serving(epoch) {
            return Taken::Retired;
        }
        let taken = queue.0.pop_front();
        self.len.store(queue.0.len(), Ordering::SeqCst);
        drop(queue);
        taken.map_or(Taken::Empty, Taken::Message)
    }
}

/// Whether an actor with empty hands may sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    Idle,
    More,
    Retired,
}

/// Both lanes with their bell: the whole of an inbox, without the worker's type.
pub(crate) struct Lanes<M, C> {
    pub(crate) data: Arc<DataLane<M>>,
    pub(crate) control: Arc<ControlLane<C>>,
    pub(crate) bell: Arc<Bell>,
}

impl<M, C> Clone for Lanes<M, C> {
    fn clone(&self) -> Self {
        Self { data: Arc::clone(&self.data), control: Arc::clone(&self.control), bell: Arc::clone(&self.bell) }
    }
}

impl<M, C> Lanes<M, C> {
    pub(crate) fn new(name: &'static str, bound: usize, target: Target) -> Self {
        let bell = Bell::new(target);
        Self {
            data: Arc::new(DataLane {
                name,
                queue: Mutex::new(Queue { entries: VecDeque::new(), shut: false, count: 0 }),
                permits: Permits::new(bound),
                bell: Arc::clone(&bell),
                gauges: Arc::new(Gauges::default()),
            }),
            control: Arc::new(ControlLane {
                queue: Mutex::new((VecDeque::new(), false)),
                len: AtomicUsize::new(0),
                bell: Arc::clone(&bell),
            }),
            bell,
        }
    }

    /// Gives the lanes to `epoch`: from the return of this call on, no other takes a message.
    pub(crate) fn serve(&self, epoch: Epoch) {
        let mut target = lock(&self.bell.target);
        {
            let _data = lock(&self.data.queue);
            let _control = lock(&self.control.queue);
            self.bell.serving.store(epoch.0, Ordering::SeqCst);
        }
        // Held until the successor is there: it looks into the lanes unasked.
        self.bell.scheduled.store(true, Ordering::SeqCst);
        *target = Target::Nobody;
    }

    /// Has `host` woken from now on; the caller runs a turn at once. `false` when `epoch` does not serve.
    pub(crate) fn attach(&self, epoch: Epoch, host: Recipient<Wake>) -> bool {
        let mut target = lock(&self.bell.target);
        if !self.bell.is_serving(epoch) {
            return false;
        }
        self.bell.scheduled.store(true, Ordering::SeqCst);
        *target = Target::Actor(host);
        true
    }

    /// Lets the next message ring again, unless one has come in meanwhile.
    pub(crate) fn rest(&self, epoch: Epoch) -> Rest {
        let _target = lock(&self.bell.target);
        if !self.bell.is_serving(epoch) {
            return Rest::Retired;
        }
        self.bell.scheduled.store(false, Ordering::SeqCst);
        let waiting =
            !lock(&self.data.queue).entries.is_empty() || !lock(&self.control.queue).0.is_empty() || self.bell.is_halted();
        // Whoever queued it and found the bell unset is about to send a wake: then that one will do.
        if waiting && !self.bell.scheduled.swap(true, Ordering::SeqCst) { Rest::More } else { Rest::Idle }
    }

    /// Whether nothing is queued, in hand or in progress.
    pub(crate) fn is_quiet(&self, hand: &Hand) -> bool {
        let queue = lock(&self.data.queue);
        queue.entries.is_empty() && hand.is_empty() && self.data.permits.free() == self.data.permits.bound()
    }

    /// Messages queued, slots held outside the lane, and the fact in hand.
    pub(crate) fn outstanding(&self, hand: &Hand) -> usize {
        let queue = lock(&self.data.queue);
        queue.entries.len() + self.data.permits.handed() + usize::from(hand.holds_fact())
    }

    /// The epoch that may take messages.
    pub(crate) fn serving(&self) -> Epoch {
        Epoch(self.bell.serving.load(Ordering::SeqCst))
    }

    /// Ends both lanes for good; tells how many orders and facts were dropped unhandled.
    pub(crate) fn shut(&self) -> usize {
        self.data.permits.close();
        *lock(&self.bell.target) = Target::Nobody;
        let dropped = {
            let mut queue = lock(&self.data.queue);
            queue.shut = true;
            self.data.gauges.set_depth(0);
            std::mem::take(&mut queue.entries)
        };
        let controls = {
            let mut queue = lock(&self.control.queue);
            queue.1 = true;
            self.control.len.store(0, Ordering::SeqCst);
            std::mem::take(&mut queue.0)
        };
        drop(controls);
        let lost = dropped.len();
        self.data.gauges.discarded.fetch_add(lost as u64, Ordering::Relaxed);
        drop(dropped); // foreign destructors: after the locks
        self.data.permits.notify_settled();
        lost
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    fn lanes() -> Lanes<u32, u32> {
        let lanes = Lanes::new("lanes", 4, Target::Nobody);
        lanes.serve(Epoch(1));
        lanes
    }

    #[test]
    fn an_epoch_that_serves_no_more_takes_nothing() {
        let (lanes, hand) = (lanes(), Hand::default());
        for n in 0..2 {
            lanes.data.push(n, Slot::empty()).unwrap();
            assert!(lanes.control.push(n));
        }
        assert!(matches!(lanes.data.take(Epoch(1), &hand), Taken::Message((0, _))));
        assert!(matches!(lanes.control.take(Epoch(1)), Taken::Message(0)));
        hand.clear();
        lanes.serve(Epoch(2));
        assert!(matches!(lanes.data.take(Epoch(1), &hand), Taken::Retired));
        assert!(matches!(lanes.control.take(Epoch(1)), Taken::Retired));
        assert!(hand.is_empty());
        assert_eq!(lanes.rest(Epoch(1)), Rest::Retired);
        assert!(matches!(lanes.data.take(Epoch(2), &hand), Taken::Message((1, _))));
        assert!(matches!(lanes.control.take(Epoch(2)), Taken::Message(1)));
    }

    #[test]
    fn nobody_rests_over_a_message_or_a_halt() {
        let lanes = lanes();
        assert_eq!(lanes.rest(Epoch(1)), Rest::Idle);

        // While a turn runs the flag is set, so these send no wake: the rest must find them.
        lanes.serve(Epoch(1));
        lanes.data.push(1, Slot::empty()).unwrap();
        assert_eq!(lanes.rest(Epoch(1)), Rest::More);
        lanes.data.take(Epoch(1), &Hand::default());
        assert_eq!(lanes.rest(Epoch(1)), Rest::Idle);

        lanes.serve(Epoch(1));
        assert!(lanes.control.push(1));
        assert_eq!(lanes.rest(Epoch(1)), Rest::More);
        lanes.control.take(Epoch(1));
        assert_eq!(lanes.rest(Epoch(1)), Rest::Idle);

        lanes.serve(Epoch(1));
        lanes.bell.halt();
        assert_eq!(lanes.rest(Epoch(1)), Rest::More);
    }

    #[test]
    fn what_is_queued_for_a_task_wakes_it() {
        let bell = Arc::new(tokio::sync::Notify::new());
        let lanes = Lanes::<u32, u32>::new("lanes", 4, Target::Task(Arc::clone(&bell)));
        lanes.data.push(1, Slot::empty()).unwrap();
        let heard = std::pin::pin!(bell.notified());
        assert!(futures_util::FutureExt::now_or_never(heard).is_some());
    }
}
