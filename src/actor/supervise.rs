//! Supervision: restarts what panics, within a budget, and reports every end.
//!
//! actix restarts nothing after a panic and loses the mailbox. Here the inbox stays, a factory builds the
//! successor on the same thread after a back-off, and the epoch keeps an abandoned incarnation from taking
//! another message. Nothing is decided about the crawl: whoever gets [`Died`] reissues or gives up.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use super::host::{panic_text, start};
use super::lane::{Hand, lock};
use super::place::Place;
use super::policy::Policy;
use super::{Epoch, Inbox, Worker};

/// The end of an incarnation, or of the actor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Died {
    /// Name of the inbox.
    pub name: &'static str,
    /// The incarnation that ended.
    pub epoch: Epoch,
    /// How it ended.
    pub how: How,
    /// Orders and facts lost: the one in hand; at the end of the actor, also those still queued; at a
    /// replacement, every order whose slot the incarnation held. Work a panicked worker had kept for later
    /// is not in it: whoever ordered it knows.
    pub lost: usize,
}

/// How an incarnation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// It panicked with this text. A successor follows, unless [`How::GaveUp`] or [`How::Stopped`] does.
    Panicked(String),
    /// It was told to stop, stopped itself, or its thread ended. There is no successor.
    Stopped,
    /// It panicked once more than its policy allows. There is no successor.
    GaveUp,
    /// It was abandoned for a successor by [`Supervised::replace`].
    Replaced,
}

/// What a drain achieved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Orders and facts finished since the drain began.
    pub done: usize,
    /// Orders and facts lost, or still queued or in progress at the limit.
    pub lost: usize,
}

/// Starts an actor at `place` that serves `inbox`, and keeps it running as `policy` says.
///
/// `factory` builds each incarnation on the actor's own thread; `died` is called at every end, on the
/// thread that notices it, and must not block.
///
/// An inbox has one actor at a time, and none after its actor has ended for good: then this reports
/// [`How::Stopped`] at once. With [`Place::Here`] this must be called within a `LocalSet`; elsewhere it panics, as
/// [`tokio::task::spawn_local`] does.
pub fn supervise<W, F>(
    place: Place,
    inbox: &Inbox<W>,
    policy: Policy,
    factory: F,
    died: impl Fn(Died) + Send + Sync + 'static,
) -> Supervised<W>
where
    W: Worker,
    F: Fn(Epoch) -> W + Send + Sync + 'static,
{
    let epoch = inbox.lanes.serving().next();
    inbox.lanes.serve(epoch);
    let supervisor = Arc::new(Supervisor {
        inbox: inbox.clone(),
        policy,
        factory: Box::new(factory),
        died: Box::new(died),
        state: Mutex::new(State { epoch, ended: false, restarts: VecDeque::new(), hand: Arc::default() }),
    });
    let tenure = Tenure::new(&supervisor, epoch, Arc::clone(&lock(&supervisor.state).hand));
    if inbox.lanes.data.is_shut() {
        drop(tenure); // an inbox whose actor has ended serves no other: says `Stopped` at once
    } else {
        launch(place, tenure);
    }
    Supervised { supervisor }
}

/// A running actor. Clones are the same actor; dropping them leaves it running.
pub struct Supervised<W: Worker> {
    supervisor: Arc<Supervisor<W>>,
}

impl<W: Worker> Supervised<W> {
    /// Abandons the present incarnation, which may be stuck, and starts a successor at `place`.
    ///
    /// From the return of this call on the abandoned one takes no message, fires no timer and finishes no
    /// future, even if it wakes later. The slots it holds are written off, so the successor has the whole
    /// bound. Never blocks on the abandoned thread. `false` when the actor has ended for good. Replacements
    /// do not count against the restart budget.
    pub fn replace(&self, place: Place) -> bool {
        let s = &self.supervisor;
        let lanes = &s.inbox.lanes;
        let (old, hand, tenure) = {
            let mut state = lock(&s.state);
            if state.ended {
                return false;
            }
            let old = state.epoch;
            state.epoch = old.next();
            lanes.serve(state.epoch);
            let hand = std::mem::take(&mut state.hand);
            (old, hand, Tenure::new(s, state.epoch, Arc::clone(&state.hand)))
        };
        // An order in hand holds its slot as a rule, but its handler may have given it back already.
        let held = lanes.data.permits.write_off() + usize::from(hand.holds_fact());
        let lost = held.max(usize::from(!hand.is_empty()));
        lanes.data.gauges.discarded.fetch_add(lost as u64, Ordering::Relaxed);
        lanes.data.gauges.restarts.fetch_add(1, Ordering::Relaxed);
        lanes.data.permits.notify_settled();
        s.report(old, How::Replaced, lost);
        launch(place, tenure);
        true
    }

