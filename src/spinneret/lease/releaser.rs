//! Gives leases back in the background: those that were dropped, and those whose last report was lost.
//!
//! One task per client, which ends when there is nothing to do and is started again when there is. It holds the way to
//! the server and nothing else: no client is kept alive by it. Nothing is given up in silence.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout_at};
use tracing::{debug, warn};

use super::errands::{Errand, Errands, Next, What};
use super::settle;
use crate::dice::Dice;
use crate::later::later;
use crate::spinneret::Result;
use crate::spinneret::backoff::Backoff;
use crate::spinneret::error::Error;
use crate::spinneret::messages::Report;
use crate::spinneret::wire::Wire;

/// Calls at once: enough for thousands of leases a second, and few beside those of the crawl itself.
const AT_ONCE: usize = 16;

/// Rests after failures (as the reporter's).
const FIRST_REST: Duration = Duration::from_millis(500);
const LONGEST_REST: Duration = Duration::from_secs(30);

/// The background task of a client. Clones share it.
#[derive(Clone)]
pub(crate) struct Releaser {
    shared: Arc<Shared>,
}

struct Shared {
    wire: Arc<Wire>,
    state: Mutex<State>,
    /// Something was added.
    news: Notify,
    /// Something was settled.
    settled: Notify,
    /// Calls that are finished here because their callers have gone.
    carried: AtomicUsize,
}

struct State {
    errands: Errands,
    backoff: Backoff,
    /// Where the client was last used: what is dropped on a plain thread is given back from there.
    home: Option<Handle>,
    is_working: bool,
    /// Whether it was said that there is no runtime.
    is_stranded: bool,
}

impl Releaser {
    pub(crate) fn new(wire: Arc<Wire>) -> Self {
        let backoff = Backoff::new(FIRST_REST, LONGEST_REST, Dice::new(getrandom::u64().unwrap_or_default()));
        let state = State { errands: Errands::default(), backoff, home: None, is_working: false, is_stranded: false };
        let (news, settled) = (Notify::new(), Notify::new());
        Self { shared: Arc::new(Shared { wire, state: Mutex::new(state), news, settled, carried: AtomicUsize::new(0) }) }
    }

    /// Gives a lease back soon. Never waits, never fails; what goes wrong is logged.
    pub(crate) fn release(&self, lease_id: String) {
        self.give_back(&lease_id, None);
    }

    /// The same for a lease whose end is known: it is tried that long.
    pub(super) fn give_back(&self, lease_id: &str, ends: Option<Instant>) {
        self.add(Errand::release(lease_id, ends, Instant::now()));
    }

    /// Delivers the last report of a lease without the reporter, which is closed.
    pub(super) fn deliver(&self, report: Report, ends: Option<Instant>) {
        self.add(Errand::deliver(report, ends, Instant::now()));
    }

    /// Remembers this runtime, and does what is left from another one.
    pub(super) fn settle_in(&self) {
        if let Ok(handle) = Handle::try_current() {
            let mut state = self.shared.lock();
            state.home = Some(handle);
            let is_left = !state.is_working && state.errands.len() > 0;
            drop(state);
            if is_left {
                self.start();
            }
        }
    }

    /// Finishes a call whose caller has gone; [`Self::drain`] waits for it too.
    pub(super) fn carry_on(&self, future: BoxFuture<'static, ()>) {
        let Some(handle) = Handle::try_current().ok().or_else(|| self.shared.lock().home.clone()) else {
            warn!(target: "spinneret.lease", "a call was left half-way outside every runtime: its lease ends by itself");
            return;
        };
        self.shared.carried.fetch_add(1, Ordering::AcqRel);
        let carried = Carried { shared: Arc::clone(&self.shared), is_finished: false };
        handle.spawn(async move {
            future.await;
            carried.finish();
        });
    }

    /// Waits until everything is given back, at most this long and not outside of a runtime; answers how many leases are
    /// left. Rests are cut short first. What is left is tried further, until the wire is closed.
    pub(crate) async fn drain(&self, limit: Duration) -> usize {
        let deadline = later(Instant::now(), limit);
        self.settle_in();
        self.shared.lock().errands.wake();
        self.shared.news.notify_one();
        loop {
            let mut settled = std::pin::pin!(self.shared.settled.notified());
            settled.as_mut().enable();
            let left = self.left();
            if left == 0 || Handle::try_current().is_err() || timeout_at(deadline, settled).await.is_err() {
                return left;
            }
        }
    }

    fn left(&self) -> usize {
        self.shared.lock().errands.len() + self.shared.carried.load(Ordering::Acquire)
    }

    fn add(&self, errand: Errand) {
        let mut state = self.shared.lock();
        let given_up = state.errands.add(errand);
        let is_working = state.is_working;
        drop(state);
        say_given_up(given_up);
        if is_working {
            self.shared.news.notify_one();
        } else {
            self.start();
        }
    }

    /// Starts the task where the client lives, or here. A runtime that is gone drops it at once, on this thread.
    fn start(&self) {
        let home = self.shared.lock().home.clone();
        for handle in home.into_iter().chain(Handle::try_current().ok()) {
            {
                let mut state = self.shared.lock();
                if state.is_working || state.errands.len() == 0 {
                    return;
                }
                state.is_working = true;
            }
            handle.spawn(work(Working { shared: Arc::clone(&self.shared), stage: Stage::New }));
        }
        self.shared.say_if_stranded();
    }
}

