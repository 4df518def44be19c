//! What stands in for the outside: the wire, the control plane, the sink, each with everything noted.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::script::Notes;
use crate::apcloudy::Answer as SinkAnswer;
use crate::api::failure::Fault;
use crate::collector::batch::Batch;
use crate::courier::{MemorySink, Pending, Webhook};
use crate::downloader::transport::{Meter, Outgoing, Reply, Transport};
use crate::plane::embedded::Embedded;
use crate::plane::{Ask, ControlPlane, Grant, LeaseId, PlaneError, PlaneLedger, Refusal, RefusalKind, Report, Taken};
use crate::scheduler::job::{Books, Job, Outcome as End, RequestId, SlotKey};
use crate::scheduler::store::{Cursors, Medium, Offered, Pulled, Store, StoreError};
use crate::testkit::transport::ScriptedTransport;

/// What the plane does with an ask.
pub(super) enum Judged {
    Grant,
    GrantAfter(Duration),
    Refuse(RefusalKind, Option<Duration>),
    Panic,
}

pub(super) type Judge = Box<dyn FnMut(&Ask, Duration) -> Judged + Send>;

/// The wire: notes when and what, and how much at once.
pub(super) struct Wire {
    pub(super) inner: ScriptedTransport,
    pub(super) notes: Arc<Notes>,
    pub(super) now: AtomicUsize,
    pub(super) most: AtomicUsize,
    /// The next look for idle clients panics.
    pub(super) tidy_panics: AtomicBool,
}

struct OnWire<'a>(&'a AtomicUsize);

impl Drop for OnWire<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Wire {
    pub(super) fn asked(&self) -> usize {
        self.inner.asked().len()
    }
}

impl Transport for Wire {
    fn exchange<'a>(&'a self, outgoing: Outgoing, meter: &'a dyn Meter) -> BoxFuture<'a, Result<Reply, Fault>> {
        self.notes.add(format!("{} {}", outgoing.method, outgoing.url));
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        Box::pin(async move {
            let _on = OnWire(&self.now);
            self.inner.exchange(outgoing, meter).await
        })
    }

    fn tidy(&self) {
        assert!(!self.tidy_panics.swap(false, Ordering::SeqCst), "a scripted panic of the downloader");
    }
}

/// The embedded plane behind a judge, with everything noted.
pub(super) struct Plane {
    pub(super) inner: Embedded,
    pub(super) judge: Mutex<Judge>,
    pub(super) notes: Arc<Notes>,
    pub(super) reports: Mutex<Vec<(Duration, Report)>>,
    pub(super) releases: Mutex<Vec<LeaseId>>,
    pub(super) renew_fails: bool,
    pub(super) is_remote: bool,
    /// Lets leases that this plane grants expire after this time, for the engine.
    pub(super) life: Option<Duration>,
    /// What every call with reports comes to from this time on.
    pub(super) reports_fail: Option<(Duration, PlaneError)>,
    /// From this time on no call is ever answered.
    pub(super) hangs_from: Option<Duration>,
    /// The next call with reports panics.
    pub(super) report_panics: AtomicBool,
    pub(super) granted: Mutex<Vec<(Duration, LeaseId, Ask)>>,
}

impl Plane {
    fn hangs(&self) -> bool {
        self.hangs_from.is_some_and(|from| self.notes.now() >= from)
    }
}

impl ControlPlane for Plane {
    fn acquire(&self, ask: Ask) -> BoxFuture<'_, Result<Grant, Refusal>> {
        let now = self.notes.now();
        self.notes.add(format!("ask {} {}", ask.site, ask.path));
        let judged = (self.judge.lock().unwrap_or_else(PoisonError::into_inner))(&ask, now);
        let hangs = self.hangs();
        Box::pin(async move {
            if hangs {
                std::future::pending::<()>().await;
            }
            match judged {
                Judged::Grant => {}
                Judged::GrantAfter(time) => tokio::time::sleep(time).await,
                Judged::Refuse(why, retry_after) => {
                    return Err(Refusal { why, retry_after, message: format!("scripted {}", why.name()) });
                }
                Judged::Panic => panic!("a scripted panic of the plane"),
            }
            let mut grant = self.inner.acquire(ask.clone()).await?;
            if let Some(life) = self.life {
                grant.expires_at = Instant::now() + life;
                grant.renew_before = life / 4;
            }
            self.granted.lock().unwrap().push((self.notes.now(), grant.lease.clone(), ask));
            Ok(grant)
        })
    }

    fn report(&self, reports: Vec<Report>) -> BoxFuture<'_, Result<Taken, PlaneError>> {
        assert!(!self.report_panics.swap(false, Ordering::SeqCst), "a scripted panic of the plane");
        let now = self.notes.now();
        if self.hangs() {
            return Box::pin(std::future::pending());
        }
        if let Some((_, error)) = self.reports_fail.as_ref().filter(|(from, _)| now >= *from) {
            return Box::pin(std::future::ready(Err(error.clone())));
        }
        for report in &reports {
            self.notes.add(format!("report {} release={} marks={:?}", report.path, report.release, report.markers));
        }
        self.reports.lock().unwrap().extend(reports.iter().map(|r| (now, r.clone())));
        self.inner.report(reports)
    }

    fn release(&self, lease: LeaseId) -> BoxFuture<'_, Result<(), PlaneError>> {
        self.notes.add("release");
        if self.hangs() {
            return Box::pin(std::future::pending());
        }
        self.releases.lock().unwrap().push(lease.clone());
        self.inner.release(lease)
    }

    fn renew(&self, lease: LeaseId) -> BoxFuture<'_, Result<Instant, PlaneError>> {
        if self.renew_fails {
            return Box::pin(std::future::ready(Err(PlaneError::NoLease(lease.0.to_string()))));
        }
        self.inner.renew(lease)
    }

    fn is_remote(&self) -> bool {
        self.is_remote
    }

    fn ledger(&self) -> Option<PlaneLedger> {
        self.inner.ledger()
    }
}

