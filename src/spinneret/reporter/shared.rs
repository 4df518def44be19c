//! What the handles of a reporter and its worker share, and who works on it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tracing::warn;

use super::options::{OnRejected, ReporterOptions};
use super::queue::{Batch, Queue};
use super::worker;
use crate::dice::Dice;
use crate::spinneret::lease::Releaser;
use crate::spinneret::wire::Wire;

/// The queue, the way to the server, and the worker between them.
pub(super) struct Shared {
    pub(super) wire: Arc<Wire>,
    releaser: Releaser,
    state: Mutex<State>,
    /// Wakes the worker.
    pub(super) worker: Notify,
    /// Wakes callers that wait for something to be settled.
    pub(super) progress: Notify,
    /// Those who wait for room stand here in line.
    pub(super) turn: tokio::sync::Mutex<()>,
}

/// What is behind the lock.
#[derive(Debug)]
pub(super) struct State {
    pub(super) queue: Queue,
    pub(super) crew: Crew,
}

/// The worker, if there is one.
#[derive(Default)]
pub(super) struct Crew {
    is_manned: bool,
    generation: u64,
    /// The last worker ended before its time.
    is_lost: bool,
    abort: Option<AbortHandle>,
    /// Where a worker can be started from a thread without a runtime.
    runtime: Option<Handle>,
    on_rejected: Option<OnRejected>,
}

impl Shared {
    pub(super) fn new(wire: Arc<Wire>, releaser: Releaser, mut options: ReporterOptions) -> Self {
        let crew = Crew { runtime: Handle::try_current().ok(), on_rejected: options.on_rejected.take(), ..Crew::default() };
        // Without randomness waits are not spread, and nothing else is lost.
        let queue = Queue::new(options, Dice::new(getrandom::u64().unwrap_or(0)));
        Self {
            wire,
            releaser,
            state: Mutex::new(State { queue, crew }),
            worker: Notify::new(),
            progress: Notify::new(),
            turn: tokio::sync::Mutex::new(()),
        }
    }

    /// Changes the state, and does what the change asks for once it is unlocked.
    pub(super) fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let answer = change(&mut state);
        let effects = state.queue.take_effects();
        drop(state);
        effects.carry_out(&self.releaser, &self.worker, &self.progress);
        answer
    }

    /// Tells this reporter from others.
    pub(super) fn id(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Sees to it that somebody works, if there is anything to do and a runtime to do it on.
    pub(super) fn man(self: &Arc<Self>) {
        let current = Handle::try_current().ok();
        let mut state = self.lock();
        let State { queue, crew } = &mut *state;
        if crew.is_manned || !queue.has_work() {
            return;
        }
        let Some(runtime) = current.or_else(|| crew.runtime.clone()) else { return };
        crew.is_manned = true;
        crew.generation += 1;
        crew.runtime = Some(runtime.clone());
        let generation = crew.generation;
        let is_restart = std::mem::take(&mut crew.is_lost);
        let queued = queue.stats().queued;
        drop(state);
        if is_restart {
            warn!(target: "spinneret.reporter", queued, "the task that sends reports was gone, it is started again");
        }
        // A runtime that has ended drops the task at once, which comes back to Self::lose.
        let task = runtime.spawn(worker::run(worker::Guard::new(Arc::clone(self), generation)));
        let crew = &mut self.lock().crew;
        if crew.generation == generation && crew.is_manned {
            crew.abort = Some(task.abort_handle());
        }
    }

    /// The worker has done everything.
    pub(super) fn dismiss(&self, generation: u64) {
        self.with(|state| {
            if state.crew.generation == generation {
                state.crew.is_manned = false;
                state.crew.abort = None;
            }
            state.queue.told();
        });
        self.forget_callback();
    }

    /// Lets the callback of a closed reporter go: it may hold a handle of this very reporter. That handle must not be
    /// dropped under the lock.
    pub(super) fn forget_callback(&self) {
        let callback = self.with(|state| state.crew.on_rejected.take());
        drop(callback);
    }

    /// The worker ended before its time: its task was aborted, its runtime is gone, or it panicked.
    pub(super) fn lose(&self, generation: u64, batch: Option<Batch>, has_started: bool) {
        self.with(|state| {
            if state.crew.generation == generation {
                state.crew.is_manned = false;
                state.crew.is_lost = true;
                state.crew.abort = None;
                if !has_started {
                    state.crew.runtime = None;
                }
            }
            match batch {
                Some(batch) => state.queue.put_back(batch, true, Instant::now()),
                None => state.queue.told(),
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Crew {
    /// Whether there is a worker.
    pub(super) const fn is_manned(&self) -> bool {
        self.is_manned
    }

    /// Breaks the worker off; a batch it has goes back to the queue.
    pub(super) fn abort(&self) {
        if let Some(task) = &self.abort {
            task.abort();
        }
    }

    pub(super) fn on_rejected(&self) -> Option<OnRejected> {
        self.on_rejected.clone()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if state.queue.has_work() {
            let queued = state.queue.stats().queued;
            warn!(target: "spinneret.reporter", queued, "reports are lost: no runtime was left to send them; close the reporter before it ends");
        }
    }
}

impl fmt::Debug for Crew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crew").field("is_manned", &self.is_manned).finish_non_exhaustive()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("Shared")
            .field("is_manned", &state.crew.is_manned)
            .field("is_closed", &state.queue.closing().is_some())
            .field("stats", &state.queue.stats())
            .finish_non_exhaustive()
    }
}
