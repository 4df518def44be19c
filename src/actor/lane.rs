//! Lanes: the two queues of an inbox and the bell that wakes whoever serves them.
//!
//! The queues belong to the inbox, not to an actor: they survive a panic, and an epoch decides under the
//! queue's own lock who may take from them. No lock is held while foreign code runs.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use actix::Recipient;
use tokio::sync::Notify;

use super::Epoch;
use super::permits::{Permits, Slot};
use super::probe::{Gauges, WAIT_SAMPLE};

/// Locks; a poisoned lock is taken as it is, since no invariant here spans a call that can panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The only message actix ever carries for us: "look into your inbox".
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wake;

impl actix::Message for Wake {
    type Result = ();
}

/// What one incarnation has taken and not finished; set under the lane's lock.
#[derive(Debug, Default)]
pub(crate) struct Hand(AtomicU8);

impl Hand {
    const ORDER: u8 = 1;
    const FACT: u8 = 2;

    fn hold(&self, slot: &Slot) {
        let held = if slot.holds_permit() {
            Self::ORDER
        } else {
            Self::FACT
        };
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

/// Who is woken when something is queued.
pub(crate) enum Target {
    Nobody,
    Actor(Recipient<Wake>),
    Task(Arc<Notify>),
}

/// Sends at most one wake until the receiver has found its lanes empty.
pub(crate) struct Bell {
    /// A wake is on its way, or a turn is running and will look again before it rests.
    scheduled: AtomicBool,
    /// The epoch that may take messages. Written only with both lanes locked.
    serving: AtomicU32,
    target: Mutex<Target>,
    halt: AtomicBool,
    halted: Notify,
}

impl Bell {
    fn new(target: Target) -> Arc<Self> {
        Arc::new(Self {
            scheduled: AtomicBool::new(!matches!(target, Target::Task(_))),
            serving: AtomicU32::new(0),
            target: Mutex::new(target),
            halt: AtomicBool::new(false),
            halted: Notify::new(),
        })
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "the one place that sends through actix; one wake is pending at most"
    )]
    pub(crate) fn ring(&self) {
        if self.scheduled.swap(true, Ordering::SeqCst) {
            return;
        }
        match &*lock(&self.target) {
            Target::Nobody => {} // the successor looks into the lanes when it starts
            Target::Actor(host) => host.do_send(Wake),
            Target::Task(task) => {
                self.scheduled.store(false, Ordering::SeqCst);
                task.notify_one();
            }
        }
    }

    /// Asks the serving actor to stop before its next message.
    pub(crate) fn halt(&self) {
        self.halt.store(true, Ordering::SeqCst);
        self.halted.notify_waiters();
        self.ring();
    }

    pub(crate) fn is_halted(&self) -> bool {
        self.halt.load(Ordering::SeqCst)
    }

    pub(crate) const fn halted(&self) -> &Notify {
        &self.halted
    }

    pub(crate) fn is_serving(&self, epoch: Epoch) -> bool {
        self.serving.load(Ordering::SeqCst) == epoch.0
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
        queue.entries.push_back(Entry {
            message,
            slot,
            since,
        });
        self.gauges.set_depth(queue.entries.len());
    }

    /// Takes the oldest message if `epoch` serves; `hand` is set under the same lock.
    pub(crate) fn take(&self, epoch: Epoch, hand: &Hand) -> Taken<(M, Slot)> {
        let mut queue = lock(&self.queue);
        if !self.bell.is_serving(epoch) {
            return Taken::Retired;
        }
        let Some(Entry {
            message,
            mut slot,
            since,
        }) = queue.entries.pop_front()
        else {
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
        Self {
            data: Arc::clone(&self.data),
            control: Arc::clone(&self.control),
            bell: Arc::clone(&self.bell),
        }
    }
}

impl<M, C> Lanes<M, C> {
    pub(crate) fn new(name: &'static str, bound: usize, target: Target) -> Self {
        let bell = Bell::new(target);
        Self {
            data: Arc::new(DataLane {
                name,
                queue: Mutex::new(Queue {
                    entries: VecDeque::new(),
                    shut: false,
                    count: 0,
                }),
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
        let waiting = !lock(&self.data.queue).entries.is_empty()
            || !lock(&self.control.queue).0.is_empty()
            || self.bell.is_halted();
        // Whoever queued it and found the bell unset is about to send a wake: then that one will do.
        if waiting && !self.bell.scheduled.swap(true, Ordering::SeqCst) {
            Rest::More
        } else {
            Rest::Idle
        }
    }

    /// Whether nothing is queued, in hand or in progress.
    pub(crate) fn is_quiet(&self, hand: &Hand) -> bool {
        let queue = lock(&self.data.queue);
        queue.entries.is_empty()
            && hand.is_empty()
            && self.data.permits.free() == self.data.permits.bound()
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
        self.data
            .gauges
            .discarded
            .fetch_add(lost as u64, Ordering::Relaxed);
        drop(dropped); // foreign destructors: after the locks
        self.data.permits.notify_settled();
        lost
    }
}
