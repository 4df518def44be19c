//! What the handles of a watcher and its task share: knowledge, listeners, and whether it runs.
//!
//! Holds no handle and no client. The locks are never held across a wait or a call of foreign code.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::{self, AbortHandle};
use tokio::time::timeout;

use super::listeners::Listeners;
use super::pacing::Pace;
use super::saver::Saver;
use super::state::{Applied, Origin, State};
use super::{TARGET, run};
use crate::spinneret::Result;
use crate::spinneret::code::Code;
use crate::spinneret::error::{Details, Error};
use crate::spinneret::messages::{BatchGetConfigRequest, ConfigItem, ConfigKey, WatchConfigRequest};
use crate::spinneret::wire::Wire;

/// How long listeners wait for the disk, so that what they hear of is normally saved already.
const PATIENCE: Duration = Duration::from_millis(200);

/// The shared part of a watcher.
pub(super) struct Core {
    pub(super) wire: Arc<Wire>,
    pub(super) namespace: String,
    pub(super) poll_timeout: Duration,
    pub(super) backoff: (Duration, Duration),
    pub(super) seed: u64,
    pub(super) saver: Option<Saver>,
    pub(super) listeners: Listeners,
    state: Mutex<State>,
    /// Changes of the last answer that the listeners have not heard of.
    untold: Mutex<VecDeque<Arc<ConfigItem>>>,
    /// The failure that was logged, until the server answers again.
    failing: Mutex<Option<Code>>,
    /// Held while the first load goes on and its items are told.
    pub(super) starting: tokio::sync::Mutex<()>,
    signal: watch::Sender<Signal>,
    task: Mutex<Option<AbortHandle>>,
    /// Who calls listeners, if somebody does.
    teller: Mutex<Option<Caller>>,
}

/// What wakes everyone who waits for something of a watcher.
#[derive(Debug, Clone, Copy)]
pub(super) struct Signal {
    changes: u64,
    pub(super) phase: Phase,
    is_task_alive: bool,
    is_telling: bool,
}

/// Where a watcher is in its life; it never goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Idle,
    Running,
    Stopped,
}

/// Who runs a piece of code: a task, which may change its thread, or a thread that blocks on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Caller {
    Task(task::Id),
    Thread(ThreadId),
}

impl Caller {
    fn here() -> Self {
        task::try_id().map_or_else(|| Self::Thread(thread::current().id()), Self::Task)
    }
}

