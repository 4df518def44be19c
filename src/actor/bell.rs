//! Bell: wakes whoever serves an inbox, once for however much comes in.
//!
//! A wake is sent only when none is pending: the flag stays set from the first message until the receiver
//! has found its lanes empty, so a busy receiver costs its senders one atomic swap and no more.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use actix::Recipient;
use tokio::sync::Notify;

use super::Epoch;
use super::lane::lock;

/// The only message actix ever carries for us: "look into your inbox".
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wake;

impl actix::Message for Wake {
    type Result = ();
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
    pub(crate) scheduled: AtomicBool,
    /// The epoch that may take messages. Written only with both lanes locked.
    pub(crate) serving: AtomicU32,
    pub(crate) target: Mutex<Target>,
    halt: AtomicBool,
    halted: Notify,
}

impl Bell {
    pub(crate) fn new(target: Target) -> Arc<Self> {
        Arc::new(Self {
            scheduled: AtomicBool::new(!matches!(target, Target::Task(_))),
            serving: AtomicU32::new(0),
            target: Mutex::new(target),
            halt: AtomicBool::new(false),
            halted: Notify::new(),
        })
    }

    #[allow(clippy::disallowed_methods, reason = "the one place that sends through actix; one wake is pending at most")]
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
