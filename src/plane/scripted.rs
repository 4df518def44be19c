//! A control plane that answers as a test says, when it says, and remembers what it was asked.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use secrecy::SecretString;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

use super::follow::{ConfigFeed, Configured};
use super::{About, Ask, ControlPlane, Grant, IdentityKey, LeaseId, PlaneError, PlaneLedger, Refusal, Report, Taken};
use crate::spinneret::{ConfigItem, ConfigKey};

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
    secrets: Mutex<BTreeMap<String, String>>,
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
            secrets: Mutex::default(),
            calls: Mutex::default(),
        })
    }

    /// What was asked so far, one word and one name each.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap().clone()
    }

    /// Has a secret to give.
    pub(crate) fn keep_secret(&self, path: &str, value: &str) {
        self.secrets.lock().unwrap().insert(path.to_owned(), value.to_owned());
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

    fn secret(&self, path: String) -> BoxFuture<'_, Result<SecretString, PlaneError>> {
        self.calls.lock().unwrap().push(format!("secret {path}"));
        let kept = self.secrets.lock().unwrap().get(&path).map(|value| SecretString::from(value.as_str()));
        Box::pin(async move { kept.ok_or_else(|| PlaneError::NotFound(format!("there is no secret {path}"))) })
    }
}

/// Config items that change as a test says.
#[derive(Debug, Default)]
pub(crate) struct ScriptedFeed {
    items: Mutex<BTreeMap<ConfigKey, Configured>>,
    told: Mutex<VecDeque<Option<Configured>>>,
    bell: Notify,
    panics: AtomicBool,
}

impl ScriptedFeed {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Puts an item there without telling of it, as before the feed began.
    pub(crate) fn keep(&self, configured: Configured) {
        let key = ConfigKey::new(&configured.item.group, &configured.item.key);
        self.items.lock().unwrap().insert(key, configured);
    }

    /// Changes an item and tells of it.
    pub(crate) fn publish(&self, configured: Configured) {
        self.keep(configured.clone());
        self.told.lock().unwrap().push_back(Some(configured));
        self.bell.notify_one();
    }

    /// Tells that nothing more will come.
    pub(crate) fn end(&self) {
        self.told.lock().unwrap().push_back(None);
        self.bell.notify_one();
    }

    /// Has whoever waits panic.
    pub(crate) fn panic(&self) {
        self.panics.store(true, Ordering::SeqCst);
        self.bell.notify_one();
    }
}

impl ConfigFeed for ScriptedFeed {
    fn get(&self, key: &ConfigKey) -> Option<Configured> {
        self.items.lock().unwrap().get(key).cloned()
    }

    fn changed(&self) -> BoxFuture<'_, Option<Configured>> {
        Box::pin(async move {
            loop {
                assert!(!self.panics.swap(false, Ordering::SeqCst), "a scripted panic");
                let told = self.told.lock().unwrap().pop_front();
                if let Some(told) = told {
                    return told;
                }
                self.bell.notified().await;
            }
        })
    }
}

/// An item as a feed tells it: `group/key`, version, format, content.
pub(crate) fn configured(name: &str, version: i32, format: &str, content: &str) -> Configured {
    let (group, key) = name.split_once('/').unwrap();
    let item = ConfigItem {
        group: group.to_owned(),
        key: key.to_owned(),
        format: format.to_owned(),
        version,
        content: content.to_owned(),
        ..ConfigItem::default()
    };
    Configured { item, from_snapshot: false }
}