    /// Refuses new orders and waits until the data lane is empty and every slot is back.
    ///
    /// Slots a worker keeps count as work in progress; facts and controls are still taken. The actor goes
    /// on running: call [`stop`](Self::stop) afterwards. Needs a runtime with time.
    pub async fn drain(&self, within: Duration) -> Drained {
        use std::sync::atomic::Ordering::Relaxed;
        let lanes = &self.supervisor.inbox.lanes;
        let gauges = &lanes.data.gauges;
        let permits = &lanes.data.permits;
        permits.begin_drain();
        permits.close();
        let discarded = gauges.discarded.load(Relaxed);
        let accepted = gauges.accepted.load(Relaxed);
        let begun = lanes.outstanding(&self.hand());
        let quiet = async {
            loop {
                let settled = permits.settled().notified();
                let mut settled = std::pin::pin!(settled);
                settled.as_mut().enable();
                if lanes.data.is_shut() || lanes.is_quiet(&self.hand()) {
                    return;
                }
                settled.await;
            }
        };
        let in_time = tokio::time::timeout(within, quiet).await.is_ok();
        let left = if in_time { 0 } else { lanes.outstanding(&self.hand()) };
        let count = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let lost = left + count(gauges.discarded.load(Relaxed) - discarded);
        let all = begun + count(gauges.accepted.load(Relaxed) - accepted);
        Drained { done: all.saturating_sub(lost), lost }
    }

    /// Has the actor end before its next message; what is queued is dropped and counted in [`Died`].
    pub fn stop(&self) {
        self.supervisor.inbox.lanes.bell.halt();
    }

    /// The incarnation that serves now.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        lock(&self.supervisor.state).epoch
    }

    /// Whether the actor has ended for good.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        lock(&self.supervisor.state).ended
    }

    /// The inbox it serves.
    #[must_use]
    pub fn inbox(&self) -> &Inbox<W> {
        &self.supervisor.inbox
    }

    fn hand(&self) -> Arc<Hand> {
        Arc::clone(&lock(&self.supervisor.state).hand)
    }
}

impl<W: Worker> Clone for Supervised<W> {
    fn clone(&self) -> Self {
        Self { supervisor: Arc::clone(&self.supervisor) }
    }
}

impl<W: Worker> fmt::Debug for Supervised<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervised").field("inbox", self.inbox()).field("epoch", &self.epoch()).finish()
    }
}

struct Supervisor<W: Worker> {
    inbox: Inbox<W>,
    policy: Policy,
    factory: Box<dyn Fn(Epoch) -> W + Send + Sync>,
    died: Box<dyn Fn(Died) + Send + Sync>,
    state: Mutex<State>,
}

struct State {
    epoch: Epoch,
    ended: bool,
    /// When the restarts within the policy's window were decided, oldest first.
    restarts: VecDeque<Instant>,
    hand: Arc<Hand>,
}

