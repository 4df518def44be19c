//! A control plane that answers as a test says, when it says, and remembers what it was asked.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::{About, Ask, ControlPlane, Grant, IdentityKey, LeaseId, PlaneError, PlaneLedger, Refusal, Report, Taken};

/// How one call goes.
pub(crate) enum Act<T> {
    /// Answered when first polled.
    Now(T),
    /// Answered after this time.
    After(Duration, T),
    /// Answered when the test opens [`Scripted::door`].
    AtDoor(T),
    /// Panics.
    Panic,
}

/// One kind of call: its script, and what it does when that is over.
type Script<T> = Mutex<VecDeque<Act<T>>>;

pub(crate) struct Scripted {
    pub(crate) acquires: Script<Result<Grant, Refusal>>,
    pub(crate) batches: Script<Result<Vec<Grant>, Refusal>>,
    pub(crate) reports: Script<Result<Taken, PlaneError>>,
    pub(crate) releases: Script<Result<(), PlaneError>>,
    pub(crate) renewals: Script<Result<Instant, PlaneError>>,
    /// Sites that get no lease, whatever the script.
    pub(crate) refusing: Mutex<HashMap<String, Refusal>>,
    pub(crate) door: Semaphore,
    remote: bool,
    calls: Mutex<Vec<String>>,
}

impl Scripted {
    /// A plane in process.
    pub(crate) fn new() -> Arc<Self> {
        Self::of(false)
    }

    /// A plane over the network.
    pub(crate) fn remote() -> Arc<Self> {
        Self::of(true)
    }

    fn of(remote: bool) -> Arc<Self> {
        Arc::new(Self {
            remote,
            acquires: Script::default(),
            refusing: Mutex::default(),
            batches: Script::default(),
            reports: Script::default(),
            releases: Script::default(),
            renewals: Script::default(),
            door: Semaphore::new(0),
            calls: Mutex::default(),
        })
    }

    /// What was asked so far, one word and one name each.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap().clone()
    }

    fn refused(&self, call: &str, ask: &Ask) -> Option<Refusal> {
        let refusal = self.refusing.lock().unwrap().get(&*ask.site).cloned()?;
        self.calls.lock().unwrap().push(call.to_owned());
        Some(refusal)
    }

    async fn play<T>(&self, call: String, script: &Script<T>, default: impl FnOnce() -> T) -> T {
        self.calls.lock().unwrap().push(call);
        let act = script.lock().unwrap().pop_front();
        match act {
            None => default(),
            Some(Act::Now(answer)) => answer,
            Some(Act::After(time, answer)) => {
                tokio::time::sleep(time).await;
                answer
            }
            Some(Act::AtDoor(answer)) => {
                self.door.acquire().await.unwrap().forget();
                answer
            }
            Some(Act::Panic) => panic!("a scripted panic"),
        }
    }
}

pub(crate) fn grant(lease: &str) -> Grant {
    Grant {
        lease: LeaseId(lease.into()),
        identity: IdentityKey { site: "shop".into(), name: "a".into() },
        credential: Arc::default(),
        proxy: None,
        about: About::default(),
        expires_at: Instant::now() + Duration::from_secs(300),
        renew_before: Duration::from_secs(75),
    }
}

impl ControlPlane for Scripted {
    fn acquire(&self, ask: Ask) -> BoxFuture<'_, Result<Grant, Refusal>> {
        if let Some(refusal) = self.refused(&format!("acquire {}", ask.site), &ask) {
            return Box::pin(std::future::ready(Err(refusal)));
        }
        Box::pin(self.play(format!("acquire {}", ask.site), &self.acquires, || Ok(grant("lse"))))
    }

    fn acquire_batch(&self, ask: Ask, count: usize) -> BoxFuture<'_, Result<Vec<Grant>, Refusal>> {
        if let Some(refusal) = self.refused(&format!("batch {} {count}", ask.site), &ask) {
            return Box::pin(std::future::ready(Err(refusal)));
        }
        let all = move || Ok((0..count).map(|_| grant("lse")).collect());
        Box::pin(self.play(format!("batch {} {count}", ask.site), &self.batches, all))
    }

    fn report(&self, reports: Vec<Report>) -> BoxFuture<'_, Result<Taken, PlaneError>> {
        let ids: Vec<String> = reports.iter().map(|report| report.id.to_string()).collect();
        Box::pin(self.play(format!("report {}", ids.join(",")), &self.reports, || Ok(Taken::default())))
    }

    fn release(&self, lease: LeaseId) -> BoxFuture<'_, Result<(), PlaneError>> {
        Box::pin(self.play(format!("release {}", lease.0), &self.releases, || Ok(())))
    }

    fn renew(&self, lease: LeaseId) -> BoxFuture<'_, Result<Instant, PlaneError>> {
        let default = || Ok(Instant::now() + Duration::from_secs(300));
        Box::pin(self.play(format!("renew {}", lease.0), &self.renewals, default))
    }

    fn is_remote(&self) -> bool {
        self.remote
    }

    fn ledger(&self) -> Option<PlaneLedger> {
        None
    }
}