/// The sink behind a door, which a test can close without stopping the only thread.
pub(super) struct Gate {
    pub(super) inner: MemorySink,
    pub(super) open: Arc<AtomicBool>,
    pub(super) fault: Box<dyn FnMut(u64) -> Option<SinkAnswer> + Send>,
    pub(super) calls: u64,
}

impl Webhook for Gate {
    fn deliver(&mut self, batch: Arc<Batch>) -> Pending {
        if !self.open.load(Ordering::SeqCst) {
            let (after, why) = (Some(Duration::from_secs(1)), "the door is closed".to_owned());
            return Box::pin(std::future::ready(SinkAnswer::Retry { after, why }));
        }
        self.calls += 1;
        match (self.fault)(self.calls) {
            Some(answer) => Box::pin(std::future::ready(answer)),
            None => self.inner.deliver(batch),
        }
    }

    fn place(&self) -> String {
        "behind a door".to_owned()
    }
}

/// A store that remembers how much it ever held.
pub(super) struct Weighed<S> {
    pub(super) inner: S,
    pub(super) most: Arc<Most>,
}

/// The most a store ever held.
#[derive(Default)]
pub(super) struct Most {
    pub(super) bytes: AtomicUsize,
    pub(super) pending: AtomicUsize,
    /// Any use of the store panics.
    pub(super) broken: AtomicBool,
}

impl<S: Store> Weighed<S> {
    fn weigh(&self) {
        assert!(!self.most.broken.load(Ordering::SeqCst), "a scripted panic of the store");
        self.most.bytes.fetch_max(self.inner.weight(), Ordering::SeqCst);
        self.most.pending.fetch_max(usize::try_from(self.inner.books().pending).unwrap(), Ordering::SeqCst);
    }
}

impl<S: Store> Store for Weighed<S> {
    fn offer(&mut self, jobs: &mut Vec<Job>) -> Result<Offered, StoreError> {
        let done = self.inner.offer(jobs);
        self.weigh();
        done
    }

    fn admit(&mut self, job: &Job) -> Result<(), StoreError> {
        self.inner.admit(job)
    }

    fn pull(&mut self, slot: &SlotKey, now: Duration) -> Result<Pulled, StoreError> {
        self.weigh();
        self.inner.pull(slot, now)
    }

    fn put_back(&mut self, job: Job, not_before: Duration) -> Result<(), StoreError> {
        self.inner.put_back(job, not_before)
    }

    fn mark_seen(&mut self, key: u128) -> Result<bool, StoreError> {
        self.inner.mark_seen(key)
    }

    fn settle(&mut self, id: RequestId, outcome: End) -> Result<bool, StoreError> {
        self.inner.settle(id, outcome)
    }

    fn books(&self) -> Books {
        self.inner.books()
    }

    fn slots(&self) -> Vec<(SlotKey, Duration)> {
        self.inner.slots()
    }

    fn weight(&self) -> usize {
        self.inner.weight()
    }

    fn medium(&self) -> Medium {
        self.inner.medium()
    }

    fn cursors(&self) -> Cursors {
        self.inner.cursors()
    }

    fn advance(&mut self, to: Cursors) -> Result<(), StoreError> {
        self.inner.advance(to)
    }

    fn gate(&mut self, slot: &SlotKey, until: Duration) -> Result<(), StoreError> {
        self.inner.gate(slot, until)
    }

    fn gates(&mut self, now: Duration) -> Vec<(SlotKey, Duration)> {
        self.inner.gates(now)
    }

    fn save(&mut self, name: &'static str, state: Vec<u8>) -> Result<(), StoreError> {
        self.inner.save(name, state)
    }

    fn saved(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.saved(name)
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        self.inner.commit()
    }

    fn recover(&mut self) -> Result<u64, StoreError> {
        self.inner.recover()
    }
}