impl<W: Worker> Supervisor<W> {
    fn report(&self, epoch: Epoch, how: How, lost: usize) {
        let name = self.inbox.name();
        let died = Died { name, epoch, how, lost };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (self.died)(died))) {
            tracing::error!(actor = name, panic = panic_text(panic.as_ref()), "report of an actor's end panicked");
        }
    }

    /// Ends the actor for good and drops what is queued. The state must say so already.
    fn finish(&self, epoch: Epoch, how: How, in_hand: usize) {
        let lost = in_hand + self.inbox.lanes.shut();
        self.report(epoch, how, lost);
    }

    fn panicked(self: &Arc<Self>, epoch: Epoch, text: String, hand: &Hand) {
        let lanes = &self.inbox.lanes;
        let in_hand = usize::from(!hand.is_empty());
        let successor = {
            let mut state = lock(&self.state);
            if state.ended || state.epoch != epoch {
                return; // replaced: reported then
            }
            lanes.data.gauges.discarded.fetch_add(in_hand as u64, Ordering::Relaxed);
            let now = Instant::now();
            while state.restarts.front().is_some_and(|at| now.duration_since(*at) > self.policy.within) {
                state.restarts.pop_front();
            }
            let restarts = state.restarts.len();
            if restarts >= self.policy.max_restarts as usize {
                state.ended = true;
                None
            } else {
                state.restarts.push_back(now);
                state.epoch = epoch.next();
                lanes.serve(state.epoch);
                state.hand = Arc::default();
                let tenure = Tenure::new(self, state.epoch, Arc::clone(&state.hand));
                Some((tenure, self.policy.backoff(restarts)))
            }
        };
        self.report(epoch, How::Panicked(text), in_hand);
        match successor {
            Some((tenure, backoff)) => {
                lanes.data.gauges.restarts.fetch_add(1, Ordering::Relaxed);
                tokio::task::spawn_local(start_after(backoff, tenure));
            }
            None => self.finish(epoch, How::GaveUp, 0),
        }
        lanes.data.permits.notify_settled();
    }

    fn stopped(&self, epoch: Epoch, hand: &Hand) {
        {
            let mut state = lock(&self.state);
            if state.ended || state.epoch != epoch {
                return;
            }
            state.ended = true;
        }
        let in_hand = usize::from(!hand.is_empty());
        self.inbox.lanes.data.gauges.discarded.fetch_add(in_hand as u64, Ordering::Relaxed);
        self.finish(epoch, How::Stopped, in_hand);
    }
}

fn launch<W: Worker>(place: Place, tenure: Tenure<W>) {
    match place {
        Place::Here => start(tenure),
        // When the arbiter is gone the tenure is dropped there, and says so.
        Place::Arbiter(arbiter) => {
            arbiter.spawn_fn(move || start(tenure));
        }
    }
}

async fn start_after<W: Worker>(backoff: Duration, mut tenure: Tenure<W>) {
    let lanes = tenure.inbox().lanes.clone();
    let halted = lanes.bell.halted().notified();
    let mut halted = std::pin::pin!(halted);
    halted.as_mut().enable();
    if !lanes.bell.is_halted() && !backoff.is_zero() {
        tokio::select! {
            () = halted => {}
            () = tokio::time::sleep(backoff) => {}
        }
    }
    if lanes.bell.is_halted() {
        tenure.end(Some(End::Stopped));
    } else if tenure.is_current() {
        start(tenure);
    } else {
        tenure.end(None);
    }
}

/// How an incarnation tells its supervisor that it ends.
pub(crate) enum End {
    Panicked(String),
    Stopped,
}

/// The right of one incarnation to serve; dropped without an [`end`](Tenure::end) it counts as stopped,
/// as when its thread ends.
pub(crate) struct Tenure<W: Worker> {
    supervisor: Arc<Supervisor<W>>,
    epoch: Epoch,
    hand: Arc<Hand>,
    settled: bool,
}

impl<W: Worker> Tenure<W> {
    fn new(supervisor: &Arc<Supervisor<W>>, epoch: Epoch, hand: Arc<Hand>) -> Self {
        Self { supervisor: Arc::clone(supervisor), epoch, hand, settled: false }
    }

    pub(crate) fn inbox(&self) -> &Inbox<W> {
        &self.supervisor.inbox
    }

    pub(crate) const fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub(crate) fn hand(&self) -> &Hand {
        &self.hand
    }

    pub(crate) fn build(&self) -> W {
        (self.supervisor.factory)(self.epoch)
    }

    pub(crate) fn is_current(&self) -> bool {
        self.supervisor.inbox.lanes.bell.is_serving(self.epoch)
    }

    /// Reports the end; `None` for an incarnation that was replaced and has been reported.
    pub(crate) fn end(&mut self, end: Option<End>) {
        if std::mem::replace(&mut self.settled, true) {
            return;
        }
        match end {
            Some(End::Panicked(text)) => self.supervisor.panicked(self.epoch, text, &self.hand),
            Some(End::Stopped) => self.supervisor.stopped(self.epoch, &self.hand),
            None => {}
        }
    }
}

impl<W: Worker> Drop for Tenure<W> {
    fn drop(&mut self) {
        self.end(Some(End::Stopped));
    }
}
