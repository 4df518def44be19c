//! The lease broker: gets leases for the engine's tickets, keeps them alive and gives them back.
//!
//! Asks a [`ControlPlane`] and never waits for it in a handler. Decides nothing but when to ask, and together
//! with what: what a refusal means for a request is the engine's business. Renewals, queued releases and what
//! the plane switched off outlive its panic; an ask in progress is lost with its slot for the engine to repeat,
//! and its lease, if one comes, is given back.

mod acquire;
mod call;
mod coalesce;
pub mod gate;
pub mod message;
mod presence;
mod releases;
mod renewals;
pub mod rules;
pub mod runtime;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use self::acquire::Waiter;
pub(crate) use self::call::Call;
pub use self::call::Net;
use self::coalesce::Coalescer;
use self::gate::Gates;
use self::message::{Control, Order, RenewFailed};
use self::presence::Presence;
pub use self::releases::Releasing;
use self::renewals::{Due, DueLease, Renewals};
use self::runtime::RuntimeState;
use crate::actor::{Cx, Facts, Slot, Timer, Worker};
use crate::api::stats::Stats;
use crate::backoff::Backoff;
use crate::engine::message::Fact;
use crate::plane::{ControlPlane, LeaseId, PlaneError};

/// A lease is given back in at most so many tries; after that it expires at the plane.
const RELEASE_TRIES: u32 = 4;

/// So many releases are under way at once; the others queue. A stop may give thousands back.
const RELEASES_AT_ONCE: usize = 32;

/// A renewal the plane cannot be reached for is tried so often before its attempt has to end.
const RENEW_TRIES: u32 = 3;

/// Sites whose pauses and breakers are told.
const SITES_TOLD: usize = 256;

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
    /// How long a remote plane may answer nobody before the job is told that it is lost; `None`: for ever.
    pub unavailable_timeout: Option<Duration>,
    /// For the jitter of waits.
    pub seed: u64,
}

/// What a broker and its successors keep: the leases to keep alive, and what the plane switched off. Clones are the
/// same.
#[derive(Debug, Clone, Default)]
pub struct Keeping(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    renewals: Renewals,
    runtime: RuntimeState,
}

