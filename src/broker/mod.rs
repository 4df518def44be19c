//! The lease broker: gets leases for the engine's tickets, keeps them alive and gives them back.
//!
//! Asks a [`ControlPlane`] and never waits for it in a handler. Decides nothing but when to ask: what a
//! refusal means for a request is the engine's business. Renewals outlive its panic; an ask in progress is
//! lost with its slot for the engine to repeat, and its lease, if one comes, is given back.

mod call;
pub mod gate;
pub mod message;
mod renewals;
pub mod rules;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

pub(crate) use self::call::Call;
pub use self::call::Net;
use self::gate::{Gates, Pass};
use self::message::{Control, Leased, Order, Refused, RenewFailed};
use self::renewals::{DueLease, Renewals};
use crate::actor::{Cx, Facts, Slot, Timer, Worker};
use crate::api::stats::Stats;
use crate::backoff::Backoff;
use crate::engine::message::Fact;
use crate::engine::ticket::Tag;
use crate::plane::{Ask, ControlPlane, Grant, LeaseId, PlaneError, Refusal, RefusalKind};

/// A lease is given back in so many tries; after that it expires at the plane.
const RELEASE_TRIES: u32 = 4;

/// A renewal the plane cannot be reached for is tried so often before its attempt has to end.
const RENEW_TRIES: u32 = 3;

/// A renewed lease is not renewed again before this, whatever its expiry.
const RENEW_LEAST: Duration = Duration::from_secs(1);

/// What a broker is made of. The same parts make its successor.
#[derive(Clone)]
pub struct Parts {
    /// The control plane.
    pub plane: Arc<dyn ControlPlane>,
    /// The way to the engine.
    pub engine: Facts<Fact>,
    /// Where calls run that are not answered at once.
    pub net: Net,
    /// `lease/…` counters.
    pub stats: Stats,
    /// Counts the releases under way.
    pub releasing: Releasing,
    /// The leases to keep alive.
    pub keeping: Keeping,
    /// For the jitter of waits.
    pub seed: u64,
}

/// The leases a broker and its successors keep alive; clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Keeping(Arc<Mutex<Renewals>>);

impl Keeping {
    fn renewals(&self) -> MutexGuard<'_, Renewals> {
        // Nothing that changes them can panic half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many leases are being given back right now; the last step of a shutdown waits for none.
#[derive(Debug, Clone, Default)]
pub struct Releasing(Arc<AtomicUsize>);

impl Releasing {
    /// Releases begun and not yet over.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    fn begin(&self) -> ReleaseUnderWay {
        self.0.fetch_add(1, Ordering::SeqCst);
        ReleaseUnderWay(Arc::clone(&self.0))
    }
}

/// Ends its count however the release ends.
struct ReleaseUnderWay(Arc<AtomicUsize>);

impl Drop for ReleaseUnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The actor.
pub struct LeaseBroker {
    parts: Parts,
    gates: Gates,
    backoff: Backoff,
    tick: Option<(Instant, Timer)>,
    /// What this turn has to tell the engine.
    facts: Vec<Fact>,
    acquired: i64,
}