impl fmt::Debug for Releaser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Releaser").field("left", &self.left()).finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn say_if_stranded(&self) {
        // Closing has said what it left behind.
        if self.wire.is_closed() {
            return;
        }
        let mut state = self.lock();
        let left = state.errands.len();
        if state.is_working || left == 0 || std::mem::replace(&mut state.is_stranded, true) {
            return;
        }
        drop(state);
        warn!(
            target: "spinneret.lease",
            left,
            "leases are over outside every runtime: they are given back when the client is used next, or end by themselves"
        );
    }

    /// What became of an attempt.
    fn settle(&self, errand: Errand, result: Result<()>) {
        let now = Instant::now();
        let mut state = self.lock();
        let Err(error) = result else {
            state.errands.settle(&errand);
            return;
        };
        if error.is_retry_later() {
            let hint = error.retry_after().unwrap_or_default().min(LONGEST_REST);
            let wait = state.backoff.wait(errand.failures).max(hint);
            if errand.has_time(wait, now) {
                let lease_id = Arc::clone(&errand.lease_id);
                state.errands.rest(errand, now + wait);
                drop(state);
                debug!(target: "spinneret.lease", lease_id = &*lease_id, %error, ?wait, "release failed and is tried again");
                return;
            }
        }
        state.errands.settle(&errand);
        // A report that will never be taken cannot end its lease; while a call still can, it does.
        let is_refused = matches!(errand.what, What::Deliver(_)) && !error.is_retry_later();
        let is_in_vain = matches!(error, Error::ClientClosed(_));
        let given_up = if is_refused && !is_in_vain { state.errands.add(errand.instead()) } else { None };
        drop(state);
        say_given_up(given_up);
        let lease_id = &*errand.lease_id;
        match errand.what {
            What::Release => warn!(target: "spinneret.lease", lease_id, %error, "release given up: the lease ends by itself"),
            What::Deliver(_) => warn!(target: "spinneret.lease", lease_id, %error, "the last report of a lease is lost"),
        }
    }
}

fn say_given_up(errand: Option<Errand>) {
    let Some(errand) = errand else { return };
    let lease_id = &*errand.lease_id;
    warn!(target: "spinneret.lease", lease_id, "too many leases wait for their release: the oldest ends by itself");
}

/// The right to work; given up when the task ends, however it ends.
struct Working {
    shared: Arc<Shared>,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    New,
    Begun,
    /// The right was given up in order: perhaps another task has it already.
    Over,
}

impl Drop for Working {
    fn drop(&mut self) {
        if self.stage == Stage::Over {
            return;
        }
        let mut state = self.shared.lock();
        state.is_working = false;
        state.errands.recall();
        drop(state);
        if self.stage == Stage::Begun {
            self.shared.say_if_stranded();
        }
    }
}

/// A call without a caller.
struct Carried {
    shared: Arc<Shared>,
    is_finished: bool,
}

impl Carried {
    fn finish(mut self) {
        self.is_finished = true;
    }
}

impl Drop for Carried {
    fn drop(&mut self) {
        self.shared.carried.fetch_sub(1, Ordering::AcqRel);
        self.shared.settled.notify_waiters();
        if !self.is_finished {
            warn!(target: "spinneret.lease", "a call was cut off by the end of its runtime: its lease ends by itself");
        }
    }
}

async fn work(mut working: Working) {
    working.stage = Stage::Begun;
    let shared = Arc::clone(&working.shared);
    let mut calls = FuturesUnordered::new();
    loop {
        let mut rest = None;
        while calls.len() < AT_ONCE {
            let mut state = shared.lock();
            match state.errands.next(Instant::now()) {
                Next::Do(errand) => calls.push(attempt(Arc::clone(&shared.wire), errand)),
                Next::Rest(until) => {
                    rest = Some(until);
                    break;
                }
                Next::Nothing if calls.is_empty() => {
                    // Under the same lock as the look before: whoever adds something now starts another task.
                    state.is_working = false;
                    working.stage = Stage::Over;
                    return;
                }
                Next::Nothing => break,
            }
        }
        tokio::select! {
            Some((errand, result)) = calls.next(), if !calls.is_empty() => {
                shared.settle(errand, result);
                shared.settled.notify_waiters();
            }
            () = shared.news.notified() => {}
            () = sleep_until(rest.unwrap_or_else(Instant::now)), if rest.is_some() => {}
        }
    }
}

async fn attempt(wire: Arc<Wire>, errand: Errand) -> (Errand, Result<()>) {
    let result = match &errand.what {
        What::Release => settle::release(&wire, &errand.lease_id).await,
        What::Deliver(report) => settle::deliver(&wire, Report::clone(report)).await,
    };
    (errand, result)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::*;
    use crate::spinneret::retry::{RetryPolicy, Timeouts};
    use crate::spinneret::testing::Script;

    /// The next task may begin between the last look of this one and its end.
    #[test]
    fn a_task_that_is_over_leaves_the_work_of_the_next_one_alone() {
        let releaser = Releaser::new(Arc::new(Wire::new(Script::new(), Timeouts::default(), RetryPolicy::NO_RETRY)));
        for (stage, is_left_alone) in [(Stage::Over, true), (Stage::Begun, false), (Stage::New, false)] {
            let mut state = releaser.shared.lock();
            state.errands = Errands::default();
            state.errands.add(Errand::release("lse_1", None, Instant::now()));
            state.errands.next(Instant::now());
            state.is_working = true;
            drop(state);
            drop(Working { shared: Arc::clone(&releaser.shared), stage });
            let mut state = releaser.shared.lock();
            assert_eq!(state.is_working, is_left_alone);
            assert_eq!(matches!(state.errands.next(Instant::now()), Next::Nothing), is_left_alone);
        }
    }
}