impl Core {
    pub(super) fn new(
        wire: Arc<Wire>,
        keys: Vec<ConfigKey>,
        namespace: String,
        poll_timeout: Duration,
        backoff: (Duration, Duration),
        saver: Option<Saver>,
    ) -> Self {
        let signal = Signal { changes: 0, phase: Phase::Idle, is_task_alive: false, is_telling: false };
        Self {
            wire,
            namespace,
            poll_timeout,
            backoff,
            // Without a seed nodes are in step, which is worth no failure.
            seed: getrandom::u64().unwrap_or_default(),
            saver,
            listeners: Listeners::default(),
            state: Mutex::new(State::new(keys)),
            untold: Mutex::default(),
            failing: Mutex::default(),
            starting: tokio::sync::Mutex::default(),
            signal: watch::Sender::new(signal),
            task: Mutex::default(),
            teller: Mutex::default(),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a failure is news: the same one again and again is not.
    pub(super) fn fails(&self, error: &Error) -> bool {
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        failing.replace(error.code().clone()).as_ref() != Some(error.code())
    }

    /// The server answers; says so if it did not.
    pub(super) fn answers(&self) {
        if self.failing.lock().unwrap_or_else(PoisonError::into_inner).take().is_some() {
            tracing::info!(target: TARGET, items = %self.state().names(), "the server gives the configuration again");
        }
    }

    pub(super) fn phase(&self) -> Phase {
        self.signal.borrow().phase
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Signal> {
        self.signal.subscribe()
    }

    pub(super) fn pace(&self) -> Pace {
        Pace::new(self.backoff.0, self.backoff.1, self.poll_timeout, self.seed)
    }

    /// The work's result, or `None` once the watcher is stopped.
    pub(super) async fn unless_stopped<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut signal = self.subscribe();
        tokio::select! {
            biased;
            _ = signal.wait_for(|signal| signal.phase == Phase::Stopped) => None,
            done = work => Some(done),
        }
    }

    /// The first load: from the server, or from the disk if the server may answer later. Tells nobody yet.
    pub(super) async fn load(&self) -> Result<()> {
        self.unless_stopped(self.load_anyway()).await.unwrap_or_else(|| Err(stopped("was stopped while it started")))
    }

    async fn load_anyway(&self) -> Result<()> {
        let keys = self.state().keys().to_vec();
        let request = BatchGetConfigRequest { namespace: self.namespace.clone(), items: keys.clone() };
        match self.wire.call(&request).await {
            Ok(answer) => {
                if !answer.missing.is_empty() {
                    let missing: Vec<String> = answer.missing.iter().map(|key| format!("{}/{}", key.group, key.key)).collect();
                    tracing::info!(target: TARGET, ?missing, "the server does not have these configuration items");
                }
                self.absorb(answer.items, Origin::Server);
                Ok(())
            }
            Err(error) if error.is_retry_later() => {
                let found = match &self.saver {
                    Some(saver) => saver.load(keys).await,
                    None => Vec::new(),
                };
                self.fails(&error);
                tracing::warn!(
                    target: TARGET,
                    %error,
                    items = %self.state().names(),
                    snapshots = found.len(),
                    "the configuration cannot be loaded from the server; starting with what is on disk, and asking again"
                );
                self.absorb(found, Origin::Snapshot);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn poll_request(&self) -> WatchConfigRequest {
        let timeout_ms = i32::try_from(self.poll_timeout.as_millis()).unwrap_or(i32::MAX);
        WatchConfigRequest { namespace: self.namespace.clone(), items: self.state().versions(), timeout_ms }
    }

    /// Takes an answer in, wakes those who wait and has the changes saved. Whether a newer version came.
    pub(super) fn absorb(&self, items: Vec<ConfigItem>, origin: Origin) -> bool {
        let mut state = self.state();
        let Applied { changed, is_progress } = state.apply(items, origin);
        let changes = state.changes();
        // Under the lock of the state: changes are told and saved in their order.
        self.untold().extend(changed.iter().cloned());
        if let (Some(saver), Origin::Server) = (&self.saver, origin) {
            saver.save(&changed);
        }
        drop(state);
        self.signal.send_modify(|signal| signal.changes = signal.changes.max(changes));
        is_progress
    }

    /// Tells the listeners what they have not heard of. One caller at a time: the start, then the task.
    pub(super) async fn tell(&self) {
        if self.untold().is_empty() {
            return;
        }
        if let Some(saver) = &self.saver {
            let _ = self.unless_stopped(timeout(PATIENCE, saver.settled())).await;
        }
        let _telling = Telling::new(self);
        loop {
            let next = self.untold().pop_front();
            let Some(item) = next else { break };
            self.listeners.tell(&item).await;
        }
    }

    /// Starts the task, once. False when it runs already or never will.
    pub(super) fn spawn(self: &Arc<Self>) -> Result<bool> {
        let runtime = Handle::try_current()
            .map_err(|_| failed("no_runtime", "needs a tokio runtime: start it from within one, or use the blocking client"))?;
        let is_first = self.signal.send_if_modified(|signal| {
            let is_idle = signal.phase == Phase::Idle;
            if is_idle {
                (signal.phase, signal.is_task_alive) = (Phase::Running, true);
            }
            is_idle
        });
        if is_first {
            let task = runtime.spawn(run::run(Running(Arc::clone(self))));
            *self.task() = Some(task.abort_handle());
        }
        Ok(is_first)
    }

    /// Ends it all; nobody is called any more.
    pub(super) fn signal_stop(&self) {
        self.listeners.close();
        self.signal.send_if_modified(|signal| {
            let is_news = signal.phase != Phase::Stopped;
            signal.phase = Phase::Stopped;
            is_news
        });
    }

    /// Waits for the task, for listeners that are being called and for what is still to be saved; what is left when
    /// the time is up is broken off. After [`Self::signal_stop`].
    pub(super) async fn ended(&self, limit: Duration) {
        if Handle::try_current().is_err() {
            return;
        }
        let mut signal = self.subscribe();
        let here = Caller::here();
        // A listener that stops its watcher cannot wait for its own end.
        let is_listener = *self.teller() == Some(here);
        let task = self.task().clone();
        let all = async {
            if !is_listener {
                let _ = signal.wait_for(|signal| !signal.is_task_alive && !signal.is_telling).await;
            }
            if let Some(saver) = &self.saver {
                saver.settled().await;
            }
        };
        if timeout(limit, all).await.is_err()
            && let Some(task) = task.filter(|_| !is_listener)
        {
            tracing::debug!(target: TARGET, "the watcher did not end in time; its task is broken off");
            task.abort();
        }
    }

    fn untold(&self) -> MutexGuard<'_, VecDeque<Arc<ConfigItem>>> {
        self.untold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn task(&self) -> MutexGuard<'_, Option<AbortHandle>> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn teller(&self) -> MutexGuard<'_, Option<Caller>> {
        self.teller.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Core")
            .field("keys", &state.keys())
            .field("phase", &self.phase())
            .field("is_from_snapshot", &state.is_from_snapshot())
            .field("is_loaded", &state.is_loaded())
            .finish_non_exhaustive()
    }
}

/// The task's hold on the watcher. However the task ends, the watcher is stopped then.
pub(super) struct Running(pub(super) Arc<Core>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.signal_stop();
        self.0.signal.send_modify(|signal| signal.is_task_alive = false);
    }
}

/// While listeners are being called.
struct Telling<'a>(&'a Core);

impl<'a> Telling<'a> {
    fn new(core: &'a Core) -> Self {
        *core.teller() = Some(Caller::here());
        core.signal.send_modify(|signal| signal.is_telling = true);
        Self(core)
    }
}

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        *self.0.teller() = None;
        self.0.signal.send_modify(|signal| signal.is_telling = false);
    }
}

/// The error of a watcher that cannot start any more.
pub(super) fn stopped(what: &str) -> Error {
    failed("watcher_stopped", &format!("{what}; make a new one"))
}

fn failed(reason: &str, what: &str) -> Error {
    Error::of(Details::new(Code::FailedPrecondition, reason, format!("the configuration watcher {what}")))
}