impl LeaseBroker {
    /// A broker of `parts`, with open gates.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        Self {
            gates: Gates::new(parts.seed),
            backoff: Backoff::new(parts.seed.rotate_left(32)),
            tick: None,
            facts: Vec::new(),
            acquired: 0,
            parts,
        }
    }

    fn acquire(&mut self, tag: Tag, ask: Ask, slot: Slot, cx: &mut Cx<'_, Self>) {
        if !self.gates.are_open()
            && let Pass::Hold(refusal) = self.gates.pass(&ask, Instant::now())
        {
            self.parts.stats.inc("lease/held");
            let wait = refusal.retry_after.unwrap_or_default();
            self.facts.push(Fact::Refused(Refused { tag, refusal, wait }));
            return;
        }
        let plane = Arc::clone(&self.parts.plane);
        let late = Arc::clone(&plane);
        let asked = ask.clone();
        let call = self.parts.net.begin(async move { plane.acquire(asked).await }, move |answer| {
            Box::pin(async move {
                if let Ok(grant) = answer {
                    // Nobody will use it, and an answer would change nothing: left alone it expires.
                    let _ = late.release(grant.lease).await;
                }
            })
        });
        match call {
            Call::Over(answer) => self.answer(tag, &ask, answer),
            Call::Waiting(waiting) => {
                let begun = Instant::now();
                cx.spawn(waiting, move |broker, answer, _| {
                    let answer = answer.unwrap_or_else(|| Err(lost_call()));
                    if answer.is_ok() {
                        let waited = i64::try_from(begun.elapsed().as_millis()).unwrap_or(i64::MAX);
                        broker.parts.stats.max("lease/wait_ms_max", waited);
                    }
                    broker.answer(tag, &ask, answer);
                    drop(slot); // held until here: asks in progress count against the link's bound
                });
            }
        }
    }

    fn answer(&mut self, tag: Tag, ask: &Ask, answer: Result<Grant, Refusal>) {
        match answer {
            Ok(grant) => {
                self.gates.granted(ask);
                self.acquired += 1;
                self.facts.push(Fact::Leased(Leased { tag, grant }));
            }
            Err(refusal) => {
                self.parts.stats.inc(format!("lease/refused/{}", refusal.why.name()));
                let wait = self.gates.refused(ask, &refusal, Instant::now());
                let (site, client, group) = (&*ask.site, &*ask.client, &*ask.group);
                tracing::debug!(site, client, group, why = refusal.why.name(), ?wait, "lease refused: {}", refusal.message);
                self.facts.push(Fact::Refused(Refused { tag, refusal, wait }));
            }
        }
    }

    fn release(&mut self, lease: LeaseId, cx: &mut Cx<'_, Self>) {
        self.parts.keeping.renewals().forget(&lease);
        let plane = Arc::clone(&self.parts.plane);
        let under_way = self.parts.releasing.begin();
        let waits: Vec<Duration> = (1..RELEASE_TRIES).map(|n| self.backoff.wait(n)).collect();
        let call = self.parts.net.run(async move {
            let _under_way = under_way;
            let mut waits = waits.into_iter();
            loop {
                match plane.release(lease.clone()).await {
                    // One that is over already is where it should be.
                    Ok(()) | Err(PlaneError::NoLease(_)) => return Ok(()),
                    Err(e @ PlaneError::Unauthorized(_)) => return Err((lease, e)),
                    Err(e) => match waits.next() {
                        Some(wait) => tokio::time::sleep(wait).await,
                        None => return Err((lease, e)),
                    },
                }
            }
        });
        let end = |broker: &mut Self, how: Option<Result<(), (LeaseId, PlaneError)>>| match how {
            Some(Ok(())) => broker.parts.stats.inc("lease/released"),
            Some(Err((lease, e))) => {
                broker.parts.stats.inc("lease/release_failed");
                tracing::warn!(lease = &*lease.0, "lease could not be given back and will expire: {e}");
            }
            None => broker.parts.stats.inc("lease/release_failed"),
        };
        match call {
            Call::Over(how) => end(self, Some(how)),
            Call::Waiting(waiting) => cx.spawn(waiting, move |broker, how, _| end(broker, how)),
        }
    }

    fn renew_due(&mut self, cx: &mut Cx<'_, Self>) {
        loop {
            // The guard must be gone before an answer at once locks again.
            let due = self.parts.keeping.renewals().due(Instant::now());
            let Some(due) = due else { return };
            let (plane, lease) = (Arc::clone(&self.parts.plane), due.lease.clone());
            match self.parts.net.run(async move { plane.renew(lease).await }) {
                Call::Over(how) => self.renewed(due, how),
                Call::Waiting(waiting) => cx.spawn(waiting, move |broker, how, _| {
                    let lost = || Err(PlaneError::Unavailable("the call to renew the lease failed".to_owned()));
                    broker.renewed(due, how.unwrap_or_else(lost));
                }),
            }
        }
    }

    fn renewed(&mut self, due: DueLease, how: Result<Instant, PlaneError>) {
        let now = Instant::now();
        match how {
            Ok(expires_at) => {
                // The plane's own hint is a quarter of the lease's time before it ends.
                let left = expires_at.saturating_duration_since(now);
                if self.parts.keeping.renewals().renewed(due, now + (left * 3 / 4).max(RENEW_LEAST)) {
                    self.parts.stats.inc("lease/renewed");
                }
            }
            Err(e) => {
                let Some(failures) = self.parts.keeping.renewals().failed(&due) else { return };
                if matches!(e, PlaneError::Unavailable(_)) && failures < RENEW_TRIES {
                    let wait = self.backoff.wait(failures);
                    self.parts.keeping.renewals().again(due, now + wait);
                } else if let Some(tag) = self.parts.keeping.renewals().give_up(&due) {
                    self.parts.stats.inc("lease/renew_failed");
                    self.facts.push(Fact::RenewFailed(RenewFailed { tag, lease: due.lease, why: e.to_string() }));
                }
            }
        }
    }

    /// Sees to it that a tick comes no later than the next renewal.
    fn arm(&mut self, cx: &mut Cx<'_, Self>) {
        let Some(next) = self.parts.keeping.renewals().next() else { return };
        if self.tick.is_some_and(|(at, _)| at <= next) {
            return;
        }
        if let Some((_, timer)) = self.tick.take() {
            cx.cancel(timer);
        }
        let timer = cx.after(next.saturating_duration_since(Instant::now()), Control::Tick);
        self.tick = Some((next, timer));
    }
}

impl Worker for LeaseBroker {
    type Order = Order;
    type Control = Control;

    fn started(&mut self, cx: &mut Cx<'_, Self>) {
        self.parts.keeping.renewals().recover(Instant::now());
        self.arm(cx);
    }

    fn handle(&mut self, order: Order, slot: Slot, cx: &mut Cx<'_, Self>) {
        match order {
            Order::Acquire { tag, ask } => self.acquire(tag, ask, slot, cx),
        }
    }

    fn control(&mut self, control: Control, cx: &mut Cx<'_, Self>) {
        match control {
            Control::Release(lease) => self.release(lease, cx),
            Control::Renew { lease, tag, at } => self.parts.keeping.renewals().want(lease, tag, at),
            Control::Renewed(lease) => self.parts.keeping.renewals().forget(&lease),
            Control::CameBack(site) => self.gates.came_back(&site, Instant::now()),
            Control::Tick => {
                self.tick = None;
                self.renew_due(cx);
            }
        }
    }

    fn turn_end(&mut self, cx: &mut Cx<'_, Self>) {
        if self.acquired > 0 {
            self.parts.stats.add("lease/acquired", std::mem::take(&mut self.acquired));
        }
        if !self.facts.is_empty() {
            self.parts.engine.post_all(self.facts.drain(..));
        }
        self.arm(cx);
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").field("net", &self.net).field("releasing", &self.releasing).finish_non_exhaustive()
    }
}

impl fmt::Debug for LeaseBroker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseBroker").field("parts", &self.parts).field("gates", &self.gates).finish_non_exhaustive()
    }
}

fn lost_call() -> Refusal {
    Refusal {
        why: RefusalKind::Unreachable,
        retry_after: None,
        message: "the call to the control plane failed; the log has its panic".to_owned(),
    }
}