impl Keeping {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        // Nothing that changes them can panic half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The actor.
pub struct LeaseBroker {
    parts: Parts,
    gates: Gates,
    coalescer: Coalescer<Waiter>,
    /// Whether the plane answers; none for one in process, which does.
    presence: Option<Presence>,
    /// The sites that were asked for: what is switched off there is told.
    asked: BTreeSet<Arc<str>>,
    /// The plane tells what is switched off: then it tells too when that is over.
    is_told: bool,
    backoff: Backoff,
    tick: Option<(Instant, Timer)>,
    /// What this turn has to tell the engine.
    facts: Vec<Fact>,
    acquired: i64,
    /// Releases under way that this incarnation began.
    giving_back: usize,
}

impl LeaseBroker {
    /// A broker of `parts`, with open gates.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        Self {
            gates: Gates::new(parts.seed),
            coalescer: Coalescer::new(),
            presence: parts.plane.is_remote().then(|| Presence::new(parts.unavailable_timeout)),
            asked: BTreeSet::new(),
            is_told: false,
            backoff: Backoff::new(parts.seed.rotate_left(32)),
            tick: None,
            facts: Vec::new(),
            acquired: 0,
            giving_back: 0,
            parts,
        }
    }

    /// Begins as many releases as may be under way.
    fn give_back(&mut self, cx: &mut Cx<'_, Self>) {
        while self.giving_back < RELEASES_AT_ONCE {
            let Some((lease, under_way)) = self.parts.releasing.begin() else { return };
            let plane = Arc::clone(&self.parts.plane);
            // A plane that was given up is not waited for: the job is about to end.
            let tries = if self.presence.as_ref().is_some_and(Presence::is_given_up) { 1 } else { RELEASE_TRIES };
            let waits: Vec<Duration> = (1..tries).map(|n| self.backoff.wait(n)).collect();
            let begun = self.presence.is_some().then(Instant::now);
            let call = self.parts.net.run(async move {
                let _under_way = under_way;
                let mut waits = waits.into_iter();
                loop {
                    match plane.release(lease.clone()).await {
                        Err(PlaneError::Unavailable(e)) => match waits.next() {
                            Some(wait) => tokio::time::sleep(wait).await,
                            None => return (lease, Err(PlaneError::Unavailable(e))),
                        },
                        how => return (lease, how),
                    }
                }
            });
            match call {
                Call::Over(how) => self.given_back(Some(how), None), // no answer over a network comes at once
                Call::Waiting(waiting) => {
                    self.giving_back += 1;
                    cx.spawn(waiting, move |broker, how, _| {
                        broker.giving_back = broker.giving_back.saturating_sub(1);
                        broker.given_back(how, begun);
                    });
                }
            }
        }
    }

    fn given_back(&mut self, how: Option<(LeaseId, Result<(), PlaneError>)>, begun: Option<Instant>) {
        let Some((lease, how)) = how else {
            self.parts.stats.inc("lease/release_failed"); // the log has the panic
            return;
        };
        self.learn(begun, "a lease was given back", &how);
        match how {
            // One that is over already is where it should be.
            Ok(()) | Err(PlaneError::NoLease(_)) => self.parts.stats.inc("lease/released"),
            Err(PlaneError::UnknownLease(_)) => self.parts.stats.inc("lease/unknown_to_plane"),
            Err(e) => {
                self.parts.stats.inc("lease/release_failed");
                tracing::warn!(lease = &*lease.0, "lease could not be given back and will expire: {e}");
            }
        }
    }

    fn renew_due(&mut self, cx: &mut Cx<'_, Self>) {
        loop {
            // The guard must be gone before an answer at once locks again.
            let due = self.parts.keeping.lock().renewals.due(Instant::now());
            let due = match due {
                Some(Due::Renew(due)) => due,
                Some(Due::Expired { lease, tag }) => {
                    let why = "the control plane did not renew it before it expired".to_owned();
                    self.renewal_failed(RenewFailed { tag, lease, why });
                    continue;
                }
                None => return,
            };
            let (plane, lease) = (Arc::clone(&self.parts.plane), due.lease.clone());
            let begun = self.presence.is_some().then(Instant::now);
            match self.parts.net.run(async move { plane.renew(lease).await }) {
                Call::Over(how) => self.renewed(due, how, None),
                Call::Waiting(waiting) => cx.spawn(waiting, move |broker, how, _| {
                    let lost = || Err(PlaneError::Unavailable("the call to renew the lease failed".to_owned()));
                    broker.renewed(due, how.unwrap_or_else(lost), begun);
                }),
            }
        }
    }

    fn renewed(&mut self, due: DueLease, how: Result<Instant, PlaneError>, begun: Option<Instant>) {
        self.learn(begun, "a lease was renewed", &how);
        let now = Instant::now();
        match how {
            Ok(expires_at) => {
                // The plane's own hint is a quarter of the lease's time before it ends.
                let left = expires_at.saturating_duration_since(now);
                let next = now + (left * 3 / 4).max(RENEW_LEAST);
                if self.parts.keeping.lock().renewals.renewed(due, next, expires_at) {
                    self.parts.stats.inc("lease/renewed");
                }
            }
            Err(e) => {
                let Some(failures) = self.parts.keeping.lock().renewals.failed(&due) else { return };
                if matches!(e, PlaneError::Unavailable(_)) && failures < RENEW_TRIES {
                    let wait = self.backoff.wait(failures);
                    self.parts.keeping.lock().renewals.again(due, now + wait);
                    return;
                }
                let tag = self.parts.keeping.lock().renewals.give_up(&due);
                if let Some(tag) = tag {
                    self.renewal_failed(RenewFailed { tag, lease: due.lease, why: e.to_string() });
                }
            }
        }
    }

    fn renewal_failed(&mut self, failed: RenewFailed) {
        self.parts.stats.inc("lease/renew_failed");
        self.facts.push(Fact::RenewFailed(failed));
    }

    /// Remembers that the site is asked for; says what is switched off there.
    fn note_site(&mut self, site: &Arc<str>) {
        if self.asked.len() >= SITES_TOLD || !self.asked.insert(Arc::clone(site)) {
            return;
        }
        let news = self.parts.keeping.lock().runtime.news(&RuntimeState::default(), |name| name == &**site);
        for line in news {
            tracing::info!("{line}");
        }
    }

    /// Takes over what the plane says is switched off.
    fn runtime(&mut self, state: RuntimeState) {
        let before = std::mem::replace(&mut self.parts.keeping.lock().runtime, state.clone());
        self.is_told = state.is_known();
        for line in state.news(&before, |site| self.asked.contains(site)) {
            tracing::info!("{line}");
        }
        state.apply(&before, &mut self.gates, Instant::now(), Timestamp::now());
    }

    /// Learns from a call begun at `begun` whether the plane answers.
    fn learn<T>(&mut self, begun: Option<Instant>, tried: &str, how: &Result<T, PlaneError>) {
        let Some(begun) = begun else { return };
        match how {
            Err(PlaneError::Unavailable(e)) => self.missed(begun, Instant::now(), tried, e),
            _ => self.heard(Instant::now()),
        }
    }

    fn heard(&mut self, now: Instant) {
        if let Some(away) = self.presence.as_mut().and_then(|presence| presence.heard(now)) {
            self.parts.stats.max("lease/plane_away_ms_max", millis(away));
            tracing::info!("the control plane answers again, after {:.1} s", away.as_secs_f64());
        }
    }

    fn missed(&mut self, begun: Instant, now: Instant, tried: &str, error: &str) {
        let Some(presence) = &mut self.presence else { return };
        if presence.missed(begun, now, error) {
            let most = match self.parts.unavailable_timeout {
                Some(most) => format!("for at most {} s (SPINNERET_UNAVAILABLE_TIMEOUT)", most.as_secs_f64()),
                None => "for as long as it takes (SPINNERET_UNAVAILABLE_TIMEOUT is 0)".to_owned(),
            };
            tracing::warn!("the control plane does not answer: {tried}: {error}; the crawl waits and asks again, {most}");
        }
        self.judge(now);
    }

    /// Tells the engine when the plane is away for too long.
    fn judge(&mut self, now: Instant) {
        let Some((away, error)) = self.presence.as_mut().and_then(|presence| presence.lost(now)) else { return };
        self.parts.stats.max("lease/plane_away_ms_max", millis(away));
        let limit = self.parts.unavailable_timeout.unwrap_or_default().as_secs_f64();
        self.facts.push(Fact::PlaneLost(format!(
            "the control plane at SPINNERET_URL has answered nothing for {:.1} s (SPINNERET_UNAVAILABLE_TIMEOUT = {limit}); the last \
             error: {error}; see that it runs and that this machine reaches it, then start the job again, or set \
             SPINNERET_UNAVAILABLE_TIMEOUT = 0 to wait for ever",
            away.as_secs_f64()
        )));
    }

    /// Sees to it that a tick comes no later than the next renewal, and than the plane is given up.
    fn arm(&mut self, cx: &mut Cx<'_, Self>) {
        let deadline = self.presence.as_ref().and_then(Presence::deadline);
        let Some(next) = self.parts.keeping.lock().renewals.next().into_iter().chain(deadline).min() else { return };
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
        self.parts.keeping.lock().renewals.recover(Instant::now());
        let runtime = self.parts.keeping.lock().runtime.clone();
        self.runtime(runtime);
        self.arm(cx);
    }

    fn handle(&mut self, order: Order, slot: Slot, cx: &mut Cx<'_, Self>) {
        match order {
            Order::Acquire { tag, ask } => self.acquire(tag, ask, slot, cx),
        }
    }

    fn control(&mut self, control: Control, cx: &mut Cx<'_, Self>) {
        match control {
            Control::Release(lease) => {
                self.parts.keeping.lock().renewals.forget(&lease);
                self.parts.releasing.want(lease);
            }
            Control::Renew { lease, tag, at, expires_at } => {
                self.parts.keeping.lock().renewals.want(lease, tag, at, expires_at);
            }
            Control::Renewed(lease) => self.parts.keeping.lock().renewals.forget(&lease),
            Control::CameBack(site) => self.gates.came_back(&site, Instant::now()),
            Control::Runtime(state) => self.runtime(state),
            Control::Heard => self.heard(Instant::now()),
            Control::Missed { begun, tried, error } => self.missed(begun, Instant::now(), tried, &error),
            Control::Tick => {
                self.tick = None;
                self.renew_due(cx);
                self.judge(Instant::now());
            }
        }
    }

    fn turn_end(&mut self, cx: &mut Cx<'_, Self>) {
        self.begin_calls(cx);
        let releasing = self.parts.releasing.count();
        if releasing > 0 {
            self.parts.stats.max("lease/releasing_max", i64::try_from(releasing).unwrap_or(i64::MAX));
            self.give_back(cx);
        }
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

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
